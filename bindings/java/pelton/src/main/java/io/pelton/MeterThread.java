package io.pelton;

import java.io.IOException;
import java.util.concurrent.TimeUnit;

/** Reads the application's meter while downloads are under way. */
final class MeterThread implements Runnable {
    private static final int SHORTEST_INTERVAL = 10;

    private final long client;
    private final PowerMeter meter;
    private int downloads;
    private boolean stopped;

    MeterThread(long client, PowerMeter meter) {
        this.client = client;
        this.meter = meter;
    }

    synchronized void began() {
        downloads++;
        notifyAll();
    }

    synchronized void ended() {
        downloads--;
        notifyAll();
    }

    synchronized void stop() {
        stopped = true;
        notifyAll();
    }

    @Override
    public void run() {
        try {
            while (untilNeeded()) {
                read();
                untilDue();
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** Waits for a download; false once there will be none. */
    private synchronized boolean untilNeeded() throws InterruptedException {
        if (downloads == 0) {
            // What was read for the last download says nothing about the next.
            Native.forgetSample(client);
        }
        while (downloads == 0 && !stopped) {
            wait();
        }
        return !stopped;
    }

    private void read() {
        PowerMeter.Sample sample;
        try {
            sample = meter.read();
        } catch (IOException | RuntimeException unreadable) {
            sample = null;
        }
        if (sample == null) {
            Native.forgetSample(client);
        } else {
            sample.tell(client);
        }
    }

    private synchronized void untilDue() throws InterruptedException {
        long left = Math.max(SHORTEST_INTERVAL, meter.intervalMillis());
        long due = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(left);
        while (left > 0 && downloads > 0 && !stopped) {
            wait(left);
            left = TimeUnit.NANOSECONDS.toMillis(due - System.nanoTime());
        }
    }
}
