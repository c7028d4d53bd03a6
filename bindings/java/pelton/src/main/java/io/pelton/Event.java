package io.pelton;

/** Something that a download tells; made by the native half. */
final class Event {
    final long download;
    /** A {@link Progress}, a {@link FileReport}, or at the end a {@link Report} if there is one. */
    final Object what;
    /** What the download failed with, at its end. */
    final PeltonException failure;

    Event(long download, Object what, PeltonException failure) {
        this.download = download;
        this.what = what;
        this.failure = failure;
    }
}
