package io.pelton;

import java.io.Closeable;
import java.io.File;
import java.util.Collection;
import java.util.EnumSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Downloads with one set of settings. One for an application is enough; each download has a thread of its own in
 * the native half, and a client has one thread for what they tell, until it is closed.
 *
 * <pre>{@code
 * try (PeltonClient client = PeltonClient.builder().build()) {
 *     Request request = Request.builder().url("https://example.org/data/").into(new File("out")).build();
 *     Report report = client.enqueue(request).future().get();
 * }
 * }</pre>
 */
public final class PeltonClient implements Closeable {
    private final long handle;
    private final MeterThread meter;
    private final Map<Long, Download> downloads = new ConcurrentHashMap<>();
    private final AtomicLong lastNumber = new AtomicLong();
    private volatile Set<Constraint> held = EnumSet.allOf(Constraint.class);
    private volatile boolean closed;

    private PeltonClient(Builder builder) throws PeltonException {
        handle = Native.openClient(builder.settings.toArray());
        meter = builder.meter == null ? null : new MeterThread(handle, builder.meter);
        // Daemons: who waits for a download holds its future.
        startDaemon("pelton-events", this::dispatch);
        if (meter != null) {
            startDaemon("pelton-meter", meter);
        }
    }

    /** A client with other settings than the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    /** {@link #enqueue(Request, Executor, Listener)} without a listener. */
    public Download enqueue(Request request) {
        return enqueue(request, null);
    }

    /** {@link #enqueue(Request, Executor, Listener)} with callbacks on the client's own thread. */
    public Download enqueue(Request request, Listener listener) {
        return enqueue(request, Runnable::run, listener);
    }

    /**
     * Starts a download, or lets it wait for its constraints.
     *
     * @param executor where callbacks run and dependents of the future; the main thread's, for example
     * @param listener what is told what happens; may be null
     * An executor that takes a callback and never runs it keeps the future from ending too.
     *
     * @throws IllegalStateException the client is closed
     */
    public Download enqueue(Request request, Executor executor, Listener listener) {
        Objects.requireNonNull(executor, "executor");
        if (closed) {
            throw new IllegalStateException("the client is closed");
        }
        Download download = new Download(this, lastNumber.incrementAndGet(), request, executor, listener);
        downloads.put(download.number(), download);
        download.follow();
        return download;
    }

    /**
     * Says which constraints hold now; the application knows from {@code ConnectivityManager} and
     * {@code BatteryManager}. Downloads that require another one stop and keep what they have, and go on by
     * themselves when it holds again. At first all are taken to hold.
     */
    public void setConstraints(Collection<Constraint> held) {
        Set<Constraint> copy = EnumSet.noneOf(Constraint.class);
        copy.addAll(held);
        this.held = copy;
        downloads.values().forEach(Download::follow);
    }

    /** Cancels what is under way and takes no more requests. It does not wait: futures do. */
    @Override
    public void close() {
        closed = true;
        downloads.values().forEach(Download::cancel);
        Native.closeClient(handle);
    }

    boolean holds(Set<Constraint> constraints) {
        return held.containsAll(constraints);
    }

    boolean isClosed() {
        return closed;
    }

    long handle() {
        return handle;
    }

    /** A download begins to move. */
    void began() {
        if (meter != null) {
            meter.began();
        }
    }

    /** A download is over; {@code hadBegun} if {@link #began} was called for it. */
    void over(Download download, boolean hadBegun) {
        downloads.remove(download.number());
        if (hadBegun && meter != null) {
            meter.ended();
        }
    }

    private void dispatch() {
        try {
            for (Event event = next(); event != null; event = next()) {
                Download download = downloads.get(event.download);
                if (download != null) {
                    download.tell(event);
                }
                // What one listener does to this thread is not the next one's.
                Thread.interrupted();
            }
        } finally {
            if (meter != null) {
                meter.stop();
            }
        }
    }

    /** The next event. One that can't be made into objects, for want of memory, ends every download. */
    private Event next() {
        while (true) {
            try {
                return Native.nextEvent(handle);
            } catch (Throwable lost) {
                close();
                String message = "an event was lost: " + lost;
                PeltonException failure = new PeltonException(PeltonException.OTHER, "internal", false, message);
                downloads.values().forEach(download -> download.end(null, failure));
            }
        }
    }

    private static void startDaemon(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Makes a {@link PeltonClient}. */
    public static final class Builder {
        private final Request.Settings settings = new Request.Settings();
        private PowerMeter meter;

        private Builder() {}

        /** What downloads are optimised for. Default: {@link Policy#EHT}. */
        public Builder policy(Policy policy) {
            settings.add("policy", policy.label);
            return this;
        }

        /** Files of one download at once: a ceiling, and exact with {@link Policy#FIXED}. */
        public Builder maxFiles(int files) {
            settings.set("max-files", files);
            return this;
        }

        /** Range streams of one file: a ceiling, and exact with {@link Policy#FIXED}. */
        public Builder maxStreamsPerFile(int streams) {
            settings.set("max-streams-per-file", streams);
            return this;
        }

        /** Connections of one download to one server. Default: 64. */
        public Builder maxConnectionsPerServer(int connections) {
            settings.set("max-connections-per-server", connections);
            return this;
        }

        /** Connections of one download to all servers. Default: 128. */
        public Builder maxConnections(int connections) {
            settings.set("max-connections", connections);
            return this;
        }

        /** Bits a second that the files of one download share evenly; 0 is no limit, the default. */
        public Builder maxRate(long bitsPerSecond) {
            settings.set("max-rate", bitsPerSecond);
            return this;
        }

        /** The same for the files of each server, below {@link #maxRate}. */
        public Builder maxRatePerServer(long bitsPerSecond) {
            settings.set("max-rate-per-server", bitsPerSecond);
            return this;
        }

        /**
         * Bytes that buffers and windows of one download's connections hold together, which bounds how
         * many there are. Default: 512 MiB.
         */
        public Builder maxMemory(long bytes) {
            settings.set("max-memory", bytes);
            return this;
        }

        /** No range stream is made for fewer bytes. Default: what the link suggests. */
        public Builder minSplitSize(long bytes) {
            settings.set("min-split-size", bytes);
            return this;
        }

        /** Attempts at a file without progress. Default: 5. */
        public Builder tries(int tries) {
            settings.set("tries", tries);
            return this;
        }

        /** The pause before the second attempt; it doubles with each further one. Default: 250 ms. */
        public Builder retryWait(long duration, TimeUnit unit) {
            settings.set("retry-wait-ms", unit.toMillis(duration));
            return this;
        }

        /** A stream that brings nothing for this long has failed. Default: 30 s. */
        public Builder timeout(long duration, TimeUnit unit) {
            settings.set("timeout-ms", unit.toMillis(duration));
            return this;
        }

        /** How long opening a connection may take. Default: 30 s. */
        public Builder connectTimeout(long duration, TimeUnit unit) {
            settings.set("connect-timeout-ms", unit.toMillis(duration));
            return this;
        }

        /** Whether an existing file that differs is replaced. Default: no, that is an error. */
        public Builder overwrite(boolean overwrite) {
            settings.set("overwrite", overwrite);
            return this;
        }

        /** The value of {@code User-Agent}. */
        public Builder userAgent(String agent) {
            settings.add("user-agent", agent);
            return this;
        }

        /** A header for every request. */
        public Builder header(String name, String value) {
            settings.add("header", Objects.requireNonNull(name) + ": " + Objects.requireNonNull(value));
            return this;
        }

        /** Basic authentication at the servers of requested URLs. */
        public Builder user(String name, String password) {
            settings.add("user", name + ":" + password);
            return this;
        }

        /**
         * A proxy for everything: {@code http://}, {@code socks5://} or {@code socks5h://}; the empty string for
         * none. Default: those of the environment.
         */
        public Builder proxy(String url) {
            settings.add("proxy", url);
            return this;
        }

        /** A PEM file with authorities that are trusted besides the platform's; on Android instead of them. */
        public Builder caFile(File file) {
            settings.add("ca-file", file.getAbsolutePath());
            return this;
        }

        /** A meter of the application's own. Default: the best that can be read, else a model. */
        public Builder meter(PowerMeter meter) {
            this.meter = meter;
            settings.add("meter", "own");
            settings.add("meter-name", meter.name());
            settings.set("meter-interval-ms", meter.intervalMillis());
            return this;
        }

        /** No joules at all. */
        public Builder noMeter() {
            meter = null;
            settings.add("meter", "none");
            return this;
        }

        /** The radio that the energy model assumes, such as {@code wifi} (the default), {@code lte} or {@code none}. */
        public Builder radio(String name) {
            settings.add("radio", name);
            return this;
        }

        /**
         * The client.
         *
         * @throws PeltonException a setting is malformed
         */
        public PeltonClient build() throws PeltonException {
            return new PeltonClient(this);
        }
    }
}
