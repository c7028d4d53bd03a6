use pelton_core::connection::Protocol;
use pelton_core::events::{DecisionMade, ErrorReport, LinkReport};

use super::*;

fn file(name: &str) -> FileReport {
    FileReport {
        at_s: 1.5,
        name: name.to_owned(),
        url: format!("http://h/{name}"),
        bytes: 2_000_000,
        seconds: 0.5,
        connections: 4,
        protocol: Some(Protocol::Http11),
        resumed_from: 0,
        restarts: 0,
        already_there: false,
        digest: None,
        energy_j: None,
        throughput_per_joule: None,
        ok: true,
        error: None,
    }
}

fn failed(name: &str) -> FileReport {
    let message = format!("http://h/{name}: HTTP 404 Not Found");
    let error = ErrorReport { code: 3, kind: "not_found", retryable: false, message };
    FileReport { ok: false, error: Some(Box::new(error)), ..file(name) }
}

fn totals() -> Summary {
    Summary {
        policy: "eht".to_owned(),
        files: 221,
        files_done: 221,
        files_failed: 0,
        bytes: 40_400_000,
        seconds: 9.21,
        throughput_bps: 35.1e6,
        energy_j: Some(14.2),
        energy_radio_j: None,
        energy_cpu_j: None,
        energy_base_j: None,
        energy_source: Some("modelled: wifi+cpu".to_owned()),
        throughput_per_joule: Some(2.5e6),
        clusters: Vec::new(),
        connections: 24,
        requests: 230,
        retries: 1,
        cpu_s: 0.4,
        exit_code: 0,
        error: None,
    }
}

#[test]
fn the_summary_is_one_line_with_the_source_of_its_joules() {
    assert_eq!(
        summary(&totals(), 0),
        "221 files, 40.4 MB in 9.21 s: 35.1 Mbit/s, 14.2 J (modelled: wifi+cpu), \
         24 connections, 1 retry"
    );
    let unmetered = Summary { energy_j: None, files_done: 3, retries: 0, ..totals() };
    assert_eq!(
        summary(&unmetered, 0),
        "3 of 221 files, 40.4 MB in 9.21 s: 35.1 Mbit/s, 24 connections"
    );
    let line = summary(&totals(), 200);
    assert!(line.starts_with("221 files, 200 already there, 40.4 MB in 9.21 s: "), "{line}");
}

#[test]
fn the_table_of_failures_names_each_and_ends_somewhere() {
    let files = [file("good"), failed("a"), failed("bcd")];
    assert_eq!(
        failures(&files, 3),
        "2 of 3 files failed:\n  a    http://h/a: HTTP 404 Not Found\n  \
         bcd  http://h/bcd: HTTP 404 Not Found\n"
    );
    assert_eq!(failures(&[file("good")], 1), "");
    let mut interrupted = failed("a");
    interrupted.error.as_mut().unwrap().kind = "cancelled";
    assert_eq!(failures(&[interrupted], 1), "");
    let many: Vec<FileReport> = (0..30).map(|i| failed(&format!("f{i}"))).collect();
    let text = failures(&many, 30);
    assert_eq!(text.lines().count(), SHOWN_FAILURES + 2);
    assert!(text.contains("and 10 more"));
}

#[test]
fn files_and_decisions_are_told_in_a_line() {
    let told = |event| describe(&event).unwrap();
    assert_eq!(
        told(RunEvent::File(FileReport { resumed_from: 1_000_000, ..file("a") })),
        "[1.50 s] a: 2.00 MB in 0.50 s, 1.00 MB were there, HTTP/1.1, 4 connections"
    );
    let kept = FileReport { already_there: true, ..file("a") };
    assert_eq!(told(RunEvent::File(kept)), "[1.50 s] a: already there");
    assert_eq!(told(RunEvent::File(failed("a"))), "[1.50 s] a: http://h/a: HTTP 404 Not Found");
    let allocation = AllocationReport {
        cluster: "small".to_owned(),
        pipelining: 1,
        parallelism: 1,
        concurrency: 9,
        spare_streams: 0,
        active_files: 0,
        active_streams: 0,
    };
    let decision = DecisionMade {
        at_s: 0.0,
        allocations: vec![allocation],
        wanted_connections: 9,
        reason: "why".to_owned(),
        throughput_bps: 0.0,
        energy_j: None,
    };
    assert_eq!(told(RunEvent::Decision(decision)), "[0.00 s] why -> small: 9 files x 1 stream");
    assert_eq!(describe(&RunEvent::Summary(totals())), None);
}

#[test]
fn a_plan_says_what_and_why() {
    let made = Plan {
        schema: 1,
        policy: "lowe".to_owned(),
        files: 2,
        files_of_unknown_size: 1,
        bytes: 1_000_000,
        link: LinkReport {
            rtt_s: 0.2,
            bandwidth_bps: 50e6,
            bdp_bytes: 1_250_000,
            stream_window_bytes: 65_536,
        },
        clusters: Vec::new(),
        parameters: Vec::new(),
        wanted_connections: 1,
        reason: "least energy".to_owned(),
        energy_source: "modelled: cpu".to_owned(),
    };
    assert_eq!(
        plan(&made),
        "2 files, 1.00 MB (1 of unknown size)\n\
         link      50.0 Mbit/s x 200.0 ms = 1.25 MB, 65.5 kB a stream\n\
         because   least energy\n\
         joules    modelled: cpu\n"
    );
}

#[test]
fn times_are_short() {
    assert_eq!(span(4.208), "4.21 s");
    assert_eq!(span(3_725.2), "1h 2m 5s");
}

#[test]
fn spare_channels_are_shown_as_the_streams_that_they_become() {
    let of = |concurrency, parallelism, spare_streams| {
        let (cluster, pipelining) = ("large".to_owned(), 1);
        allocation(&AllocationReport {
            cluster,
            pipelining,
            parallelism,
            concurrency,
            spare_streams,
            active_files: 0,
            active_streams: 0,
        })
    };
    assert_eq!(of(1, 1, 15), "large: 1 file x 16 streams");
    assert_eq!(of(3, 2, 7), "large: 3 files x 2 streams + 7");
    assert_eq!(of(3, 2, 0), "large: 3 files x 2 streams");
}

#[test]
fn what_failed_without_a_name_has_that_of_its_url() {
    for (url, shown) in [("http://h/d/", "(listing)"), ("http://h/d/SHA256SUMS", "SHA256SUMS")] {
        let nameless = FileReport { url: url.to_owned(), name: String::new(), ..failed("x") };
        let line = describe(&RunEvent::File(nameless.clone())).unwrap();
        assert!(line.starts_with(&format!("[1.50 s] {shown}: http://")), "{line}");
        let text = failures(&[nameless], 1);
        assert!(text.lines().nth(1).unwrap().trim_start().starts_with(shown), "{text}");
    }
}

#[test]
fn options_that_the_library_names_are_shown_as_flags() {
    let error = pelton_core::catalog::parse_list(&format!("{}  a.iso\n", "0".repeat(64)), None);
    assert!(error.unwrap_err().message().ends_with("with `base-url`"));
    for (told, shown) in [
        ("a exists; use `overwrite` to replace it", "a exists; use --overwrite to replace it"),
        ("give it with `cert` and `key`", "give it with --cert and --key"),
        ("raise `ulimit -n`", "raise `ulimit -n`"),
        ("no options", "no options"),
    ] {
        assert_eq!(with_flags(told), shown);
    }
}
