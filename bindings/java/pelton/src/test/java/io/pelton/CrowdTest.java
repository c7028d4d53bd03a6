package io.pelton;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CrowdTest {
    private static final int DOWNLOADS = 200;

    @TempDir
    File out;

    @Test
    void twoHundredDownloadsAtOnce() throws Exception {
        AtomicInteger files = new AtomicInteger();
        Listener counter = new Listener() {
            @Override
            public void onFile(Download download, FileReport file) {
                files.incrementAndGet();
            }
        };
        try (Origin origin = new Origin();
                PeltonClient client = PeltonClient.builder().proxy("").build()) {
            origin.awaitCrowd(DOWNLOADS);
            List<Download> downloads = new ArrayList<>();
            for (int i = 0; i < DOWNLOADS; i++) {
                origin.file("/" + i, Origin.content(20_000, i));
                downloads.add(client.enqueue(
                        Request.builder().url(origin.url("/" + i)).into(out).build(), counter));
            }
            for (int i = 0; i < DOWNLOADS; i++) {
                Report report = downloads.get(i).future().get(60, TimeUnit.SECONDS);
                assertEquals(String.valueOf(i), report.list().get(0).name(), "each future has its own report");
                byte[] bytes = Files.readAllBytes(new File(out, String.valueOf(i)).toPath());
                assertArrayEquals(Origin.content(20_000, i), bytes);
            }
        }
        assertEquals(DOWNLOADS, files.get());
    }
}
