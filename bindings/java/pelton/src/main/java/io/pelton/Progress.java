package io.pelton;

import java.util.OptionalDouble;

/** How far a download is. */
public final class Progress {
    private final double seconds;
    private final long files;
    private final long filesDone;
    private final long filesFailed;
    private final long bytes;
    private final long bytesExpected;
    private final double bitsPerSecond;
    private final double joules;
    private final int connections;
    private final double secondsLeft;

    Progress(
            double seconds,
            long files,
            long filesDone,
            long filesFailed,
            long bytes,
            long bytesExpected,
            double bitsPerSecond,
            double joules,
            int connections,
            double secondsLeft) {
        this.seconds = seconds;
        this.files = files;
        this.filesDone = filesDone;
        this.filesFailed = filesFailed;
        this.bytes = bytes;
        this.bytesExpected = bytesExpected;
        this.bitsPerSecond = bitsPerSecond;
        this.joules = joules;
        this.connections = connections;
        this.secondsLeft = secondsLeft;
    }

    /** Since the download began. */
    public double seconds() {
        return seconds;
    }

    /** Files in the list. */
    public long files() {
        return files;
    }

    /** Files that are there. */
    public long filesDone() {
        return filesDone;
    }

    /** Files given up. */
    public long filesFailed() {
        return filesFailed;
    }

    /** Body bytes received. */
    public long bytes() {
        return bytes;
    }

    /** Body bytes of the whole list, as far as known or predicted. */
    public long bytesExpected() {
        return bytesExpected;
    }

    /** Present throughput. */
    public double bitsPerSecond() {
        return bitsPerSecond;
    }

    /** Energy so far, if a meter tells it. */
    public OptionalDouble joules() {
        return optional(joules);
    }

    /** Open connections. */
    public int connections() {
        return connections;
    }

    /** Expected time to the end at the present rate. */
    public OptionalDouble secondsLeft() {
        return optional(secondsLeft);
    }

    static OptionalDouble optional(double number) {
        return Double.isNaN(number) ? OptionalDouble.empty() : OptionalDouble.of(number);
    }
}
