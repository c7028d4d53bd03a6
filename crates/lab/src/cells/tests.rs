use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::model::Capacity;

fn built_in() -> Cells {
    Cells::built_in().unwrap()
}

#[test]
fn the_built_in_links_are_what_their_names_say() {
    let cells = built_in();
    let rtt = |name: &str| cells.link(name).unwrap().spec.rtt().as_millis();
    let mbps = |name: &str| cells.link(name).unwrap().spec.down.peak_rate().mbps();
    for (name, rate, millis) in [("20x45", 20.0, 45), ("50x200", 50.0, 200), ("fat", 400.0, 100)] {
        assert_eq!((mbps(name), rtt(name)), (rate, millis), "{name}");
    }
    assert_eq!(rtt("lte-far"), rtt("lte") + 300);
    assert_eq!(rtt("wifi-far"), 200);
    let loss = cells.link("lossy").unwrap().spec.down.loss.share();
    assert!((loss - 0.01).abs() < 1e-4, "{loss}");
    let Capacity::Rate(tunnel) = &cells.link("tunnel").unwrap().spec.down.capacity else {
        panic!("tunnel has a schedule");
    };
    assert_eq!(tunnel.rate_at(Duration::from_secs(5)), BitRate::ZERO);
}

#[test]
fn the_built_in_sets_have_the_sizes_of_their_comments() {
    let cells = built_in();
    let rate = BitRate::from_mbps(20.0);
    let shape = |name: &str| {
        let files = cells.sets(name).unwrap()[0].1.files(1, rate);
        let paths: HashSet<_> = files.iter().map(|file| &file.path).collect();
        assert_eq!(paths.len(), files.len());
        (files.len(), files.iter().map(|file| file.size).sum::<u64>())
    };
    assert_eq!(shape("small"), (400, 4_800_000));
    assert_eq!(shape("bulk"), (8, 256_000_000));
    assert_eq!(shape("mixed"), (221, 40_400_000));
    let (_, long) = shape("long");
    assert!(Bytes(long) / rate >= Duration::from_secs(120));
    assert_eq!(shape("page-050-1024"), (51, 50 * 1024 + 50 * 64));
    assert_eq!(cells.sets("pages").unwrap().len(), 40);
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let cells = built_in();
    let message = cells.link("lte9").unwrap_err().to_string();
    assert!(message.starts_with("there is no link \"lte9\"; there are 10x60, "), "{message}");
    let message = cells.sets("pagez").unwrap_err().to_string();
    assert!(message.ends_with("skewed, small, tiny"), "{message}");
}

/// A link whose downlink has `down` added to its numbers.
fn error_of(down: &str) -> String {
    let text = format!(
        "[links.x]\nabout = ''\ndown = {{ delay_ms = 1, queue_kb = 15, {down} }}\n\
         up = {{ mbps = 1, delay_ms = 1, queue_kb = 15 }}"
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("broken.trace"), "1\n2\nthree\n").unwrap();
    let error = Cells::default().add(&text, dir.path()).unwrap_err().to_string();
    error.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn mistakes_are_named() {
    assert_eq!(
        error_of("mbps = 0"),
        "link x, down: a rate must be above 0 (use an outage to stop the link for a time)"
    );
    assert_eq!(error_of("jitter_ms = 1"), "link x, down: give either mbps or trace");
    assert_eq!(
        error_of("mbps = 1, loss_percent = 101"),
        "link x, down: loss_percent is 101: give a number from 0 to 100"
    );
    assert_eq!(
        error_of("trace = 'broken.trace'"),
        "link x, down: broken.trace, line 3: \"three\" is no whole number of milliseconds"
    );
    assert!(
        error_of("mbps = 1, changes = [{ at_s = 1, outage_s = 1, mbps = 2 }]")
            .contains("at 1 s is neither")
    );
    assert!(error_of("mbps = 1, rate = 2").contains("unknown field `rate`"));
}

#[test]
fn later_files_win() {
    let mut cells = built_in();
    let text = "[sets.small]\nabout = 'mine'\ngroups = [{ name = 'a.txt', files = 2, size = 3 }]";
    cells.add(text, Path::new(".")).unwrap();
    let files = cells.sets("small").unwrap()[0].1.files(1, BitRate::ZERO);
    assert_eq!(
        files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["/a-0000.txt", "/a-0001.txt"]
    );
}
