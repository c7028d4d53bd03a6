package io.pelton;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each code of {@link PeltonException}; {@link ControlTest} has those of cancelling. */
class FailureTest {
    @TempDir
    File out;

    private Origin origin;
    private PeltonClient client;

    @BeforeEach
    void start() throws Exception {
        origin = new Origin();
        client = PeltonClient.builder()
                .proxy("")
                .tries(1)
                .retryWait(1, TimeUnit.MILLISECONDS)
                .build();
    }

    @AfterEach
    void stop() {
        client.close();
        origin.close();
    }

    @Test
    void usage() {
        expect(PeltonException.USAGE, "usage", false, "ftp://127.0.0.1/a");
        expect(PeltonException.USAGE, "usage", false, "no URL");
        expect(PeltonException.USAGE, "usage", false, Request.builder().into(out));
        expect(PeltonException.USAGE, "usage", false, to("/a").header("two\nlines", "x"));
        expect(PeltonException.USAGE, "usage", false, to("/a").digest("sha-256=beef"));
        expect(PeltonException.USAGE, "usage", false, to("/a").url(origin.url("/b")).toFile(new File(out, "x")));
    }

    @Test
    void usageOfAClient() {
        PeltonClient.Builder[] wrong = {
            PeltonClient.builder().userAgent("a\nb"),
            PeltonClient.builder().maxFiles(-1),
            PeltonClient.builder().timeout(0, TimeUnit.SECONDS),
            PeltonClient.builder().radio("carrier pigeon"),
            PeltonClient.builder().header("no name\u0000", "x"),
        };
        for (PeltonClient.Builder builder : wrong) {
            PeltonException thrown = assertThrows(PeltonException.class, builder::build);
            assertEquals(PeltonException.USAGE, thrown.code(), thrown.getMessage());
        }
        PeltonException thrown = assertThrows(
                PeltonException.class, () -> PeltonClient.builder().radio("carrier pigeon").build());
        assertTrue(thrown.getMessage().contains("carrier pigeon"), thrown.getMessage());
        assertThrows(NullPointerException.class, () -> Request.builder().url(null));
    }

    @Test
    void notFound() {
        PeltonException failure = expect(PeltonException.NOT_FOUND, "not_found", false, origin.url("/gone"));
        assertTrue(failure.getMessage().contains(origin.url("/gone")), failure.getMessage());
        assertEquals(1, failure.report().filesFailed());
        PeltonException ofFile = failure.report().list().get(0).error();
        assertEquals(PeltonException.NOT_FOUND, ofFile.code());
        assertFalse(failure.report().list().get(0).isOk());
    }

    @Test
    void networkRefused() throws Exception {
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
        expect(PeltonException.NETWORK, "connect", true, "http://127.0.0.1:" + port + "/a");
    }

    @Test
    void networkReset() throws Exception {
        ServerSocket server = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
        Thread resets = new Thread(() -> resetAll(server));
        resets.start();
        try {
            expect(PeltonException.NETWORK, "reset", true, "http://127.0.0.1:" + server.getLocalPort() + "/a");
        } finally {
            server.close();
            resets.join();
        }
    }

    /** Reads something of each request and resets its connection, until the server is closed. */
    private static void resetAll(ServerSocket server) {
        while (true) {
            try (Socket socket = server.accept()) {
                socket.getInputStream().read();
                socket.setSoLinger(true, 0);
            } catch (IOException closed) {
                return;
            }
        }
    }

    @Test
    void networkShortBody() {
        origin.file("/short", Origin.content(1000, 1)).cutAt(0);
        expect(PeltonException.NETWORK, "short_body", true, origin.url("/short"));
    }

    @Test
    void networkTimeout() throws Exception {
        origin.file("/slow", Origin.content(1000, 1)).gateAt(0);
        client.close();
        client = PeltonClient.builder().proxy("").tries(1).timeout(100, TimeUnit.MILLISECONDS).build();
        expect(PeltonException.NETWORK, "timeout", true, origin.url("/slow"));
    }

    @Test
    void unfinished() {
        origin.file("/good", Origin.content(10, 1));
        Request.Builder three = to("/good").url(origin.url("/gone")).url(origin.url("/status/401"));
        PeltonException failure = expect(PeltonException.UNFINISHED, "unfinished", false, three);
        assertEquals(1, failure.report().filesDone());
        assertEquals(2, failure.report().filesFailed());
        assertTrue(failure.getMessage().startsWith("2 of 3 files failed"), failure.getMessage());
    }

    @Test
    void cannotResume() throws Exception {
        origin.file("/changing", Origin.content(100_000, 1)).cutAt(50_000).changes();
        int descriptor = Descriptors.detach(new FileOutputStream(new File(out, "x")));
        Request.Builder request = Request.builder().url(origin.url("/changing")).toDescriptor(descriptor);
        client.close();
        client = PeltonClient.builder().proxy("").retryWait(1, TimeUnit.MILLISECONDS).build();
        expect(PeltonException.CANNOT_RESUME, "cannot_resume", false, request);
    }

    @Test
    void diskFull() throws Exception {
        origin.file("/big", Origin.content(100_000, 1));
        int descriptor = Descriptors.detach(new FileOutputStream("/dev/full"));
        Request.Builder request = Request.builder().url(origin.url("/big")).toDescriptor(descriptor);
        expect(PeltonException.DISK_FULL, "disk_full", false, request);
    }

    @Test
    void exists() throws Exception {
        origin.file("/mine", Origin.content(100, 1));
        Files.write(new File(out, "mine").toPath(), new byte[3]);
        expect(PeltonException.EXISTS, "exists", false, origin.url("/mine"));
        try (PeltonClient bold = PeltonClient.builder().proxy("").overwrite(true).build()) {
            bold.enqueue(to("/mine").build()).future().get(30, TimeUnit.SECONDS);
        } catch (Exception failure) {
            throw new AssertionError(failure);
        }
        assertEquals(100, new File(out, "mine").length());
    }

    @Test
    void fileIo() throws Exception {
        origin.file("/f", Origin.content(100, 1));
        File noDirectory = new File(out, "file");
        Files.write(noDirectory.toPath(), new byte[3]);
        Request.Builder request = Request.builder().url(origin.url("/f")).into(new File(noDirectory, "below"));
        expect(PeltonException.FILE_IO, "file_io", false, request);
    }

    @Test
    void httpStatus() {
        expect(PeltonException.HTTP_STATUS, "http_status", false, origin.url("/status/418"));
        expect(PeltonException.HTTP_STATUS, "server_error", true, origin.url("/status/500"));
        expect(PeltonException.HTTP_STATUS, "redirect", false, origin.url("/loop"));
    }

    @Test
    void authentication() {
        expect(PeltonException.AUTHENTICATION, "auth", false, origin.url("/status/401"));
        expect(PeltonException.AUTHENTICATION, "auth", false, origin.url("/status/403"));
    }

    @Test
    void overloaded() {
        expect(PeltonException.OVERLOADED, "overloaded", true, origin.url("/status/503"));
        expect(PeltonException.OVERLOADED, "overloaded", true, origin.url("/status/429"));
    }

    @Test
    void checksum() {
        origin.file("/f", Origin.content(100, 1));
        expect(PeltonException.CHECKSUM, "checksum", false, to("/f").digest("md5=00000000000000000000000000000000"));
        assertFalse(new File(out, "f").exists());
    }

    @Test
    void other() {
        expect(PeltonException.OTHER, "listing", false, origin.url("/page/"));
    }

    @Test
    void aPanicBecomesAnException() {
        Throwable thrown = assertThrows(Throwable.class, Native::panicForTests);
        // Only libraries that were built for debugging have this method.
        assumeFalse(thrown instanceof UnsatisfiedLinkError, "the library was built for release");
        PeltonException failure = (PeltonException) thrown;
        assertEquals(PeltonException.OTHER, failure.code());
        assertEquals("internal", failure.kind());
        assertTrue(failure.getMessage().contains("asked to panic"), failure.getMessage());
    }

    @Test
    void oldNumbersFindNothing() {
        Native.pause(client.handle(), 999);
        Native.cancel(-5, 1);
        Native.closeClient(1L << 40);
        Native.setJoules(0, 1.0);
        assertEquals(null, Native.nextEvent(0));
        PeltonException thrown =
                assertThrows(PeltonException.class, () -> Native.start(0, 1, new String[0], -1));
        assertEquals(PeltonException.USAGE, thrown.code());
    }

    private Request.Builder to(String path) {
        return Request.builder().url(origin.url(path)).into(out);
    }

    private PeltonException expect(int code, String kind, boolean retryable, String url) {
        return expect(code, kind, retryable, Request.builder().url(url).into(out));
    }

    private PeltonException expect(int code, String kind, boolean retryable, Request.Builder request) {
        ExecutionException thrown = assertThrows(
                ExecutionException.class, () -> client.enqueue(request.build()).future().get(30, TimeUnit.SECONDS));
        PeltonException failure = (PeltonException) thrown.getCause();
        assertEquals(code, failure.code(), failure.toString());
        assertEquals(kind, failure.kind(), failure.toString());
        assertEquals(retryable, failure.isRetryable(), failure.toString());
        return failure;
    }
}
