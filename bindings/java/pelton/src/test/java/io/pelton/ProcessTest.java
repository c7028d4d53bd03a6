package io.pelton;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Other processes and other class loaders. */
class ProcessTest {
    @TempDir
    File out;

    /** Downloads a URL into a directory, and says how far it is. */
    public static final class Child {
        public static void main(String[] args) throws Exception {
            // The origin's gate counts what it sends, and ranges that are cut are sent for nothing.
            PeltonClient.Builder oneStream = PeltonClient.builder().proxy("").maxStreamsPerFile(1);
            try (PeltonClient client = oneStream.build()) {
                Request request = Request.builder().url(args[0]).into(new File(args[1])).build();
                Listener speaker = new Listener() {
                    @Override
                    public void onProgress(Download download, Progress progress) {
                        System.out.println(progress.bytes());
                    }
                };
                // Whoever reads what it says waits no longer than this either.
                client.enqueue(request, speaker).future().get(60, TimeUnit.SECONDS);
            }
            System.out.println("complete");
        }
    }

    @Test
    void goesOnWhereAKilledProcessWas() throws Exception {
        byte[] bytes = Origin.content(8_000_000, 5);
        try (Origin origin = new Origin();
                PeltonClient client = PeltonClient.builder().proxy("").build()) {
            Origin.Item item = origin.file("/f", bytes).gateAt(bytes.length / 2);
            Process child = child(origin.url("/f"));
            try (BufferedReader says = output(child)) {
                while (Long.parseLong(says.readLine()) < bytes.length / 4) {}
            } finally {
                child.destroyForcibly().waitFor();
            }
            assertTrue(new File(out, "f.part").exists());
            item.open();

            Request request = Request.builder().url(origin.url("/f")).into(out).build();
            Report report = client.enqueue(request).future().get(30, TimeUnit.SECONDS);

            assertTrue(report.list().get(0).resumedFrom() > 0, "some of it was there");
            assertTrue(report.bytes() < bytes.length, "not all came again");
            assertArrayEquals(bytes, Files.readAllBytes(new File(out, "f").toPath()));
        }
    }

    @Test
    void findsALibraryThatIsInstalled() throws Exception {
        URL packed = Native.class.getResource("/META-INF/native/linux-x86_64/libpelton_jni.so");
        String folder = new File(packed.toURI()).getParent();
        try (Origin origin = new Origin()) {
            origin.file("/f", Origin.content(1000, 1));
            // Without a place for temporary files nothing can be unpacked.
            Process child =
                    child(origin.url("/f"), "-Djava.library.path=" + folder, "-Djava.io.tmpdir=/nonexistent");
            try (BufferedReader says = output(child)) {
                String last = "";
                for (String line = says.readLine(); line != null; line = says.readLine()) {
                    last = line;
                }
                assertEquals("complete", last);
            }
            assertEquals(0, child.waitFor());
        }
    }

    @Test
    void usesTheClassesOfItsOwnLoader() throws Exception {
        List<URL> path = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            path.add(new File(entry).toURI().toURL());
        }
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        try (Origin origin = new Origin();
                URLClassLoader loader = new URLClassLoader(
                        path.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            origin.file("/f", Origin.content(1000, 1));
            // The context has classes of the same names, which are others.
            assertEquals(PeltonClient.class, context.loadClass("io.pelton.PeltonClient"));
            Class<?> child = loader.loadClass(Child.class.getName());
            String[] args = {origin.url("/f"), out.getPath()};

            child.getMethod("main", String[].class).invoke(null, (Object) args);

            assertEquals(1000, new File(out, "f").length());
        }
    }

    private Process child(String url, String... options) throws Exception {
        String java = new File(System.getProperty("java.home"), "bin/java").getPath();
        List<String> command = new ArrayList<>(List.of(java, "-cp", System.getProperty("java.class.path")));
        command.addAll(Arrays.asList(options));
        command.addAll(List.of(Child.class.getName(), url, out.getPath()));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private static BufferedReader output(Process process) {
        return new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }
}
