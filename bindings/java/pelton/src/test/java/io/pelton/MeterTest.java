package io.pelton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MeterTest {
    private static final int SIZE = 1_000_000;

    @TempDir
    File out;

    @Test
    void joulesOfTheApplicationReachEht() throws Exception {
        AtomicInteger readings = new AtomicInteger();
        CountDownLatch read = new CountDownLatch(5);
        Report report = run(read, () -> {
            read.countDown();
            return PowerMeter.Sample.joules(1e6 + 1000.0 * readings.incrementAndGet());
        });

        assertEquals("measured: wall socket", report.energySource());
        double joules = report.joules().getAsDouble();
        assertTrue(joules >= 1000 && joules < 1000 * readings.get(), "readings differ by 1000 J: " + joules);
        assertEquals(0, joules % 1000, 1e-6);
        // It is EHT that says so where no joules arrive; the other download began when some were read already.
        assertFalse(second.toJson().contains("no meter, so by model"), second.toJson());
        assertEquals("measured: wall socket", second.energySource());
        assertNotEquals("pelton", meterThread, "pelton's own threads never run Java code");
        assertEquals("pelton-meter", meterThread);
    }

    @Test
    void wattsAddUpToJoules() throws Exception {
        CountDownLatch read = new CountDownLatch(5);
        Report report = run(read, () -> {
            read.countDown();
            return PowerMeter.Sample.watts(50);
        });
        double joules = report.joules().getAsDouble();
        assertTrue(joules > 0 && joules <= 50 * report.seconds(), joules + " J in " + report.seconds() + " s");
    }

    @Test
    void aBatteryTellsJoulesUnlessItIsCharged() throws Exception {
        AtomicInteger readings = new AtomicInteger();
        CountDownLatch read = new CountDownLatch(5);
        // 1 mWh less with each reading: 3.6 J.
        Report report = run(read, () -> {
            read.countDown();
            long left = 10_000_000_000L - 1_000_000L * readings.incrementAndGet();
            return PowerMeter.Sample.battery(Integer.MIN_VALUE, Integer.MIN_VALUE, left, 3900, false);
        });
        assertEquals(0, Math.IEEEremainder(report.joules().getAsDouble(), 3.6), 1e-6);
        assertTrue(report.joules().getAsDouble() > 0);

        CountDownLatch charged = new CountDownLatch(5);
        report = run(charged, () -> {
            charged.countDown();
            return PowerMeter.Sample.battery(-300_000, 2_000_000, 10_000_000_000L, 3900, true);
        });
        assertFalse(report.joules().isPresent());
    }

    @Test
    void aMeterThatFailsHoldsUpNothing() throws Exception {
        CountDownLatch failed = new CountDownLatch(5);
        Report report = run(failed, () -> {
            failed.countDown();
            throw new IllegalStateException("unplugged");
        });
        assertEquals(1, report.filesDone());
        assertFalse(report.joules().isPresent());
        assertTrue(report.toJson().contains("no meter, so by model"), report.toJson());
    }

    @Test
    void withoutAMeterThereAreNoJoules() throws Exception {
        try (Origin origin = new Origin();
                PeltonClient client = PeltonClient.builder().proxy("").noMeter().policy(Policy.HAT).build()) {
            origin.file("/f", Origin.content(1000, 1));
            Report report = client.enqueue(Request.builder().url(origin.url("/f")).into(out).build())
                    .future()
                    .get(30, TimeUnit.SECONDS);
            assertFalse(report.joules().isPresent());
            assertNull(report.energySource());
            assertEquals("hat", report.policy());
        }
    }

    private final AtomicInteger runs = new AtomicInteger();
    private volatile String meterThread;

    private Report second;

    /** Downloads a file whose second half comes once {@code enough} readings were taken, and meanwhile a second. */
    private Report run(CountDownLatch enough, Supplier<PowerMeter.Sample> samples) throws Exception {
        PowerMeter meter = new PowerMeter() {
            @Override
            public String name() {
                return "wall socket";
            }

            @Override
            public Sample read() throws IOException {
                meterThread = Thread.currentThread().getName();
                return samples.get();
            }
        };
        try (Origin origin = new Origin();
                PeltonClient client = PeltonClient.builder().proxy("").meter(meter).build()) {
            Origin.Item item = origin.file("/f", Origin.content(SIZE, 1)).gateAt(SIZE / 2);
            File fresh = new File(out, String.valueOf(runs.incrementAndGet()));
            Request request = Request.builder().url(origin.url("/f")).into(fresh).build();
            Download download = client.enqueue(request);
            item.awaitGate();
            assertTrue(enough.await(30, TimeUnit.SECONDS));
            origin.file("/g", Origin.content(SIZE, 2));
            Request other = Request.builder().url(origin.url("/g")).into(fresh).build();
            second = client.enqueue(other).future().get(30, TimeUnit.SECONDS);
            item.open();
            return download.future().get(30, TimeUnit.SECONDS);
        }
    }
}
