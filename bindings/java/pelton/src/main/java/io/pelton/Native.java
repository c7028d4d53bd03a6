package io.pelton;

/**
 * The native half. Everything is a call down: the library never calls Java, so its threads are never attached.
 * Clients are numbers that the library gives, downloads numbers that {@link PeltonClient} gives.
 */
final class Native {
    static {
        NativeLibrary.load();
        initialise();
    }

    private Native() {}

    private static native void initialise();

    static native long openClient(String[] settings) throws PeltonException;

    static native void closeClient(long client);

    static native void start(long client, long download, String[] settings, int descriptor) throws PeltonException;

    static native void pause(long client, long download);

    static native void resume(long client, long download);

    static native void cancel(long client, long download);

    /** Closes the descriptor of a download that never started. */
    static native void closeDescriptor(int descriptor);

    /** Waits; null once the client is closed and all of its downloads are over. */
    static native Event nextEvent(long client);

    static native void setJoules(long client, double joules);

    static native void setWatts(long client, double watts);

    static native void setBattery(
            long client, long currentNow, long chargeCounter, long energyCounter, long millivolts, boolean charging);

    static native void forgetSample(long client);

    /** Only in libraries that were built for debugging. */
    static native void panicForTests() throws PeltonException;
}
