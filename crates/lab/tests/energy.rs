//! `pelton-lab energy` as people call it.

#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::fs;
use std::process::Command;

use etherparse::PacketBuilder;

const CLIENT: [u8; 4] = [10, 0, 0, 2];
const SERVER: [u8; 4] = [10, 0, 0, 1];

/// A packet of IP: when in microseconds, and its bytes.
type Record = (u64, Vec<u8>);

/// A segment of the client or to it.
fn segment(micros: u64, is_sent: bool, is_syn: bool, payload: usize) -> Record {
    let (from, to) = if is_sent { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let (source, target) = if is_sent { (40_000, 80) } else { (80, 40_000) };
    let tcp = PacketBuilder::ipv4(from, to, 64).tcp(source, target, 1, 1_000);
    let tcp = if is_syn { tcp.syn() } else { tcp };
    let tcp = if is_syn && is_sent { tcp } else { tcp.ack(1) };
    let mut bytes = Vec::new();
    tcp.write(&mut bytes, &vec![0; payload]).unwrap();
    (micros, bytes)
}

/// A connection that is opened within 40 ms and brings `data` packets of 1000 bytes, a millisecond apart.
fn download(data: u64) -> Vec<Record> {
    let opening = [segment(0, true, true, 0), segment(40_000, false, true, 0)];
    let request = segment(40_100, true, false, 100);
    let answer = (0..data).map(|at| segment(80_000 + at * 1_000, false, false, 960));
    opening.into_iter().chain([request]).chain(answer).collect()
}

/// Exit code, output and complaints of `pelton-lab energy` over `records`, of each of which `kept` bytes were kept.
fn energy(records: &[Record], kept: usize, arguments: &[&str]) -> (i32, String, String) {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, 101] {
        file.extend(u32::to_le_bytes(word));
    }
    for (micros, data) in records {
        let kept = data.len().min(kept);
        let (seconds, rest) = ((micros / 1_000_000) as u32, (micros % 1_000_000) as u32);
        for word in [seconds, rest, kept as u32, data.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&data[..kept]);
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.pcap"), file).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pelton-lab"));
    let output = command.current_dir(dir.path()).args(["energy", "a.pcap"]).args(arguments);
    let output = output.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn sleep_policies_are_refused_where_tcp_headers_are_cut() {
    let (code, shown, told) = energy(&download(50), 20, &[]);
    assert_eq!((code, shown.as_str()), (1, ""));
    assert!(told.contains("a.pcap: the TCP headers of 53 of 53 packets are cut"), "{told}");
    assert_eq!(told.matches("are cut").count(), 1, "{told}");
    // Other radios go by lengths.
    let (code, shown, told) = energy(&download(50), 20, &["--profile", "lte"]);
    let (_, whole, silent) = energy(&download(50), 96, &["--profile", "lte"]);
    assert!(code == 0 && told.contains("of 53 of 53 packets are cut"), "{told}");
    let total = |shown: &str| shown.lines().last().unwrap().to_owned();
    assert_eq!((total(&shown), silent.as_str()), (total(&whole), ""));
}

#[test]
fn a_few_headers_that_are_cut_leave_what_the_opening_tells() {
    let mut records = download(50);
    records[20].1.truncate(30);
    let (code, shown, told) = energy(&records, 96, &[]);
    assert!(code == 0 && shown.contains("round trip 40.0 ms"), "{shown}");
    assert!(told.contains("the TCP headers of 1 of 53 packets are cut"), "{told}");
    records[1].1.truncate(30);
    assert_eq!(energy(&records, 96, &[]).0, 1);
}

#[test]
fn a_round_trip_that_nothing_shows_is_unknown() {
    let (_, shown, _) = energy(&download(50)[2..], 96, &[]);
    assert!(shown.contains("round trip unknown") && !shown.contains("0.0 ms"), "{shown}");
}

#[test]
fn a_clock_that_was_wrong_is_no_year_of_idling() {
    let mut records = download(9);
    for (micros, _) in &mut records[1..] {
        *micros += 1_700_000_000_000_000;
    }
    for profile in ["wavelan", "lte"] {
        let (code, shown, told) = energy(&records, 96, &["--profile", profile]);
        assert_eq!((code, shown.as_str()), (1, ""));
        let why = "a.pcap: it lasts 1700000000 s, and a day at most is gone through";
        assert!(told.contains(why), "{told}");
        assert!(told.contains("between its packets of 0.000000 and 1700000000.040000 s"), "{told}");
    }
}

#[test]
fn what_the_card_takes_longer_for_is_said() {
    // 1000 bytes a millisecond are 8 Mbit/s.
    let (_, shown, _) = energy(&download(500), 96, &[]);
    assert!(!shown.contains("faster than"), "{shown}");
    let bursts = (0..500).map(|at| segment(80_000 + at * 100, false, false, 960));
    let records: Vec<Record> = download(0).into_iter().chain(bursts).collect();
    let (_, shown, _) = energy(&records, 96, &[]);
    // 500 times 0.4 ms from 80 ms on, where the last of them came after 130.
    let why = "faster than the card's 20.0 Mbit/s: one after the other they take 0.28 s, and were recorded in 0.13\n";
    assert!(shown.contains(why), "{shown}");
}
