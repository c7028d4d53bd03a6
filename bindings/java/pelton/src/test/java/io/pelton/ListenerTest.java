package io.pelton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ListenerTest {
    @TempDir
    File out;

    private Origin origin;
    private PeltonClient client;

    @BeforeEach
    void start() throws Exception {
        origin = new Origin();
        client = PeltonClient.builder().proxy("").build();
    }

    @AfterEach
    void stop() {
        client.close();
        origin.close();
    }

    @Test
    void aBrokenExecutorHarmsItsOwnDownloadAlone() throws Exception {
        origin.file("/f", Origin.content(1000, 1));
        Request request = Request.builder().url(origin.url("/f")).into(new File(out, "broken")).build();
        Download broken = client.enqueue(request, task -> { throw new AssertionError("no threads"); }, new Listener() {});
        // Its future ends on the client's own thread.
        assertEquals(1, broken.future().get(30, TimeUnit.SECONDS).filesDone());

        Request other = Request.builder().url(origin.url("/f")).into(new File(out, "other")).build();
        assertEquals(1, client.enqueue(other).future().get(30, TimeUnit.SECONDS).filesDone());
        assertThrows(NullPointerException.class, () -> client.enqueue(other, null, null));
    }

    @Test
    void aListenerThatInterruptsItsThreadInterruptsNoOther() throws Exception {
        origin.file("/f", Origin.content(1000, 1));
        Listener interrupting = new Listener() {
            @Override
            public void onComplete(Download download, Report report) {
                Thread.currentThread().interrupt();
            }
        };
        Request request = Request.builder().url(origin.url("/f")).into(new File(out, "a")).build();
        client.enqueue(request, interrupting).future().get(30, TimeUnit.SECONDS);
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        Request other = Request.builder().url(origin.url("/f")).into(new File(out, "b")).build();
        client.enqueue(other, new Listener() {
            @Override
            public void onComplete(Download download, Report report) {
                interrupted.complete(Thread.currentThread().isInterrupted());
            }
        });
        assertEquals(false, interrupted.get(30, TimeUnit.SECONDS));
    }

    @Test
    void tellsEverythingInOrderOnTheGivenExecutor() throws Exception {
        Origin.Item item = origin.file("/f", Origin.content(1_000_000, 1)).gateAt(500_000);
        origin.file("/g", Origin.content(1000, 2));
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch progressed = new CountDownLatch(3);
        List<Progress> progress = Collections.synchronizedList(new ArrayList<>());
        ExecutorService many = Executors.newFixedThreadPool(4, task -> new Thread(task, "of the executor"));
        Listener listener = new Listener() {
            @Override
            public void onProgress(Download download, Progress now) {
                assertEquals("of the executor", Thread.currentThread().getName());
                progress.add(now);
                progressed.countDown();
            }

            @Override
            public void onFile(Download download, FileReport file) {
                told.add(Thread.currentThread().getName() + " file " + file.name());
            }

            @Override
            public void onComplete(Download download, Report report) {
                told.add(Thread.currentThread().getName() + " complete " + report.filesDone());
            }

            @Override
            public void onFailure(Download download, PeltonException failure) {
                told.add("failure");
            }
        };
        Request request = Request.builder().url(origin.url("/f")).url(origin.url("/g")).into(out).build();

        Download download = client.enqueue(request, many, listener);
        item.awaitGate();
        assertTrue(progressed.await(30, TimeUnit.SECONDS));
        item.open();
        CompletableFuture<String> dependent = download.future().thenApply(done -> Thread.currentThread().getName());

        dependent.get(30, TimeUnit.SECONDS);
        assertEquals(
                List.of("of the executor file g", "of the executor file f", "of the executor complete 2"), told);
        for (int i = 1; i < progress.size(); i++) {
            Progress next = progress.get(i);
            double apart = next.seconds() - progress.get(i - 1).seconds();
            boolean isEnd = next.filesDone() == next.files();
            assertTrue(isEnd || apart > 0.1, "at most ten times a second, and at the end: " + apart);
        }
        Progress last = progress.get(2);
        assertEquals(2, last.files());
        assertTrue(last.bytes() > 0 && last.bytes() < last.bytesExpected(), "half of it is there");
        many.shutdown();
    }

    @Test
    void withoutAnExecutorCallbacksComeOnTheClientsThread() throws Exception {
        origin.file("/f", Origin.content(1000, 1));
        CompletableFuture<String> thread = new CompletableFuture<>();
        client.enqueue(Request.builder().url(origin.url("/f")).into(out).build(), new Listener() {
            @Override
            public void onComplete(Download download, Report report) {
                thread.complete(Thread.currentThread().getName());
            }
        });
        assertEquals("pelton-events", thread.get(30, TimeUnit.SECONDS));
    }

    @Test
    void outdatedProgressIsLeftOut() throws Exception {
        Origin.Item item = origin.file("/f", Origin.content(1_000_000, 1)).gateAt(500_000);
        Origin.Item other = origin.file("/g", Origin.content(1_000_000, 1)).gateAt(500_000);
        BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
        List<Progress> progress = new ArrayList<>();
        CompletableFuture<Report> complete = new CompletableFuture<>();
        Listener recorder = new Listener() {
            @Override
            public void onProgress(Download download, Progress now) {
                progress.add(now);
            }

            @Override
            public void onComplete(Download download, Report report) {
                complete.complete(report);
            }
        };
        client.enqueue(Request.builder().url(origin.url("/f")).into(out).build(), tasks::add, recorder);
        Runnable first = tasks.poll(30, TimeUnit.SECONDS);
        // Another one's progress shows that time has passed for this one too.
        CountDownLatch passed = new CountDownLatch(4);
        client.enqueue(Request.builder().url(origin.url("/g")).into(out).build(), new Listener() {
            @Override
            public void onProgress(Download download, Progress now) {
                passed.countDown();
            }
        });
        assertTrue(passed.await(30, TimeUnit.SECONDS));

        first.run();

        assertEquals(1, progress.size());
        item.open();
        other.open();
        while (!complete.isDone()) {
            tasks.poll(30, TimeUnit.SECONDS).run();
        }
    }

    @Test
    void aListenerThatThrowsHoldsUpNothing() throws Exception {
        origin.file("/f", Origin.content(1000, 1));
        BlockingQueue<Throwable> uncaught = new LinkedBlockingQueue<>();
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> uncaught.add(thrown));
        try {
            Request request = Request.builder().url(origin.url("/f")).into(out).build();
            Download download = client.enqueue(request, new Listener() {
                @Override
                public void onFile(Download download, FileReport file) {
                    throw new IllegalStateException("on purpose");
                }
            });
            assertEquals(1, download.future().get(30, TimeUnit.SECONDS).filesDone());
            assertEquals("on purpose", uncaught.poll(30, TimeUnit.SECONDS).getMessage());
            client.enqueue(request).future().get(30, TimeUnit.SECONDS);
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(null);
        }
    }

    @Test
    void anExecutorThatIsShutDownStillLetsTheFutureEnd() throws Exception {
        origin.file("/f", Origin.content(1000, 1));
        ExecutorService gone = Executors.newSingleThreadExecutor();
        gone.shutdown();
        Download download = client.enqueue(
                Request.builder().url(origin.url("/f")).into(out).build(), gone, new Listener() {});
        assertEquals(1, download.future().get(30, TimeUnit.SECONDS).filesDone());
    }

    @Test
    void aListenerMayEnqueueMore() throws Exception {
        origin.file("/f", Origin.content(1000, 1));
        origin.file("/g", Origin.content(1000, 1));
        CompletableFuture<Report> second = new CompletableFuture<>();
        client.enqueue(Request.builder().url(origin.url("/f")).into(out).build(), new Listener() {
            @Override
            public void onComplete(Download download, Report report) {
                Request next = Request.builder().url(origin.url("/g")).into(out).build();
                client.enqueue(next).future().thenAccept(second::complete);
            }
        });
        assertEquals("g", second.get(30, TimeUnit.SECONDS).list().get(0).name());
        assertThrows(UnsupportedOperationException.class, () -> second.get().list().clear());
    }
}
