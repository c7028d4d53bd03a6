package io.pelton;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Locale;

/** Finds the native library: where the system keeps its own, else inside the jar. */
final class NativeLibrary {
    private static final String NAME = "pelton_jni";

    private NativeLibrary() {}

    static void load() {
        try {
            System.loadLibrary(NAME);
        } catch (UnsatisfiedLinkError notInstalled) {
            try {
                loadFromJar();
            } catch (IOException | UnsatisfiedLinkError error) {
                notInstalled.addSuppressed(error);
                throw notInstalled;
            }
        }
    }

    private static void loadFromJar() throws IOException {
        String file = System.mapLibraryName(NAME);
        String resource = "/META-INF/native/" + platform() + "/" + file;
        try (InputStream packed = NativeLibrary.class.getResourceAsStream(resource)) {
            if (packed == null) {
                throw new IOException("the jar holds no " + resource);
            }
            File unpacked = File.createTempFile("pelton", file);
            try {
                copy(packed, unpacked);
                System.load(unpacked.getPath());
            } finally {
                // A loaded library needs its file no more, except on Windows.
                if (!unpacked.delete()) {
                    unpacked.deleteOnExit();
                }
            }
        }
    }

    /** Such as {@code linux-x86_64}. */
    private static String platform() {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT).replace(' ', '-');
        String processor = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }

    private static void copy(InputStream from, File to) throws IOException {
        try (OutputStream out = new FileOutputStream(to)) {
            byte[] buffer = new byte[64 * 1024];
            for (int length = from.read(buffer); length >= 0; length = from.read(buffer)) {
                out.write(buffer, 0, length);
            }
        }
    }
}
