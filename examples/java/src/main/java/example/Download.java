package example;

import io.pelton.FileReport;
import io.pelton.Listener;
import io.pelton.PeltonClient;
import io.pelton.PeltonException;
import io.pelton.Policy;
import io.pelton.Progress;
import io.pelton.Report;
import io.pelton.Request;
import java.io.File;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;

/** Downloads the URLs of its arguments into {@code out}. */
public final class Download {
    private Download() {}

    public static void main(String[] urls) throws Exception {
        Request request = Request.builder().urls(Arrays.asList(urls)).into(new File("out")).build();
        try (PeltonClient client = PeltonClient.builder().policy(Policy.EHT).build()) {
            Report report = client.enqueue(request, new Printer()).future().get();
            System.out.printf("%d files in %.1f s%n", report.filesDone(), report.seconds());
            report.joules().ifPresent(joules -> System.out.printf("%.1f J (%s)%n", joules, report.energySource()));
        } catch (ExecutionException failed) {
            PeltonException failure = (PeltonException) failed.getCause();
            System.err.println(failure.getMessage());
            System.exit(failure.code());
        }
    }

    private static final class Printer implements Listener {
        @Override
        public void onProgress(io.pelton.Download download, Progress now) {
            System.out.printf("%.1f MB, %.1f Mbit/s%n", now.bytes() / 1e6, now.bitsPerSecond() / 1e6);
        }

        @Override
        public void onFile(io.pelton.Download download, FileReport file) {
            System.out.println(file.name() + (file.isOk() ? " is there" : ": " + file.error().getMessage()));
        }
    }
}
