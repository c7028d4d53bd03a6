use super::*;

const RTT: u64 = 60;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn packet(at: u64, direction: Direction, payload: u32, syn: bool) -> Packet {
    let stamps = match direction {
        Direction::Sent => (at as u32, 0),
        Direction::Received => (0, at.saturating_sub(RTT) as u32),
    };
    let tcp = Tcp { flow: 1, site: 7, payload, syn, end: false, timestamps: Some(stamps) };
    Packet { at: ms(at), direction, bytes: Bytes(u64::from(payload) + 52), tcp: Some(tcp) }
}

fn sent(at: u64, payload: u32) -> Packet {
    packet(at, Direction::Sent, payload, false)
}

fn received(at: u64) -> Packet {
    packet(at, Direction::Received, 1_448, false)
}

/// The opening of a connection, and a first stage of two packets.
fn opening() -> Vec<Packet> {
    vec![
        packet(0, Direction::Sent, 0, true),
        packet(RTT, Direction::Received, 0, true),
        sent(RTT, 200),
        received(2 * RTT),
        received(2 * RTT + 1),
        sent(2 * RTT + 1, 0),
    ]
}

fn tracker() -> Tracker {
    Tracker::new(BitRate::from_mbps(20.0))
}

fn run(packets: &[Packet]) -> Tracker {
    let mut tracker = tracker();
    for packet in packets {
        tracker.on_packet(packet);
    }
    tracker
}

#[test]
fn nothing_is_known_of_a_first_visit() {
    let tracker = run(&opening()[..3]);
    assert_eq!(tracker.connections()[&1].status, Status::Active);
    assert_eq!(tracker.may_sleep_until(), None);
    assert_eq!(tracker.connections()[&1].srtt, Some(Duration::from_millis(RTT)));
}

#[test]
fn the_next_stage_follows_from_the_acknowledgements() {
    let mut tracker = run(&opening());
    assert_eq!(tracker.connections()[&1].packets, 2);
    assert_eq!(tracker.may_sleep_until(), None);
    let timeout = tracker.next_timeout().unwrap();
    assert_eq!(timeout, ms(2 * RTT + 1 + 2));
    tracker.on_time(timeout);
    let connection = &tracker.connections()[&1];
    assert_eq!((connection.status, connection.stage), (Status::Idle, 1));
    let srtt = connection.srtt.unwrap();
    let variance = connection.variance;
    assert_eq!(
        connection.next,
        Some((ms(2 * RTT + 1) + srtt.saturating_sub(variance), ms(2 * RTT + 1) + srtt + variance))
    );
    assert_eq!(tracker.may_sleep_until(), connection.next.map(|(start, _)| start));
    // It is awake again when the stage may begin, and counts it when it does.
    let start = connection.next.unwrap().0;
    tracker.on_time(start);
    assert_eq!(tracker.may_sleep_until(), None);
    tracker.on_packet(&received(3 * RTT + 1));
    let connection = &tracker.connections()[&1];
    assert_eq!((connection.stage, connection.packets), (2, 1));
}

#[test]
fn a_second_connection_to_a_site_knows_its_times() {
    let mut tracker = run(&opening());
    let cached = *tracker.cached(7).unwrap();
    assert_eq!(cached.syn, Some(Duration::from_millis(RTT)));
    assert_eq!(cached.get, Some(Duration::from_millis(RTT)));
    let mut syn = packet(500, Direction::Sent, 0, true);
    syn.tcp = syn.tcp.map(|tcp| Tcp { flow: 2, ..tcp });
    tracker.on_packet(&syn);
    let second = &tracker.connections()[&2];
    assert_eq!(second.status, Status::Idle);
    assert_eq!(
        second.next.unwrap().0,
        ms(500) + Duration::from_millis(RTT).saturating_sub(second.variance)
    );
    tracker.on_new_page();
    assert_eq!(tracker.cached(7), None);
}

#[test]
fn the_card_sleeps_only_when_all_connections_let_it() {
    let mut tracker = run(&opening());
    tracker.on_time(ms(130));
    assert!(tracker.may_sleep_until().is_some());
    let mut other = sent(131, 300);
    other.tcp = other.tcp.map(|tcp| Tcp { flow: 3, site: 9, ..tcp });
    tracker.on_packet(&other);
    assert_eq!(tracker.may_sleep_until(), None, "an answer of an unknown site is awaited");
    other.tcp = other.tcp.map(|tcp| Tcp { end: true, ..tcp });
    tracker.on_packet(&other);
    assert_eq!(tracker.connections()[&3].status, Status::Finished);
    assert!(tracker.may_sleep_until().is_some());
}

#[test]
fn a_full_link_is_saturated_after_three_stages() {
    let mut tracker = run(&opening());
    // 20 Mbit/s x 60 ms = 150 kB: 104 packets are more than 90 % of it.
    let mut at = 2 * RTT + 4;
    for _ in 0..5 {
        let start = tracker.connections()[&1]
            .next
            .map_or(at, |(start, _)| start.since_start().as_millis() as u64);
        at = at.max(start) + 1;
        for _ in 0..104 {
            tracker.on_packet(&received(at));
        }
        tracker.on_packet(&sent(at, 0));
        at += 200;
        tracker.on_time(ms(at));
    }
    assert_eq!(tracker.connections()[&1].status, Status::Saturated);
    assert_eq!(tracker.may_sleep_until(), None);
}

#[test]
fn a_variance_that_grows_widens_the_prediction() {
    let mut steady = run(&opening());
    let mut packets = opening();
    packets[4] = received(2 * RTT + 1);
    // An echo of a packet that was sent at 0 says 120 ms.
    packets[3].tcp = packets[3].tcp.map(|tcp| Tcp { timestamps: Some((0, 0)), ..tcp });
    let mut shaky = run(&packets);
    for tracker in [&mut steady, &mut shaky] {
        tracker.on_time(ms(130));
    }
    let width = |tracker: &Tracker| {
        let (start, end) = tracker.connections()[&1].next.unwrap();
        end - start
    };
    assert!(width(&shaky) > width(&steady));
}

#[test]
fn finished_connections_are_not_gone_through_until_more_comes() {
    let mut tracker = run(&opening());
    assert_eq!(tracker.alive().count(), 1);
    let mut end = packet(200, Direction::Sent, 0, false);
    end.tcp = end.tcp.map(|tcp| Tcp { end: true, ..tcp });
    tracker.on_packet(&end);
    assert_eq!((tracker.alive().count(), tracker.connections().len()), (0, 1));
    assert_eq!(tracker.may_sleep_until(), Some(Timestamp::new(Duration::MAX)));
    tracker.on_packet(&received(210));
    assert_eq!((tracker.alive().count(), tracker.may_sleep_until()), (1, None));
}
