use proptest::prelude::*;

use super::*;

const RTT: Duration = Duration::from_millis(50);

fn at(seconds: u64) -> Timestamp {
    Timestamp::new(Duration::from_secs(seconds))
}

fn stream(id: u64, mbps: f64, remaining: u64) -> Watched {
    let rate = BitRate::from_mbps(mbps);
    Watched { stream: StreamId(id), rate, remaining: Some(Bytes(remaining)) }
}

#[test]
fn the_one_that_crawls_is_replaced_and_not_those_that_share_unevenly() {
    let mut tail = Tail::default();
    let streams = [1, 2, 3, 4].map(|id| stream(id, 2.0 * id as f64, 1_000_000));
    assert!(tail.on_look(at(1), RTT, &streams).is_empty(), "2, 4, 6 and 8 Mbit/s are siblings");
    let mut streams = streams.to_vec();
    streams.push(stream(5, 0.5, 1_000_000));
    streams.push(stream(6, 0.1, 1_000_000));
    assert_eq!(tail.on_look(at(2), RTT, &streams), [StreamId(6), StreamId(5)]);
    let mut tail = Tail::default();
    assert_eq!(tail.on_look(at(2), RTT, &streams[2..]), [StreamId(6)], "a quarter at once");
}

#[test]
fn a_replacement_is_followed_by_a_longer_pause_each_time() {
    let mut tail = Tail::default();
    let mut replaced = Vec::new();
    for second in 0..100 {
        let streams = [
            stream(1, 8.0, 90_000_000),
            stream(2, 8.0, 90_000_000),
            stream(second, 0.1, 90_000_000),
        ];
        if !tail.on_look(at(second), RTT, &streams).is_empty() {
            replaced.push(second);
        }
    }
    assert_eq!(replaced, [0, 2, 6, 14, 30, 62]);
    let quiet = [stream(1, 8.0, 90_000_000), stream(2, 8.0, 90_000_000)];
    assert!(tail.on_look(at(300), RTT, &quiet).is_empty());
    let crawling = [quiet[0], quiet[1], stream(3, 0.1, 90_000_000)];
    assert!(!tail.on_look(at(301), RTT, &crawling).is_empty());
    assert!(!tail.on_look(at(303), RTT, &crawling).is_empty(), "after a quiet minute it is new");
}

#[test]
fn a_stream_that_is_left_alone_is_compared_with_those_before_it() {
    let mut tail = Tail::default();
    let alone = tail.on_look(at(1), RTT, &[stream(1, 0.1, 9_000_000)]);
    assert!(alone.is_empty(), "nothing to compare with");
    assert!(
        tail.on_look(at(2), RTT, &[stream(2, 8.0, 900_000), stream(3, 9.0, 900_000)]).is_empty()
    );
    assert_eq!(tail.on_look(at(3), RTT, &[stream(1, 0.1, 100_000)]), [StreamId(1)]);
}

#[test]
fn a_stream_that_was_never_seen_with_others_is_compared_with_those_that_have_ended() {
    let mut tail = Tail::default();
    tail.on_rate(BitRate::from_mbps(80.0), 1);
    assert!(tail.on_look(at(1), RTT, &[stream(1, 20.0, 90_000_000)]).is_empty());
    assert_eq!(tail.on_look(at(2), RTT, &[stream(1, 0.1, 900_000)]), [StreamId(1)]);
    let fading = (3..100)
        .filter(|second| !tail.on_look(at(*second), RTT, &[stream(1, 0.1, 90_000_000)]).is_empty());
    assert_eq!(fading.count(), 4, "the link has become slow");
}

#[test]
fn all_that_are_left_are_compared_with_those_that_have_ended() {
    let mut tail = Tail::default();
    tail.on_rate(BitRate::from_mbps(20.0), 16);
    let mut left: Vec<Watched> = [1, 2, 3].map(|id| stream(id, 0.002, 400_000)).to_vec();
    for second in 1..20 {
        let replaced = tail.on_look(at(second), RTT, &left);
        left.retain(|watched| !replaced.contains(&watched.stream));
    }
    assert_eq!(left, [], "one after the other");
}

#[test]
fn more_streams_on_the_same_link_bring_less_each() {
    let mut tail = Tail::default();
    tail.on_rate(BitRate::from_mbps(80.0), 2);
    let sharing: Vec<Watched> = (1..=32).map(|id| stream(id, 5.0, 90_000_000)).collect();
    assert!(tail.on_look(at(1), RTT, &sharing).is_empty(), "160 Mbit/s in all, as before");
}

#[test]
fn a_few_bytes_are_waited_for() {
    let mut tail = Tail::default();
    // 50 ms of its own rate; a new connection takes longer.
    let streams = [stream(1, 8.0, 1_000_000), stream(2, 8.0, 1_000_000), stream(3, 0.8, 5_000)];
    assert!(tail.on_look(at(1), RTT, &streams).is_empty());
    // The same bytes at a byte a second.
    let streams = [streams[0], streams[1], stream(3, 0.000_008, 5_000)];
    assert_eq!(tail.on_look(at(2), RTT, &streams), [StreamId(3)]);
}

#[test]
fn what_cannot_be_continued_is_not_ended() {
    let whole = Watched { remaining: None, ..stream(3, 0.01, 0) };
    let streams = [stream(1, 8.0, 1_000_000), stream(2, 8.0, 1_000_000), whole];
    assert!(Tail::default().on_look(at(1), RTT, &streams).is_empty());
}

#[test]
fn a_link_that_is_dark_replaces_nothing() {
    let mut tail = Tail::default();
    let streams = [1, 2, 3].map(|id| stream(id, 8.0, 1_000_000));
    tail.on_look(at(1), RTT, &streams);
    for second in 2..60 {
        let streams = [1, 2, 3].map(|id| stream(id, 0.0, 1_000_000));
        assert!(tail.on_look(at(second), RTT, &streams).is_empty());
    }
}

proptest! {
    /// Looked at each second, no more streams are replaced than the cool-down allows, and always one
    /// that stands out.
    #[test]
    fn replacements_are_few(looks in proptest::collection::vec(proptest::collection::vec((0.0f64..100.0, 0u64..100_000_000), 0..8), 1..200)) {
        let mut tail = Tail::default();
        let (mut replaced, mut last, mut known) = (0u32, None, 0.0f64);
        for (second, look) in (0u64..).zip(looks) {
            let streams: Vec<_> =
                (0..).zip(look).map(|(id, (mbps, left))| stream(id, mbps, left)).collect();
            let best = streams.iter().map(|watched| watched.rate.bps()).fold(0.0, f64::max);
            known = known.max(best);
            let ended = tail.on_look(at(second), RTT, &streams);
            prop_assert!(ended.len() <= streams.len().div_ceil(AT_ONCE));
            if ended.is_empty() {
                continue;
            }
            let rate = |id: StreamId| streams[id.0 as usize].rate.bps();
            prop_assert!(ended.into_iter().all(|stream| rate(stream) < known * OUTLIER));
            prop_assert!(last.is_none_or(|last| second - last >= 2));
            last = Some(second);
            replaced += 1;
        }
        prop_assert!(replaced <= 8, "{}", replaced);
    }
}
