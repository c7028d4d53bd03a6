package io.pelton;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DownloadTest {
    @TempDir
    File out;

    private Origin origin;
    private PeltonClient client;

    @BeforeEach
    void start() throws Exception {
        origin = new Origin();
        client = PeltonClient.builder().proxy("").build();
    }

    @AfterEach
    void stop() {
        client.close();
        origin.close();
    }

    @Test
    void downloadsOneFile() throws Exception {
        byte[] bytes = Origin.content(300_000, 1);
        origin.file("/a.bin", bytes);

        Report report = run(Request.builder().url(origin.url("/a.bin")).into(out));

        assertEquals(1, report.files());
        assertEquals(1, report.filesDone());
        assertEquals(0, report.filesFailed());
        assertEquals(bytes.length, report.bytes());
        assertEquals("eht", report.policy());
        assertTrue(report.connections() >= 1 && report.requests() >= 1, "it needed the network");
        assertTrue(report.toJson().contains("\"decisions\":["), report.toJson());
        FileReport file = report.list().get(0);
        assertEquals("a.bin", file.name());
        assertEquals(origin.url("/a.bin"), file.url());
        assertEquals("HTTP/1.1", file.protocol());
        assertTrue(file.isOk());
        assertArrayEquals(bytes, read("a.bin"));
    }

    @Test
    void downloadsManyFilesOfWhichOneIsThere() throws Exception {
        List<String> urls = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            origin.file("/" + i, Origin.content(1000 + i, i));
            urls.add(origin.url("/" + i));
        }
        run(Request.builder().url(origin.url("/7")).into(out));

        Report report = run(Request.builder().urls(urls).into(out));

        assertEquals(40, report.filesDone());
        assertEquals(40, report.list().size());
        assertArrayEquals(Origin.content(1039, 39), read("39"));
    }

    @Test
    void takesAFileADigestAndHeaders() throws Exception {
        byte[] bytes = Origin.content(100_000, 2);
        origin.file("/b", bytes).requireHeader("X-Token", "s\u00e9same");
        StringBuilder hex = new StringBuilder();
        for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes)) {
            hex.append(String.format("%02x", b));
        }
        File target = new File(out, "sub/\u00fcber \ud83d\ude00.bin");

        Report report = run(Request.builder()
                .url(origin.url("/b"))
                .toFile(target)
                .digest("sha-256=" + hex)
                .header("X-Token", "s\u00e9same")
                .fsync(true));

        assertEquals(target.getName(), report.list().get(0).name());
        assertEquals("sha-256=" + hex, report.list().get(0).digest());
        assertArrayEquals(bytes, Files.readAllBytes(target.toPath()));
        Report again = run(Request.builder()
                .url(origin.url("/b"))
                .toFile(target)
                .digest("sha-256=" + hex)
                .header("X-Token", "s\u00e9same"));
        assertTrue(again.list().get(0).isAlreadyThere(), "its digest is right");
    }

    @Test
    void writesToADetachedDescriptorAndClosesIt() throws Exception {
        byte[] bytes = Origin.content(200_000, 3);
        origin.file("/c", bytes);
        File target = new File(out, "c");
        int descriptor = Descriptors.detach(new FileOutputStream(target));
        Request request = Request.builder().url(origin.url("/c")).toDescriptor(descriptor).build();

        client.enqueue(request).future().get(30, TimeUnit.SECONDS);

        assertArrayEquals(bytes, Files.readAllBytes(target.toPath()));
        assertNotEquals(target.getCanonicalPath(), Descriptors.target(descriptor));
        assertThrows(IllegalStateException.class, () -> client.enqueue(request), "a descriptor serves once");
    }

    @Test
    void followsListings() throws Exception {
        origin.listing("/d/", "one", "sub/");
        origin.listing("/d/sub/", "two");
        origin.file("/d/one", Origin.content(10, 1));
        origin.file("/d/sub/two", Origin.content(20, 2));

        Report report = run(Request.builder().url(origin.url("/d/")).into(out).recursive(true));

        assertEquals(2, report.filesDone());
        assertArrayEquals(Origin.content(20, 2), read("sub/two"));
    }

    private Report run(Request.Builder request) throws Exception {
        return client.enqueue(request.build()).future().get(30, TimeUnit.SECONDS);
    }

    private byte[] read(String name) throws Exception {
        return Files.readAllBytes(new File(out, name).toPath());
    }
}
