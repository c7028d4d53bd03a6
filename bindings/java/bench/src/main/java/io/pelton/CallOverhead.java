package io.pelton;

import java.io.File;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** What crossing the border costs: a call, enqueueing a download, an event. */
public final class CallOverhead {
    private static final int ROUNDS = 15;
    private static final int CALLS = 1_000_000;
    private static final int DOWNLOADS = 200;
    private static final int EVENTS = 20_000;

    private CallOverhead() {}

    public static void main(String[] args) throws Exception {
        // Nobody listens there: downloads end at once, and each file with an event.
        String nowhere;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            nowhere = "http://127.0.0.1:" + socket.getLocalPort() + "/";
        }
        try (PeltonClient client = PeltonClient.builder()
                .proxy("")
                .noMeter()
                .tries(1)
                .retryWait(1, TimeUnit.MILLISECONDS)
                .build()) {
            print("a call that does nothing", ROUNDS, () -> call(client));
            print("enqueue of one file", ROUNDS, () -> enqueue(client, nowhere));
            print("an event, made and delivered", ROUNDS, () -> events(client, nowhere));
        }
    }

    private interface Measurement {
        /** Nanoseconds for one. */
        double run() throws Exception;
    }

    private static void print(String what, int rounds, Measurement measurement) throws Exception {
        for (int i = 0; i < 5; i++) {
            measurement.run();
        }
        double[] took = new double[rounds];
        for (int i = 0; i < rounds; i++) {
            took[i] = measurement.run();
        }
        Arrays.sort(took);
        System.out.printf("%-30s %10.0f ns (%.0f to %.0f)%n", what, took[rounds / 2], took[0], took[rounds - 1]);
    }

    private static double call(PeltonClient client) {
        long began = System.nanoTime();
        for (int i = 0; i < CALLS; i++) {
            Native.pause(client.handle(), -1);
        }
        return (System.nanoTime() - began) / (double) CALLS;
    }

    private static double enqueue(PeltonClient client, String url) throws Exception {
        File out = new File(System.getProperty("java.io.tmpdir"));
        long sum = 0;
        for (int i = 0; i < DOWNLOADS; i++) {
            Request request = Request.builder().url(url + i).into(out).build();
            long began = System.nanoTime();
            Download download = client.enqueue(request);
            sum += System.nanoTime() - began;
            awaitEnd(download);
        }
        return sum / (double) DOWNLOADS;
    }

    private static double events(PeltonClient client, String url) throws Exception {
        File out = new File(System.getProperty("java.io.tmpdir"));
        Request.Builder request = Request.builder().into(out);
        for (int i = 0; i < EVENTS; i++) {
            request.url(url + "event-" + i);
        }
        AtomicInteger seen = new AtomicInteger();
        long[] times = new long[2];
        awaitEnd(client.enqueue(request.build(), new Listener() {
            @Override
            public void onFile(Download download, FileReport file) {
                times[seen.incrementAndGet() == 1 ? 0 : 1] = System.nanoTime();
            }
        }));
        return (times[1] - times[0]) / (double) (EVENTS - 1);
    }

    private static void awaitEnd(Download download) throws InterruptedException {
        try {
            download.future().get();
        } catch (ExecutionException nobodyListens) {
            // As it should be.
        }
    }
}
