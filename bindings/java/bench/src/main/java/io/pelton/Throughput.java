package io.pelton;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * The same list downloaded in turn by a Rust program and by Java, each in its own process: CPU seconds a gigabyte.
 *
 * <p>{@code Throughput RUST_PROGRAM DIRECTORY PAIRS URL...}
 */
public final class Throughput {
    private static final int WARM_UP = 5;

    private Throughput() {}

    public static void main(String[] args) throws Exception {
        File directory = new File(args[1]);
        int pairs = Integer.parseInt(args[2]);
        List<String> urls = Arrays.asList(args).subList(3, args.length);
        List<String> command = new ArrayList<>(List.of(args[0], new File(directory, "rust").getPath()));
        command.addAll(urls);
        Process rust = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        double[] ofRust = new double[pairs];
        double[] ofJava = new double[pairs];
        double[] ratios = new double[pairs];
        try (BufferedReader says =
                        new BufferedReader(new InputStreamReader(rust.getInputStream(), StandardCharsets.UTF_8));
                OutputStream asks = rust.getOutputStream();
                PeltonClient client = PeltonClient.builder()
                        .policy(Policy.FIXED)
                        .maxFiles(4)
                        .proxy("")
                        .noMeter()
                        .build()) {
            for (int i = -WARM_UP; i < pairs; i++) {
                double[] both = new double[2];
                // Which one goes first changes with each pair.
                for (int turn = 0; turn < 2; turn++) {
                    boolean isRust = (i & 1) == turn;
                    both[isRust ? 0 : 1] = isRust ? rust(says, asks) : java(client, urls, new File(directory, "java"));
                }
                if (i >= 0) {
                    ofRust[i] = both[0];
                    ofJava[i] = both[1];
                    ratios[i] = both[1] / both[0];
                    System.out.printf("%2d  rust %.4f  java %.4f  %.3f%n", i + 1, both[0], both[1], ratios[i]);
                }
            }
        } finally {
            rust.destroy();
        }
        System.out.printf(
                "CPU seconds a GB, medians of %d: rust %.4f, java %.4f%n", pairs, median(ofRust), median(ofJava));
        double sum = 0;
        double squares = 0;
        for (double ratio : ratios) {
            sum += Math.log(ratio);
            squares += Math.log(ratio) * Math.log(ratio);
        }
        double mean = sum / pairs;
        double error = Math.sqrt((squares / pairs - mean * mean) / (pairs - 1));
        System.out.printf(
                "java over rust in each pair: geometric mean %.3f (95 %%: %.3f to %.3f), median %.3f%n",
                Math.exp(mean), Math.exp(mean - 2 * error), Math.exp(mean + 2 * error), median(ratios));
    }

    private static double rust(BufferedReader says, OutputStream asks) throws Exception {
        asks.write('\n');
        asks.flush();
        String[] answer = says.readLine().split(" ");
        return Double.parseDouble(answer[2]) / Double.parseDouble(answer[0]) * 1e9;
    }

    private static double java(PeltonClient client, List<String> urls, File directory) throws Exception {
        Request request = Request.builder().urls(urls).into(directory).build();
        Report report = client.enqueue(request, new Listener() {}).future().get();
        try (Stream<Path> paths = Files.walk(directory.toPath())) {
            paths.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
        return report.cpuSeconds() / report.bytes() * 1e9;
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }
}
