//! The emulated link on real packets: its rate, delay and loss are the model's to within 3 %. Where
//! the machine does not let a process emulate (it takes root and /dev/net/tun), each test says so
//! and does nothing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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

/// How often a link is measured while the machine keeps the emulator from its work.
const TRIES: usize = 5;

/// The share of a measurement's time in which a machine may keep threads from running.
const TOLERATED: f64 = 0.005;

/// That a link's measurement is right. One that is not counts only if the machine let the emulator
/// work meanwhile: a host that takes cores away delays packets, and says nothing of the emulator.
fn within_3_percent(emulator: &Emulator, expected: f64, mut measure: impl FnMut() -> f64) {
    let mut wrong = 0;
    for _ in 0..TRIES {
        let (measured, kept) = while_watched(&mut measure);
        let (error, late) = (measured / expected - 1.0, emulator.stats().late_share);
        eprintln!(
            "measured {measured:.4}, expected {expected:.4}, error {:+.2} %; threads did not run {:.2} % \
             of the time, {:.2} % of the packets so far were late",
            100.0 * error,
            100.0 * kept,
            100.0 * late
        );
        if error.abs() < 0.03 {
            return;
        }
        wrong += usize::from(kept < TOLERATED && late < TOLERATED);
    }
    assert_eq!(wrong, 0, "never within 3 % of {expected}");
    eprintln!("skipped: this machine has no time to emulate; `pelton-lab check` tells when it has");
}

/// What `measure` gives, and the share of its time in which a thread that wanted to run each
/// millisecond could not.
fn while_watched(measure: impl FnOnce() -> f64) -> (f64, f64) {
    const STEP: Duration = Duration::from_millis(1);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (begin, mut kept) = (Instant::now(), Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                let slept = Instant::now();
                thread::sleep(STEP);
                kept += slept.elapsed().saturating_sub(2 * STEP);
            }
            kept.as_secs_f64() / begin.elapsed().as_secs_f64()
        });
        let measured = measure();
        over.store(true, Ordering::Relaxed);
        (measured, watch.join().unwrap())
    })
}

fn rate_of(name: &str, streams: usize) {
    let config = preset(name);
    let expected = config.link.down.peak_rate().mbps() * PAYLOAD as f64 / 1500.0;
    on(config, |emulator| {
        let (settle, measured) = (Duration::from_secs(4), Duration::from_secs(4));
        within_3_percent(&emulator, expected, || {
            probe::flow(&emulator, streams, settle, measured).unwrap().mbps()
        });
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
            within_3_percent(&emulator, expected, || {
                probe::pings(&emulator, 11).unwrap()[0].as_secs_f64()
            });
        });
    }
}

#[test]
fn the_loss_is_that_of_the_model() {
    let mut link = LinkSpec::plain(BitRate::from_mbps(100.0), Duration::from_millis(4)).unwrap();
    link.down.loss.random = 0.1;
    on(EmulatorConfig::new(link, 1), |emulator| {
        within_3_percent(&emulator, 0.1, || probe::loss(&emulator, 60_000).unwrap());
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
        probe::flow(&emulator, 1, Duration::ZERO, Duration::from_secs(1)).unwrap();
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
