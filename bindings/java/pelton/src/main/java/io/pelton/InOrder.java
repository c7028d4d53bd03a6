package io.pelton;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/** Runs tasks one after the other on an executor that may have many threads. */
final class InOrder {
    private final Executor executor;
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private boolean running;

    InOrder(Executor executor) {
        this.executor = executor;
    }

    /** Whether {@code task} will run; not if the executor takes nothing more. */
    boolean add(Runnable task) {
        synchronized (this) {
            waiting.add(task);
            if (running) {
                return true;
            }
            running = true;
        }
        try {
            executor.execute(this::drain);
            return true;
        } catch (RejectedExecutionException shutDown) {
            forget();
            return false;
        } catch (Throwable broken) {
            // A fault of the executor's must not keep the other downloads of the client from being told.
            forget();
            handled(broken);
            return false;
        }
    }

    private synchronized void forget() {
        waiting.clear();
        running = false;
    }

    private void drain() {
        for (Runnable task = next(); task != null; task = next()) {
            try {
                task.run();
            } catch (Throwable thrown) {
                // Later tasks run all the same; an application that crashes on such things still does.
                handled(thrown);
            }
        }
    }

    private static void handled(Throwable thrown) {
        Thread thread = Thread.currentThread();
        thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
    }

    private synchronized Runnable next() {
        Runnable task = waiting.poll();
        running = task != null;
        return task;
    }
}
