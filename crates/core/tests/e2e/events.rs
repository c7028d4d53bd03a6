//! What a run tells: its order, and its JSON as documented.

use std::collections::HashMap;
use std::time::Duration;

use pelton_core::RunEvent;
use pelton_core::catalog::FileSpec;
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};
use pelton_lab::sets;
use serde_json::Value;

use crate::support::{builder, client, policies, recursively, run_with_events};

fn origin() -> Origin {
    let storm = Storm { status: 404, requests: u64::MAX, retry_after: None };
    let missing = OriginBehaviour { storm: Some(storm), ..OriginBehaviour::default() };
    let files = sets::demo_mixed(1);
    let behaviour_by_path = vec![(files[3].path.clone(), missing)];
    Origin::start(OriginConfig { files, behaviour_by_path, ..OriginConfig::default() }).unwrap()
}

#[test]
fn a_plan_first_and_a_summary_last() {
    for (policy, builder) in policies() {
        let origin = origin();
        let out = tempfile::tempdir().unwrap();
        let client = builder.build().unwrap();
        let download = client.download([origin.url("/")]).walk(recursively());
        let (report, events) = run_with_events(download.into_dir(out.path()));
        let [RunEvent::Plan(plan), between @ .., RunEvent::Summary(summary)] = events.as_slice()
        else {
            panic!("{policy}: {events:?}");
        };
        assert_eq!(report.plan.as_ref(), Some(plan));
        assert_eq!(&report.summary, summary);
        let mut started = HashMap::new();
        let mut files = Vec::new();
        let mut decisions = Vec::new();
        let mut clock = 0.0;
        for event in between {
            let at = match event {
                RunEvent::Start(start) => {
                    assert!(started.insert(&start.name, start.at_s).is_none());
                    start.at_s
                }
                RunEvent::File(file) => {
                    assert!(started[&file.name] <= file.at_s, "{policy}");
                    files.push(file.clone());
                    file.at_s
                }
                RunEvent::Decision(decision) => {
                    decisions.push(decision.clone());
                    decision.at_s
                }
                RunEvent::Progress(progress) => progress.at_s,
                other => panic!("{policy}: {other:?}"),
            };
            assert!(at >= clock, "{policy}: {event:?} goes back in time");
            clock = at;
        }
        assert_eq!(report.files, files);
        assert_eq!(report.decisions, decisions);
        assert_eq!(files.len(), 47);
        assert_eq!((summary.files, summary.files_done, summary.files_failed), (47, 46, 1));
        assert_eq!(summary.exit_code, 3);
        assert!(summary.seconds >= clock);
        assert!(!decisions.is_empty() && decisions.iter().all(|it| !it.reason.is_empty()));
        let sum: u64 = files.iter().map(|file| file.bytes).sum();
        assert_eq!(summary.bytes, sum);
    }
}

/// The fields of a JSON object, in order.
fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

fn assert_fields(value: &Value, expected: &str) {
    let mut expected: Vec<&str> = expected.split_whitespace().collect();
    expected.sort_unstable();
    assert_eq!(fields(value), expected, "{value}");
}

#[test]
fn every_event_is_a_line_of_json_with_the_documented_fields() {
    let files = sets::demo_mixed(1);
    // Longer than the interval of progress events.
    let latency = Duration::from_millis(700);
    let slow = OriginBehaviour { latency, ..OriginBehaviour::default() };
    let behaviour_by_path = vec![(files[0].path.clone(), slow)];
    let origin =
        Origin::start(OriginConfig { files, behaviour_by_path, ..OriginConfig::default() })
            .unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut inputs: Vec<FileSpec> = sets::demo_mixed(1)
        .iter()
        .map(|file| FileSpec::from_url(origin.url(&file.path).parse().unwrap()).unwrap())
        .collect();
    inputs.push(FileSpec::from_url(origin.url("/none").parse().unwrap()).unwrap());
    let policy = crate::support::four_by_four();
    let client = builder().policy(policy).build().unwrap();
    let (_, events) = run_with_events(client.download(inputs).into_dir(out.path()));
    let mut seen = HashMap::<String, u32>::new();
    for event in &events {
        let line = serde_json::to_string(event).unwrap();
        assert!(!line.contains('\n'));
        let value: Value = serde_json::from_str(&line).unwrap();
        let name = value["event"].as_str().unwrap().to_owned();
        *seen.entry(name.clone()).or_default() += 1;
        let allocation = "cluster pipelining parallelism concurrency spare_streams
             active_files active_streams";
        match name.as_str() {
            "plan" => {
                assert_fields(
                    &value,
                    "event schema policy files files_of_unknown_size bytes link clusters parameters
                     wanted_connections reason energy_source",
                );
                assert_eq!(value["schema"], 1);
                let fields = "rtt_s bandwidth_bps bdp_bytes stream_window_bytes";
                assert_fields(&value["link"], fields);
                assert_fields(&value["clusters"][0], "cluster files bytes mean_size_bytes");
                assert_fields(&value["parameters"][0], allocation);
            }
            "start" => assert_fields(&value, "event at_s name url"),
            "decision" => {
                assert_fields(
                    &value,
                    "event at_s allocations wanted_connections reason throughput_bps energy_j",
                );
                assert_fields(&value["allocations"][0], allocation);
            }
            "file" => {
                assert_fields(
                    &value,
                    "event at_s name url bytes seconds connections protocol resumed_from restarts
                     already_there digest energy_j throughput_per_joule ok error",
                );
                if value["ok"] == false {
                    assert_fields(&value["error"], "code kind retryable message");
                }
            }
            "restart" => assert_fields(&value, "event at_s name url bytes_lost reason"),
            "progress" => assert_fields(
                &value,
                "event at_s files files_done files_failed bytes bytes_expected throughput_bps
                 energy_j connections clusters active remaining_s",
            ),
            "summary" => assert_fields(
                &value,
                "event policy files files_done files_failed bytes seconds throughput_bps energy_j
                 energy_radio_j energy_cpu_j energy_base_j energy_source throughput_per_joule
                 clusters connections requests retries cpu_s exit_code error",
            ),
            other => panic!("an event that is not documented: {other}"),
        }
    }
    for name in ["plan", "start", "decision", "file", "progress", "summary"] {
        assert!(seen.contains_key(name), "no {name} event");
    }
    assert_eq!(seen["file"], 48);
}

#[test]
fn progress_counts_up_to_what_is_expected() {
    let origin = Origin::start(OriginConfig {
        files: sets::demo_mixed(1),
        behaviour: OriginBehaviour {
            rate_per_connection: Some(pelton_algos::units::BitRate::from_mbps(10.0)),
            ..OriginBehaviour::default()
        },
        ..OriginConfig::default()
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let download = client().download([origin.url("/")]).walk(recursively());
    let (_, events) = run_with_events(download.into_dir(out.path()));
    let mut before = 0;
    let mut last_at = -1.0;
    let told = events.iter().filter_map(|event| match event {
        RunEvent::Progress(progress) => Some(progress),
        _ => None,
    });
    for progress in told {
        assert!(progress.bytes >= before && progress.bytes <= progress.bytes_expected);
        assert!(progress.files_done + progress.files_failed <= progress.files);
        let is_last = progress.files_done == progress.files;
        assert!(is_last || progress.at_s - last_at >= 0.2, "more than four a second");
        (before, last_at) = (progress.bytes, progress.at_s);
    }
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let out = tempfile::tempdir().unwrap();
    let download = client().download(Vec::<String>::new());
    let (report, events) = run_with_events(download.into_dir(out.path()));
    assert!(report.is_complete());
    assert!(matches!(events.as_slice(), [RunEvent::Summary(_)]), "{events:?}");
}
