package io.pelton;

import java.util.OptionalDouble;

/** A file that is there, or was given up. */
public final class FileReport {
    private final String name;
    private final String url;
    private final long bytes;
    private final double seconds;
    private final int connections;
    private final String protocol;
    private final long resumedFrom;
    private final boolean alreadyThere;
    private final String digest;
    private final double joules;
    private final PeltonException error;

    FileReport(
            String name,
            String url,
            long bytes,
            double seconds,
            int connections,
            String protocol,
            long resumedFrom,
            boolean alreadyThere,
            String digest,
            double joules,
            PeltonException error) {
        this.name = name;
        this.url = url;
        this.bytes = bytes;
        this.seconds = seconds;
        this.connections = connections;
        this.protocol = protocol;
        this.resumedFrom = resumedFrom;
        this.alreadyThere = alreadyThere;
        this.digest = digest;
        this.joules = joules;
        this.error = error;
    }

    /** Its path under the directory, with {@code /} between its parts. */
    public String name() {
        return name;
    }

    /** Where it came from. */
    public String url() {
        return url;
    }

    /** Its size, or how much of it is there. */
    public long bytes() {
        return bytes;
    }

    /** From its first request to its end. */
    public double seconds() {
        return seconds;
    }

    /** How many connections brought it. */
    public int connections() {
        return connections;
    }

    /** Protocol of its last response, such as {@code HTTP/1.1}; null without any. */
    public String protocol() {
        return protocol;
    }

    /** How many of its bytes an earlier download had left. */
    public long resumedFrom() {
        return resumedFrom;
    }

    /** Whether it was there already and nothing was transferred. */
    public boolean isAlreadyThere() {
        return alreadyThere;
    }

    /** The digest that was checked, as {@code sha-256=HEX}; null without one. */
    public String digest() {
        return digest;
    }

    /** What it drew while its bytes moved, if a meter tells it. */
    public OptionalDouble joules() {
        return Progress.optional(joules);
    }

    /** Why it was given up; null if it is there. */
    public PeltonException error() {
        return error;
    }

    /** Whether it is there and verified. */
    public boolean isOk() {
        return error == null;
    }
}
