//! The emulated link on real packets: its rate, delay and loss are the model's to within 3 %. Where
//! the machine does not let a process emulate (it takes root and /dev/net/tun), each test says so
//! and does nothing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pelton_algos::units::BitRate;
use pelton_lab::cells::Cells;
use pelton_lab::emulator::probe::{self, PAYLOAD};
use pelton_lab::emulator::{CongestionControl, Emulator, EmulatorConfig};
use pelton_lab::model::LinkSpec;

/// One link at a time: they share the machine's cores.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `test` on a link, if this machine can have one.
fn on(config: EmulatorConfig, test: impl FnOnce(Emulator)) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match Emulator::start(config) {
        Err(error) if error.is_denied() => eprintln!("skipped: {error}"),
        emulator => test(emulator.unwrap_or_else(|error| panic!("{error}"))),
    }
}

fn preset(name: &str) -> EmulatorConfig {
    EmulatorConfig::new(Cells::built_in().unwrap().link(name).unwrap().spec.clone(), 1)
}

fn within_3_percent(measured: f64, expected: f64) {
    let error = measured / expected - 1.0;
    eprintln!("measured {measured:.4}, expected {expected:.4}, error {:+.2} %", 100.0 * error);
    assert!(error.abs() < 0.03, "{measured} instead of {expected}");
}

fn rate_of(name: &str, streams: usize) {
    let config = preset(name);
    let expected = config.link.down.peak_rate().mbps() * PAYLOAD as f64 / 1500.0;
    on(config, |emulator| {
        let measured =
            probe::flow(&emulator, streams, Duration::from_secs(4), Duration::from_secs(4));
        within_3_percent(measured.unwrap().mbps(), expected);
    });
}

#[test]
fn a_flow_has_the_rate_of_20_megabits() {
    rate_of("20x60", 1);
}

#[test]
fn flows_have_the_rate_of_90_megabits() {
    rate_of("wifi-near", 4);
}

#[test]
#[ignore = "needs a core of its own: run it with --ignored on a quiet machine"]
fn flows_have_the_rate_of_400_megabits() {
    rate_of("fat", 4);
}

#[test]
fn a_ping_takes_the_round_trip_time() {
    for name in ["20x30", "50x200", "20x120"] {
        let config = preset(name);
        let expected = config.link.rtt().as_secs_f64();
        on(config, |emulator| {
            // The least: others may have waited for a core of this machine.
            let times = probe::pings(&emulator, 11).unwrap();
            within_3_percent(times[0].as_secs_f64(), expected);
        });
    }
}

#[test]
fn the_loss_is_that_of_the_model() {
    let mut link = LinkSpec::plain(BitRate::from_mbps(100.0), Duration::from_millis(4)).unwrap();
    link.down.loss.random = 0.1;
    on(EmulatorConfig::new(link, 1), |emulator| {
        within_3_percent(probe::loss(&emulator, 60_000).unwrap(), 0.1);
        let stats = emulator.stop().unwrap();
        assert_eq!(stats.down.overflowed, 0);
    });
}

#[test]
fn packets_are_counted_and_logged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("packets.pcap");
    let config = EmulatorConfig { packet_log: Some(path.clone()), ..preset("20x30") };
    on(config, |emulator| {
        probe::flow(&emulator, 1, Duration::ZERO, Duration::from_millis(300)).unwrap();
        let stats = emulator.stop().unwrap();
        assert_eq!(stats.connections, 1);
        assert!(stats.down.bytes > 500_000, "{stats:?}");
        let log = std::fs::read(&path).unwrap();
        let (mut at, mut packets, mut full) = (24, 0, 0);
        while at < log.len() {
            let word = |index: usize| {
                u32::from_le_bytes(log[at + 4 * index..at + 4 * index + 4].try_into().unwrap())
            };
            assert!(word(2) <= 120 && word(3) <= 1500);
            full += u64::from(word(3) == 1500);
            packets += 1;
            at += 16 + word(2) as usize;
        }
        assert_eq!(at, log.len());
        // Of the downlink the log has what was delivered.
        assert!(packets > stats.up.packets && packets <= stats.up.packets + stats.down.packets);
        assert!(full > 300, "{full}");
    });
}

#[test]
fn bbr_can_be_chosen() {
    let config = EmulatorConfig { congestion_control: CongestionControl::Bbr, ..preset("20x30") };
    on(config, |emulator| {
        let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(emulator.server().run(read).unwrap().trim(), "bbr");
        assert_eq!(emulator.server().run(|| 1).unwrap(), 1);
    });
    on(preset("20x30"), |emulator| {
        let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(emulator.server().run(read).unwrap().trim(), "cubic");
    });
}
