package io.pelton;

/**
 * What happens to a download. One download's calls come one after the other, on the executor that was given to
 * {@link PeltonClient#enqueue}, else on the client's own thread, which then must not be kept waiting.
 */
public interface Listener {
    /** At most ten times a second, and at the end; what is outdated when the executor gets to it is left out. */
    default void onProgress(Download download, Progress progress) {}

    /** A file is there, or was given up. */
    default void onFile(Download download, FileReport file) {}

    /** Every file is there. */
    default void onComplete(Download download, Report report) {}

    /** Not every file is there: {@link PeltonException#report()} knows which are. */
    default void onFailure(Download download, PeltonException failure) {}
}
