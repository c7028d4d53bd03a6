package io.pelton;

import java.io.IOException;

/** Why a download, or one file of it, failed: what, on which URL or file, why, and what to do. */
public final class PeltonException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Something else, such as a directory listing that is none, or a fault of pelton. */
    public static final int OTHER = 1;
    /** The request is malformed or contradicts itself. */
    public static final int USAGE = 2;
    /** 404 or 410. */
    public static final int NOT_FOUND = 3;
    /** No address, no connection, TLS, a time-out, a body that ended too early. */
    public static final int NETWORK = 6;
    /** Several files failed for different reasons. */
    public static final int UNFINISHED = 7;
    /** What is there can't be continued. */
    public static final int CANNOT_RESUME = 8;
    /** The file system is full. */
    public static final int DISK_FULL = 9;
    /** The target exists and differs. */
    public static final int EXISTS = 13;
    /** A file could not be created, written or renamed. */
    public static final int FILE_IO = 17;
    /** An HTTP status that says no, or redirects that lead nowhere. */
    public static final int HTTP_STATUS = 22;
    /** 401, 403 or 407. */
    public static final int AUTHENTICATION = 24;
    /** The server has too much to do: 429 or 503. */
    public static final int OVERLOADED = 29;
    /** The bytes are not those that the digest promised. */
    public static final int CHECKSUM = 32;
    /** The download was cancelled. */
    public static final int CANCELLED = 130;

    private final int code;
    private final String kind;
    private final boolean retryable;
    private transient Report report;

    PeltonException(int code, String kind, boolean retryable, String message) {
        super(message);
        this.code = code;
        this.kind = kind;
        this.retryable = retryable;
    }

    static PeltonException cancelled(String message) {
        return new PeltonException(CANCELLED, "cancelled", false, message);
    }

    /** What sort of failure it was: one of the constants of this class, which are pelton's exit codes. */
    public int code() {
        return code;
    }

    /** The same in a finer grain, by name: {@code timeout}, {@code short_body}, {@code tls}. */
    public String kind() {
        return kind;
    }

    /** Whether the same request may succeed later; of several failures, whether that holds for each. */
    public boolean isRetryable() {
        return retryable;
    }

    /** What is there nevertheless; null if the download failed before its first file, and for one file. */
    public Report report() {
        return report;
    }

    PeltonException withReport(Report report) {
        this.report = report;
        return this;
    }
}
