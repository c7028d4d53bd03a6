package io.pelton;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DownloadTest {
    @TempDir
    File out;

    @Test
    void downloadsOneFile() throws Exception {
        try (Origin origin = new Origin();
                PeltonClient client = PeltonClient.builder().proxy("").build()) {
            byte[] bytes = Origin.content(300_000, 1);
            origin.file("/a.bin", bytes);
            Request request = Request.builder().url(origin.url("/a.bin")).into(out).build();

            Report report = client.enqueue(request).future().get(30, TimeUnit.SECONDS);

            assertEquals(1, report.filesDone());
            assertEquals(bytes.length, report.bytes());
            assertEquals("a.bin", report.list().get(0).name());
            assertArrayEquals(bytes, Files.readAllBytes(new File(out, "a.bin").toPath()));
        }
    }
}
