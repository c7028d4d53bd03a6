package io.pelton;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.OptionalDouble;

/** What a download did. */
public final class Report {
    private final String policy;
    private final long files;
    private final long filesDone;
    private final long filesFailed;
    private final long bytes;
    private final double seconds;
    private final double bitsPerSecond;
    private final double joules;
    private final String energySource;
    private final long connections;
    private final long requests;
    private final long retries;
    private final double cpuSeconds;
    private final List<FileReport> list;
    private final String json;

    Report(
            String policy,
            long files,
            long filesDone,
            long filesFailed,
            long bytes,
            double seconds,
            double bitsPerSecond,
            double joules,
            String energySource,
            long connections,
            long requests,
            long retries,
            double cpuSeconds,
            FileReport[] list,
            String json) {
        this.policy = policy;
        this.files = files;
        this.filesDone = filesDone;
        this.filesFailed = filesFailed;
        this.bytes = bytes;
        this.seconds = seconds;
        this.bitsPerSecond = bitsPerSecond;
        this.joules = joules;
        this.energySource = energySource;
        this.connections = connections;
        this.requests = requests;
        this.retries = retries;
        this.cpuSeconds = cpuSeconds;
        this.list = Collections.unmodifiableList(Arrays.asList(list));
        this.json = json;
    }

    /** The policy by name. */
    public String policy() {
        return policy;
    }

    /** One entry for each file that is over, in the order in which they ended. */
    public List<FileReport> list() {
        return list;
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

    /** From the start to the last file's end. */
    public double seconds() {
        return seconds;
    }

    /** Bits of bodies over seconds. */
    public double bitsPerSecond() {
        return bitsPerSecond;
    }

    /** Energy of the download, its radio's tail included; empty if no meter told any. */
    public OptionalDouble joules() {
        return Progress.optional(joules);
    }

    /** Where joules come from: {@code measured: ...} or {@code modelled: ...}; null without a meter. */
    public String energySource() {
        return energySource;
    }

    /** Connections that were opened. */
    public long connections() {
        return connections;
    }

    /** Requests made. */
    public long requests() {
        return requests;
    }

    /** Requests made again. */
    public long retries() {
        return retries;
    }

    /** CPU time that the whole process spent meanwhile. */
    public double cpuSeconds() {
        return cpuSeconds;
    }

    /** All that is known of the run, its plan and its decisions too, as {@code pelton get --report} writes it. */
    public String toJson() {
        return json;
    }
}
