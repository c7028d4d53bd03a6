package io.pelton;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** A server of files on this machine, which takes ranges and misbehaves where it is told to. */
final class Origin implements Closeable {
    private static final int PIECE = 16 * 1024;

    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Map<String, Item> items = new ConcurrentHashMap<>();
    private final AtomicInteger requests = new AtomicInteger();
    private volatile CountDownLatch crowd = new CountDownLatch(0);

    Origin() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1024);
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    /** A file that anyone can compute. */
    static byte[] content(int size, long seed) {
        byte[] bytes = new byte[size];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    /** A directory as nginx shows it. */
    void listing(String path, String... names) {
        StringBuilder page = new StringBuilder("<html><head><title>Index of " + path + "</title></head><body>");
        page.append("<h1>Index of ").append(path).append("</h1><hr><pre><a href=\"../\">../</a>\n");
        for (String name : names) {
            page.append("<a href=\"" + name + "\">" + name + "</a>     20-Nov-2026 10:00      10\n");
        }
        file(path, page.append("</pre><hr></body></html>").toString().getBytes(UTF_8)).html = true;
    }

    String url(String path) {
        return "http://127.0.0.1:" + server.getAddress().getPort() + path;
    }

    Item file(String path, byte[] bytes) {
        Item item = new Item(bytes);
        items.put(path, item);
        return item;
    }

    /** Answers nobody before this many have asked. */
    void awaitCrowd(int requests) {
        crowd = new CountDownLatch(requests);
    }

    /** Requests so far. */
    int requests() {
        return requests.get();
    }

    @Override
    public void close() {
        items.values().forEach(Item::open);
        server.stop(0);
        threads.shutdownNow();
    }

    private void answer(HttpExchange exchange) throws IOException {
        requests.incrementAndGet();
        CountDownLatch others = crowd;
        others.countDown();
        try {
            others.await();
        } catch (InterruptedException closed) {
            throw new IOException(closed);
        }
        String path = exchange.getRequestURI().getPath();
        Item item = items.get(path);
        try {
            if (path.startsWith("/status/")) {
                exchange.sendResponseHeaders(Integer.parseInt(path.substring("/status/".length())), -1);
            } else if (path.equals("/loop")) {
                exchange.getResponseHeaders().set("Location", url("/loop"));
                exchange.sendResponseHeaders(302, -1);
            } else if (path.equals("/page/")) {
                exchange.getResponseHeaders().set("Content-Type", "image/png");
                exchange.sendResponseHeaders(200, -1);
            } else if (item == null) {
                exchange.sendResponseHeaders(404, -1);
            } else {
                item.answer(exchange);
            }
        } finally {
            exchange.close();
        }
    }

    /** A file, and what is wrong with it. */
    static final class Item {
        private final byte[] bytes;
        private final AtomicLong sent = new AtomicLong();
        private final CountDownLatch reached = new CountDownLatch(1);
        private final CountDownLatch gate = new CountDownLatch(1);
        private final AtomicInteger version = new AtomicInteger();
        private volatile long gateAt = Long.MAX_VALUE;
        private volatile long cutAt = Long.MAX_VALUE;
        private volatile boolean changes;
        private volatile boolean html;
        private volatile String[] required;

        private Item(byte[] bytes) {
            this.bytes = bytes;
        }

        /** Sends nothing beyond this many bytes until {@link #open}. */
        Item gateAt(long bytes) {
            gateAt = bytes;
            return this;
        }

        /** Closes the connection after this many bytes of each body. */
        Item cutAt(long bytes) {
            cutAt = bytes;
            return this;
        }

        /** Is another version with each request. */
        Item changes() {
            changes = true;
            return this;
        }

        /** Answers 403 without this header. */
        Item requireHeader(String name, String value) {
            required = new String[] {name, value};
            return this;
        }

        /** Waits until the bytes before the gate are sent. */
        void awaitGate() throws InterruptedException {
            if (!reached.await(30, TimeUnit.SECONDS)) {
                throw new AssertionError("the gate was not reached");
            }
        }

        void open() {
            gate.countDown();
        }

        /** Body bytes that were sent. */
        long sent() {
            return sent.get();
        }

        private void answer(HttpExchange exchange) throws IOException {
            if (required != null && !required[1].equals(utf8(exchange.getRequestHeaders().getFirst(required[0])))) {
                exchange.sendResponseHeaders(403, -1);
                return;
            }
            if (html) {
                exchange.getResponseHeaders().set("Content-Type", "text/html");
            }
            int now = changes ? version.incrementAndGet() : 0;
            byte[] bytes = this.bytes.clone();
            bytes[0] += (byte) now;
            String etag = "\"" + bytes.length + "-" + now + "\"";
            exchange.getResponseHeaders().set("ETag", etag);
            exchange.getResponseHeaders().set("Last-Modified", "Fri, 20 Nov 2026 10:00:00 GMT");
            exchange.getResponseHeaders().set("Accept-Ranges", "bytes");
            int from = 0;
            int until = bytes.length;
            String range = exchange.getRequestHeaders().getFirst("Range");
            if (range != null && range.startsWith("bytes=")) {
                String[] ends = range.substring("bytes=".length()).split("-", 2);
                from = Integer.parseInt(ends[0]);
                until = ends[1].isEmpty() ? until : Math.min(until, Integer.parseInt(ends[1]) + 1);
                String whole = "bytes " + from + "-" + (until - 1) + "/" + bytes.length;
                exchange.getResponseHeaders().set("Content-Range", whole);
            }
            int status = range == null ? 200 : 206;
            if (exchange.getRequestMethod().equals("HEAD")) {
                exchange.getResponseHeaders().set("Content-Length", String.valueOf(until - from));
                exchange.sendResponseHeaders(status, -1);
                return;
            }
            exchange.sendResponseHeaders(status, until == from ? -1 : until - from);
            OutputStream body = exchange.getResponseBody();
            for (int at = from; at < until; ) {
                int length = (int) Math.min(Math.min(PIECE, until - at), cutAt - (at - from));
                if (length <= 0) {
                    // Closing the exchange before its body is whole closes the connection.
                    return;
                }
                if (sent.addAndGet(length) > gateAt) {
                    waitAtGate();
                }
                body.write(bytes, at, length);
                body.flush();
                at += length;
            }
        }

        /** The server's class reads header fields as Latin-1. */
        private static String utf8(String field) {
            return field == null ? null : new String(field.getBytes(ISO_8859_1), UTF_8);
        }

        private void waitAtGate() {
            reached.countDown();
            try {
                gate.await();
            } catch (InterruptedException closed) {
                throw new UncheckedIOException(new IOException(closed));
            }
        }
    }
}
