package io.pelton;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;

/** A download under way: see {@link PeltonClient#enqueue}. */
public final class Download {
    private final PeltonClient client;
    private final Request request;
    private final long number;
    private final int descriptor;
    private final InOrder callbacks;
    private final AtomicReference<Progress> latest = new AtomicReference<>();
    private final Outcome outcome = new Outcome();
    private volatile Listener listener;

    // What follows is guarded by this.
    private boolean started;
    private boolean over;
    private boolean pausedByCaller;
    private boolean paused;

    Download(PeltonClient client, long number, Request request, Executor executor, Listener listener) {
        this.client = client;
        this.number = number;
        this.request = request;
        this.descriptor = request.takeDescriptor();
        this.callbacks = new InOrder(executor);
        this.listener = listener;
    }

    /** What was asked for. */
    public Request request() {
        return request;
    }

    /**
     * The report once every file is there. It fails with a {@link PeltonException} otherwise, after the listener
     * was told. Cancelling the future cancels the download. What depends on it runs where callbacks run.
     */
    public CompletableFuture<Report> future() {
        return outcome;
    }

    /**
     * Stops for good; another request into the same directory goes on where this one ended. The future fails with
     * {@link PeltonException#CANCELLED}, unless everything was there already.
     */
    public void cancel() {
        synchronized (this) {
            if (over || started) {
                Native.cancel(client.handle(), number);
                return;
            }
            over = true;
        }
        if (descriptor >= 0) {
            Native.closeDescriptor(descriptor);
        }
        client.over(this, false);
        finish(null, PeltonException.cancelled("cancelled before it began"));
    }

    /** Stops moving, and keeps what has arrived. */
    public void pause() {
        synchronized (this) {
            pausedByCaller = true;
        }
        follow();
    }

    /** Goes on after {@link #pause}, as soon as the request's constraints hold. */
    public void resume() {
        synchronized (this) {
            pausedByCaller = false;
        }
        follow();
    }

    /** Whether it stands still, because of {@link #pause} or because a constraint does not hold. */
    public synchronized boolean isPaused() {
        return !over && (paused || !started);
    }

    /** Moves if nothing speaks against it, and stops if something does. */
    void follow() {
        try {
            moveOrStop();
        } catch (PeltonException malformed) {
            end(null, client.isClosed() ? PeltonException.cancelled("the client was closed") : malformed);
        }
    }

    private synchronized void moveOrStop() throws PeltonException {
        boolean moves = !pausedByCaller && client.holds(request.constraints());
        if (over || (!started && !moves)) {
            return;
        }
        if (!started) {
            started = true;
            client.began();
            Native.start(client.handle(), number, request.settings(), descriptor);
        } else if (paused == moves) {
            paused = !moves;
            if (moves) {
                Native.resume(client.handle(), number);
            } else {
                Native.pause(client.handle(), number);
            }
        }
    }

    /** Takes what the native half tells, on the client's thread. */
    void tell(Event event) {
        if (event.what instanceof Progress) {
            tellProgress((Progress) event.what);
        } else if (event.what instanceof FileReport) {
            FileReport file = (FileReport) event.what;
            tellListener(listener -> listener.onFile(this, file));
        } else {
            end((Report) event.what, event.failure);
        }
    }

    /** It is over. */
    void end(Report report, PeltonException failure) {
        synchronized (this) {
            if (over) {
                return;
            }
            over = true;
        }
        client.over(this, true);
        finish(report, failure == null ? null : failure.withReport(report));
    }

    long number() {
        return number;
    }

    private void tellProgress(Progress progress) {
        // One that still waits for the executor is outdated now.
        if (latest.getAndSet(progress) == null) {
            tellListener(listener -> listener.onProgress(this, latest.getAndSet(null)));
        }
    }

    private void finish(Report report, PeltonException failure) {
        tellListener(listener -> {
            if (failure == null) {
                listener.onComplete(this, report);
            } else {
                listener.onFailure(this, failure);
            }
        });
        Runnable complete = () -> outcome.settle(report, failure);
        if (!callbacks.add(complete)) {
            complete.run();
        }
    }

    private interface Call {
        void on(Listener listener);
    }

    private void tellListener(Call call) {
        Listener told = listener;
        if (told != null && !callbacks.add(() -> call.on(told))) {
            listener = null;
        }
    }

    private final class Outcome extends CompletableFuture<Report> {
        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            Download.this.cancel();
            return cancelled;
        }

        void settle(Report report, PeltonException failure) {
            if (failure == null) {
                complete(report);
            } else {
                completeExceptionally(failure);
            }
        }
    }
}
