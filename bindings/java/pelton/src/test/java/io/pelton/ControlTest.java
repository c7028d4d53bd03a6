package io.pelton;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.util.EnumSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ControlTest {
    private static final byte[] BYTES = Origin.content(4_000_000, 4);

    @TempDir
    File out;

    private Origin origin;
    private Origin.Item item;
    private PeltonClient client;
    private final BlockingQueue<Progress> progress = new LinkedBlockingQueue<>();
    private final Listener recorder = new Listener() {
        @Override
        public void onProgress(Download download, Progress now) {
            progress.add(now);
        }
    };

    @BeforeEach
    void start() throws Exception {
        origin = new Origin();
        item = origin.file("/f", BYTES).gateAt(BYTES.length / 2);
        // The gate counts what is sent, and ranges that are cut are sent for nothing.
        client = PeltonClient.builder().proxy("").maxStreamsPerFile(1).build();
    }

    @AfterEach
    void stop() {
        client.close();
        origin.close();
    }

    @Test
    void pausesAndResumes() throws Exception {
        Download download = client.enqueue(request().build(), recorder);
        item.awaitGate();
        download.pause();
        assertTrue(download.isPaused());
        assertStandsStill(download);

        download.resume();

        assertFalse(download.isPaused());
        assertComplete(download);
    }

    @Test
    void constraintsPauseARunningDownload() throws Exception {
        Download download = client.enqueue(request().requires(Constraint.UNMETERED).build(), recorder);
        item.awaitGate();
        client.setConstraints(EnumSet.of(Constraint.CHARGING));
        assertStandsStill(download);
        download.pause();
        client.setConstraints(EnumSet.of(Constraint.UNMETERED));
        assertTrue(download.isPaused(), "the caller has paused it too");

        download.resume();

        assertComplete(download);
    }

    @Test
    void aDownloadWaitsForItsConstraints() throws Exception {
        item.open();
        client.setConstraints(EnumSet.noneOf(Constraint.class));
        Download waiting = client.enqueue(request().requires(Constraint.values()).build());
        Request free = Request.builder().url(origin.url("/f")).into(new File(out, "free")).build();
        client.enqueue(free).future().get(30, TimeUnit.SECONDS);
        int asked = origin.requests();
        client.setConstraints(EnumSet.of(Constraint.CHARGING));
        assertTrue(waiting.isPaused());
        assertEquals(asked, origin.requests(), "nothing was asked for it");

        client.setConstraints(EnumSet.allOf(Constraint.class));

        assertComplete(waiting);
    }

    @Test
    void cancelsWhileBytesMoveAndAnotherDownloadGoesOn() throws Exception {
        Download download = client.enqueue(request().build(), recorder);
        item.awaitGate();
        awaitBytes(BYTES.length / 4);

        download.cancel();

        PeltonException failure = failure(download);
        assertEquals(PeltonException.CANCELLED, failure.code());
        assertEquals("cancelled", failure.kind());
        assertTrue(failure.isRetryable());
        assertEquals(0, failure.report().filesDone());
        item.open();
        Report report = client.enqueue(request().build()).future().get(30, TimeUnit.SECONDS);
        assertTrue(report.list().get(0).resumedFrom() > 0, "what had come was kept");
        assertArrayEquals(BYTES, Files.readAllBytes(new File(out, "f").toPath()));
    }

    @Test
    void cancelsWhilePaused() throws Exception {
        Download download = client.enqueue(request().build());
        item.awaitGate();
        download.pause();
        download.cancel();
        assertEquals(PeltonException.CANCELLED, failure(download).code());
        assertFalse(download.isPaused());
    }

    @Test
    void cancelsAtOnceAndTwice() throws Exception {
        Download download = client.enqueue(request().build());
        download.cancel();
        download.cancel();
        assertEquals(PeltonException.CANCELLED, failure(download).code());
        download.cancel();
        download.pause();
        download.resume();
    }

    @Test
    void cancelsBeforeItBeganAndClosesItsDescriptor() throws Exception {
        client.setConstraints(EnumSet.noneOf(Constraint.class));
        File target = new File(out, "never");
        int descriptor = Descriptors.detach(new FileOutputStream(target));
        Request request = Request.builder()
                .url(origin.url("/f"))
                .toDescriptor(descriptor)
                .requires(Constraint.CHARGING)
                .build();
        Download download = client.enqueue(request);

        download.cancel();

        PeltonException failure = failure(download);
        assertEquals(PeltonException.CANCELLED, failure.code());
        assertNull(failure.report());
        assertEquals(0, origin.requests());
        assertNotEquals(target.getCanonicalPath(), Descriptors.target(descriptor));
    }

    @Test
    void cancelsFromACallback() throws Exception {
        Download download = client.enqueue(request().build(), new Listener() {
            @Override
            public void onProgress(Download download, Progress now) {
                download.cancel();
            }
        });
        assertEquals(PeltonException.CANCELLED, failure(download).code());
    }

    @Test
    void cancellingWhatIsCompleteChangesNothing() throws Exception {
        item.open();
        Download download = client.enqueue(request().build());
        assertComplete(download);
        download.cancel();
        assertEquals(1, download.future().get().filesDone());
    }

    @Test
    void cancellingTheFutureCancelsTheDownload() throws Exception {
        CompletableFuture<PeltonException> told = new CompletableFuture<>();
        Download download = client.enqueue(request().build(), new Listener() {
            @Override
            public void onFailure(Download download, PeltonException failure) {
                told.complete(failure);
            }
        });
        item.awaitGate();
        assertTrue(download.future().cancel(true));
        assertThrows(CancellationException.class, () -> download.future().get());
        assertEquals(PeltonException.CANCELLED, told.get(30, TimeUnit.SECONDS).code());
    }

    @Test
    void closingCancelsEverything() throws Exception {
        Download moving = client.enqueue(request().build());
        item.awaitGate();
        client.setConstraints(EnumSet.noneOf(Constraint.class));
        Download waiting = client.enqueue(request().requires(Constraint.CHARGING).build());

        client.close();
        client.close();

        assertEquals(PeltonException.CANCELLED, failure(moving).code());
        assertEquals(PeltonException.CANCELLED, failure(waiting).code());
        assertThrows(IllegalStateException.class, () -> client.enqueue(request().build()));
    }

    @Test
    void closesFromACallback() throws Exception {
        Download download = client.enqueue(request().build(), new Listener() {
            @Override
            public void onProgress(Download download, Progress now) {
                client.close();
            }
        });
        assertEquals(PeltonException.CANCELLED, failure(download).code());
    }

    @Test
    void clientsAreIndependent() throws Exception {
        item.open();
        try (PeltonClient other = PeltonClient.builder().proxy("").build()) {
            client.close();
            Report report = other.enqueue(request().build()).future().get(30, TimeUnit.SECONDS);
            assertEquals(1, report.filesDone());
        }
    }

    private Request.Builder request() {
        return Request.builder().url(origin.url("/f")).into(out);
    }

    /** Opens the gate and sees that nothing comes through it. */
    private void assertStandsStill(Download download) throws Exception {
        progress.clear();
        awaitProgress();
        item.open();
        long before = awaitProgress().bytes();
        long after = awaitProgress().bytes();
        assertEquals(before, after);
        assertTrue(after < BYTES.length);
        assertFalse(download.future().isDone());
    }

    private void assertComplete(Download download) throws Exception {
        assertEquals(1, download.future().get(30, TimeUnit.SECONDS).filesDone());
        assertArrayEquals(BYTES, Files.readAllBytes(new File(out, "f").toPath()));
    }

    private void awaitBytes(long bytes) throws Exception {
        while (awaitProgress().bytes() < bytes) {}
    }

    private Progress awaitProgress() throws Exception {
        Progress now = progress.poll(30, TimeUnit.SECONDS);
        assertTrue(now != null, "no progress was told");
        return now;
    }

    private static PeltonException failure(Download download) {
        ExecutionException thrown = assertThrows(
                ExecutionException.class, () -> download.future().get(30, TimeUnit.SECONDS));
        return (PeltonException) thrown.getCause();
    }
}
