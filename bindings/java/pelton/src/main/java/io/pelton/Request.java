package io.pelton;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/** What to download, and where to. */
public final class Request {
    private static final int NONE = -1;

    private final String[] settings;
    private final Set<Constraint> constraints;
    private final boolean hasDescriptor;
    private final AtomicInteger descriptor;

    private Request(Builder builder) {
        this.settings = builder.settings.toArray();
        this.constraints = builder.constraints.isEmpty()
                ? Collections.<Constraint>emptySet()
                : EnumSet.copyOf(builder.constraints);
        this.hasDescriptor = builder.descriptor != NONE;
        this.descriptor = new AtomicInteger(builder.descriptor);
    }

    /** A request to be filled in. */
    public static Builder builder() {
        return new Builder();
    }

    String[] settings() {
        return settings;
    }

    Set<Constraint> constraints() {
        return constraints;
    }

    /** The descriptor, which the caller owns from here on; negative without one. */
    int takeDescriptor() {
        int taken = descriptor.getAndSet(NONE);
        if (hasDescriptor && taken == NONE) {
            throw new IllegalStateException("a request with a descriptor serves one download");
        }
        return taken;
    }

    /** Makes a {@link Request}. Without a target, files go to the current directory. */
    public static final class Builder {
        private final Settings settings = new Settings();
        private final Set<Constraint> constraints = EnumSet.noneOf(Constraint.class);
        private int descriptor = NONE;

        private Builder() {}

        /** Adds a file, or with a {@code /} at its end the files of a directory listing. */
        public Builder url(String url) {
            settings.add("url", url);
            return this;
        }

        /** Adds several: see {@link #url}. */
        public Builder urls(Collection<String> urls) {
            urls.forEach(this::url);
            return this;
        }

        /** Files go below this directory, which is made if it is missing. */
        public Builder into(File directory) {
            settings.add("directory", directory.getAbsolutePath());
            return this;
        }

        /** The one file goes here. */
        public Builder toFile(File file) {
            File whole = file.getAbsoluteFile();
            settings.add("directory", String.valueOf(whole.getParent()));
            settings.add("name", whole.getName());
            return this;
        }

        /**
         * The one file goes to this file descriptor, in order and over one stream, from its present position.
         * The descriptor belongs to the request: detach it first ({@code ParcelFileDescriptor.detachFd()}).
         * It is closed when the download is over. Nothing is kept for a later download to go on with. What lies
         * behind the last byte in a longer file stays: open it truncated (mode {@code "wt"} on Android).
         */
        public Builder toDescriptor(int descriptor) {
            if (descriptor < 0) {
                throw new IllegalArgumentException("no descriptor: " + descriptor);
            }
            this.descriptor = descriptor;
            return this;
        }

        /** What the bytes of the one file must hash to, such as {@code sha-256=HEX}. */
        public Builder digest(String digest) {
            settings.add("digest", digest);
            return this;
        }

        /** A header for these files alone. */
        public Builder header(String name, String value) {
            settings.add("header", name + ": " + value);
            return this;
        }

        /** Whether listings are followed into sub-directories. Default: they are not. */
        public Builder recursive(boolean recursive) {
            settings.set("recursive", recursive);
            return this;
        }

        /** Whether what an earlier download has left is thrown away, and nothing is kept. Default: no. */
        public Builder startOver(boolean startOver) {
            settings.set("start-over", startOver);
            return this;
        }

        /** Whether a file counts as complete only once it is on the disk. Default: no. */
        public Builder fsync(boolean fsync) {
            settings.set("fsync", fsync);
            return this;
        }

        /** Moves only while these hold: see {@link PeltonClient#setConstraints}. */
        public Builder requires(Constraint... constraints) {
            List<Constraint> more = Arrays.asList(constraints);
            this.constraints.addAll(more);
            return this;
        }

        /** The request. What is wrong with it shows in the download's future. */
        public Request build() {
            return new Request(this);
        }
    }

    /** Names and values in turn, as they cross the border. */
    static final class Settings {
        private final List<String> pairs = new ArrayList<>();

        void add(String name, String value) {
            if (value == null) {
                throw new NullPointerException(name);
            }
            pairs.add(name);
            pairs.add(value);
        }

        void set(String name, Object value) {
            add(name, String.valueOf(value));
        }

        String[] toArray() {
            return pairs.toArray(new String[0]);
        }
    }
}
