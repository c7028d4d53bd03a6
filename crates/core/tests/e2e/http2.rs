//! Servers that abuse HTTP/2: the first connections end in frames that break the protocol or the
//! stream, the later ones lead to an honest origin. The file comes all the same.

use std::time::Duration;

use pelton_algos::units::BitRate;
use pelton_core::connection::{HttpConfig, Protocol, ProtocolChoice};
use pelton_core::engine::EngineConfig;
use pelton_core::{Client, ErrorKind};
use pelton_lab::origin::hostile2::{ABUSES, REFUSAL, SIZE, abusing, content, trickling};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig};

use crate::support::{builder, engine, file, four_by_four, run, tree};

fn client() -> Client {
    let http =
        HttpConfig { protocol: ProtocolChoice::Http2PriorKnowledge, ..HttpConfig::default() };
    let config = EngineConfig { stall_timeout: Duration::from_millis(400), ..engine() };
    builder().http(http).engine(config).build().unwrap()
}

#[test]
fn what_is_abused_for_a_while_comes_all_the_same() {
    for (name, abuse) in ABUSES {
        let config = OriginConfig { files: vec![content()], ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let address = abusing(origin.address(), 1, abuse).unwrap();
        let out = tempfile::tempdir().unwrap();
        let report = run(client().download([format!("http://{address}/f")]).into_dir(out.path()));
        assert!(report.is_complete(), "{name}: {:?}", report.files);
        assert!(tree(out.path())["f"] == content().bytes(0..SIZE), "{name}: other bytes");
        assert_eq!(file(&report, "f").protocol.map(Protocol::name), Some("HTTP/2"), "{name}");
    }
}

#[test]
fn what_is_always_abused_fails_by_its_name() {
    for (name, abuse) in ABUSES {
        // Whatever comes of a file is gone on with.
        let origin = Origin::start(OriginConfig::default()).unwrap();
        let address = abusing(origin.address(), usize::MAX, abuse).unwrap();
        let out = tempfile::tempdir().unwrap();
        let url = format!("http://{address}/f");
        let report = run(client().download([url.clone()]).into_dir(out.path()));
        if report.is_complete() {
            // All of what was promised came before the abuse.
            let size = file(&report, "f").bytes;
            assert!(size == 1_000 && name == "more than the length" || size == SIZE, "{name}");
            assert!(tree(out.path())["f"] == content().bytes(0..size), "{name}");
            continue;
        }
        let error = file(&report, "f").error.clone().expect(name);
        let kind = if name == REFUSAL { ErrorKind::Overloaded } else { ErrorKind::ShortBody };
        assert_eq!(error.code, kind.exit_code(), "{name}: {}", error.message);
        assert!(error.message.contains(&url) && !error.message.contains('\n'), "{}", error.message);
        assert!(!out.path().join("f").exists(), "{name}");
    }
}

#[test]
fn a_body_that_trickles_goes_on_over_another_connection() {
    // No stall: each tenth of a second brings something, and the time-out is that of users.
    let config = OriginConfig { files: vec![content()], ..OriginConfig::default() };
    let origin = Origin::start(config).unwrap();
    let address = trickling(origin.address()).unwrap();
    let http =
        HttpConfig { protocol: ProtocolChoice::Http2PriorKnowledge, ..HttpConfig::default() };
    let client = builder().http(http).policy(four_by_four()).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client.download([format!("http://{address}/f")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(tree(out.path())["f"] == content().bytes(0..SIZE), "other bytes");
    assert_eq!(report.summary.retries, 0, "nothing has failed");
}

#[test]
fn ranges_are_tried_where_nothing_is_said_of_them() {
    for ignore_ranges in [false, true] {
        // What was asked for first is still under way when the answer comes to the range that is tried.
        let behaviour = OriginBehaviour {
            hide_ranges: true,
            ignore_ranges,
            rate_per_connection: Some(BitRate::from_mbps(100.0)),
            ..OriginBehaviour::default()
        };
        let config = OriginConfig { files: vec![content()], behaviour, ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let out = tempfile::tempdir().unwrap();
        let report = run(builder()
            .http(HttpConfig {
                protocol: ProtocolChoice::Http2PriorKnowledge,
                ..HttpConfig::default()
            })
            .policy(four_by_four())
            .build()
            .unwrap()
            .download([origin.url("/f")])
            .into_dir(out.path()));
        assert!(report.is_complete() && tree(out.path())["f"] == content().bytes(0..SIZE));
        assert_eq!(file(&report, "f").restarts, 0, "what was asked for first goes on");
        assert!(origin.hits("/f") > 1, "no range was asked for");
    }
}
