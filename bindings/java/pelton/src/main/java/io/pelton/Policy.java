package io.pelton;

/** What a download is optimised for. */
public enum Policy {
    /** The least energy. */
    LOWE("lowe"),
    /** The most throughput. */
    HAT("hat"),
    /** The most throughput per joule. */
    EHT("eht"),
    /**
     * Exactly {@link PeltonClient.Builder#maxFiles} files at once with
     * {@link PeltonClient.Builder#maxStreamsPerFile} streams each; one if they are not set.
     */
    FIXED("fixed");

    final String label;

    Policy(String label) {
        this.label = label;
    }
}
