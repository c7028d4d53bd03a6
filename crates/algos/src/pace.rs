//! At what pace the first answers come.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// So many bytes, or so small a part of a round-trip time, tell the pace. In less than a millisecond a few
/// packets are chance.
const TELLING: Bytes = Bytes::kib(16);
const TELLING_OF_RTT: u32 = 8;
const TELLING_TIME: Duration = Duration::from_millis(1);

/// Who says nothing for so large a part of a round-trip time waits for acknowledgements, or for
/// requests: what comes then is another flight.
const SILENCE_OF_RTT: u32 = 2;

/// So many bytes of a flight that has ended tell its pace, too, or less where the next one comes hardly later than a round trip.
const TELLING_FLIGHT: Bytes = Bytes::kib(4);
const LATER_OF_RTT: u32 = 4;

/// Where no flight tells anything after so many silences, it is not the link that is waited for. Less than a packet in all
/// are no answers, but what HTTP/2 says before them.
const MOST_SILENCES: u32 = 4;
const LEAST_OF_ANSWERS: Bytes = SEGMENT;

/// Short silences after each of which hardly more than a packet comes are those of a slow and short path: packets take
/// longer there than half a round trip.
const PACKET: Duration = Duration::from_millis(10);
const SEGMENT: Bytes = Bytes(1448);
const FEW_PACKETS: Bytes = Bytes(2 * SEGMENT.0);
const FEW_OF_ONE: Bytes = Bytes(8 * SEGMENT.0);

/// Handshakes that came so many times as fast as answers tell that the path is not what answers wait for. Packets of
/// the slowest paths are hardly so far apart.
const FASTER: f64 = 2.0;
const FAR_APART: Duration = Duration::from_millis(40);

/// The least packet there is: a path has carried one of them there and back in its round-trip time.
const LEAST_PACKET: Bytes = Bytes(60);

/// Who reads late, as other work kept the processor, finds at once what has come meanwhile. That hardly counts over such a part
/// of a round-trip time, and the pace is told better by the fastest part of the first flight that took so long.
const STRETCH_OF_RTT: u32 = 8;
/// The first flight is looked at for so long.
const FIRST_OF_RTT: u32 = 4;

/// What comes later tells the pace, too, up to so many bytes in a row, where it is more by this factor: servers may have been slow
/// to begin, or requests to reach them. After the first round trips more of it may have waited behind segments that were lost, and
/// what came in a whole one counts.
const TELLING_LATER: Bytes = Bytes::kib(32);
const MOST_TELLING: Bytes = Bytes::kib(1024);
const TELLING_MORE: f64 = 2.0;
const TELLING_MORE_SOON: f64 = 1.25;
const SOON_OF_RTT: u32 = 4;

/// How fast answers come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// In bytes on the wire.
    pub rate: BitRate,
    /// They come one by one: it is the pace of their servers, and the path brings more.
    pub of_servers: bool,
}

impl Pace {
    /// That of a path.
    pub const fn of_path(rate: BitRate) -> Self {
        Self { rate, of_servers: false }
    }
}

/// The pace of the first answers. They were asked for at once and come as fast as the slowest link on the
/// way lets them, which tells its rate long before there is a sample of goodput (packet dispersion).
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstPace {
    flight: Option<Flight>,
    /// All flights and the silences between them, from the first one on.
    all: Option<Flight>,
    /// What came that answers no request.
    others: Others,
    silences: u32,
    silent_for: Duration,
    known: Option<Pace>,
    /// It is as well known as it will be by them.
    is_settled: bool,
    has_file: bool,
    /// Answers that bring files.
    answers: u32,
    /// The present part of a flight.
    stretch: Option<Flight>,
    /// Such a part has told the pace.
    has_stretch: bool,
    /// The most that was looked at later in a row.
    looked_at: Bytes,
}

/// What came without a silence.
#[derive(Debug, Clone, Copy)]
struct Flight {
    since: Timestamp,
    last: Timestamp,
    /// Without those that came at its beginning: they took no time that is known.
    bytes: Bytes,
    /// The most that came at once. They may have been there for long, behind a segment that was lost.
    largest: Bytes,
}

impl FirstPace {
    /// The pace, once it is known.
    pub fn rate(&self) -> Option<BitRate> {
        self.known.map(|pace| pace.rate)
    }

    /// Whether nothing that comes changes it any more.
    pub fn is_known(&self) -> bool {
        self.looked_at > MOST_TELLING
    }

    /// Whether it is that of servers.
    pub fn is_of_servers(&self) -> bool {
        self.known.is_some_and(|pace| pace.of_servers)
    }

    /// It was measured elsewhere, and better.
    pub fn set(&mut self, pace: Pace) {
        self.known = Some(pace);
        self.is_settled = true;
    }

    /// `bytes` of bodies arrived over a path of this round-trip time, as whole as they are read. Returns the pace if it became
    /// known with them: over a slow path a few packets tell it soon, and the rest of their flight tells it better.
    pub fn on_bytes(&mut self, now: Timestamp, bytes: Bytes, rtt: Duration) -> Option<Pace> {
        self.on_first_bytes(now, bytes, rtt, false)
    }

    fn on_first_bytes(
        &mut self,
        now: Timestamp,
        bytes: Bytes,
        rtt: Duration,
        by_stretches: bool,
    ) -> Option<Pace> {
        if self.is_settled {
            return None;
        }
        let begun = Flight::beginning(now);
        let (Some(flight), Some(all)) = (&mut self.flight, &mut self.all) else {
            (self.flight, self.stretch, self.all) = (Some(begun), Some(begun), Some(begun));
            return None;
        };
        let is_silence = flight.has_ended(now, rtt);
        all.add(now, bytes);
        let stretch = self.stretch.get_or_insert(begun);
        if is_silence {
            *stretch = begun;
            let silent_for = now.saturating_since(flight.last);
            self.silences += 1;
            self.silent_for += silent_for;
            let ended = std::mem::replace(flight, begun);
            // Where the next flight comes a round trip later, they were all that was asked for.
            let is_next = silent_for <= rtt.saturating_add(rtt / LATER_OF_RTT);
            let telling = if is_next { LEAST_OF_ANSWERS } else { TELLING_FLIGHT };
            let is_told = ended.counted() >= telling;
            let gives_up = self.silences >= MOST_SILENCES && all.bytes >= LEAST_OF_ANSWERS;
            self.is_settled = self.known.is_some() || is_told || gives_up;
            let rate = all.rate();
            // Silences within an answer are no thoughts: more packets may leave at once there, each of which takes its time.
            let within = self.answers < self.silences;
            let (few, pieces) = if within {
                (FEW_OF_ONE, u32::try_from(all.bytes.div_ceil(SEGMENT)).unwrap_or(u32::MAX))
            } else {
                (FEW_PACKETS, self.silences)
            };
            let is_of_packets = self.silent_for < PACKET.saturating_mul(pieces)
                && all.bytes.0 < u64::from(self.silences) * few.0
                && rate.bps() > (LEAST_PACKET / rtt).bps();
            let together = (all.counted() + self.others.beside) / all.took();
            let of_servers = !is_of_packets && !self.others.came_like(together);
            let silent = Pace { rate, of_servers };
            let by_silence = (gives_up && self.known.is_none()).then_some(silent);
            let is_short = ended.counted() < TELLING_FLIGHT;
            let least = if is_short { TELLING_TIME } else { Duration::from_nanos(1) };
            let told =
                (is_told && !self.has_stretch).then(|| Pace::of_path(ended.rate_over(least)));
            return self.learn(told.or(by_silence));
        }
        flight.add(now, bytes);
        stretch.add(now, bytes);
        let counted = flight.counted();
        let is_enough = counted >= TELLING;
        let is_long = counted > Bytes::ZERO && flight.lasts(rtt / TELLING_OF_RTT);
        let is_new = self.known.is_none() && (is_enough || is_long);
        let mut told = is_new.then(|| flight.rate());
        if !by_stretches {
            self.is_settled = is_enough;
            told = told.or_else(|| is_enough.then(|| flight.rate()));
            return self.learn(told.map(Pace::of_path));
        }
        if stretch.lasts(rtt / STRETCH_OF_RTT) && stretch.counted() >= TELLING {
            let rate = std::mem::replace(stretch, begun).rate();
            let is_more = self.known.is_none_or(|known| rate > known.rate);
            told = (is_more || !self.has_stretch).then_some(rate);
            self.has_stretch = true;
        }
        self.is_settled = self.has_stretch && flight.lasts(rtt / FIRST_OF_RTT);
        self.learn(told.map(Pace::of_path))
    }

    /// The same for what is seen on the wire, and `are_answers` to requests or not: there parts of a flight tell, and what
    /// comes later.
    pub fn on_wire(
        &mut self,
        now: Timestamp,
        bytes: Bytes,
        rtt: Duration,
        are_answers: bool,
    ) -> Option<Pace> {
        if self.is_settled {
            self.on_further_bytes(now, bytes, rtt)
        } else if are_answers {
            let pace = self.on_first_bytes(now, bytes, rtt, true)?;
            self.learn(Some(self.beside_handshakes(pace)))
        } else {
            self.on_other_bytes(now, bytes, rtt);
            None
        }
    }

    /// An answer led elsewhere. It came as fast as its server speaks, and files will tell the path's pace.
    pub fn on_redirect(&mut self) {
        if !self.has_file {
            *self = Self::default();
        }
    }

    /// An answer brings a file, and what comes from now on is of files.
    pub const fn on_file(&mut self) {
        self.has_file = true;
        self.answers = self.answers.saturating_add(1);
    }

    fn on_further_bytes(&mut self, now: Timestamp, bytes: Bytes, rtt: Duration) -> Option<Pace> {
        let (Some(flight), Some(known)) = (&mut self.flight, self.known) else { return None };
        let begun = Flight::beginning(now);
        let stretch = self.stretch.get_or_insert(begun);
        if flight.has_ended(now, rtt) {
            (*flight, *stretch) = (begun, begun);
            return None;
        }
        flight.add(now, bytes);
        stretch.add(now, bytes);
        self.looked_at = self.looked_at.max(flight.counted());
        let surely = stretch.without_largest();
        let is_soon = self
            .all
            .is_some_and(|all| now.saturating_since(all.since) <= rtt.saturating_mul(SOON_OF_RTT));
        let (least, telling) =
            if is_soon { (rtt / STRETCH_OF_RTT, TELLING_MORE_SOON) } else { (rtt, TELLING_MORE) };
        if !stretch.lasts(least) || surely < TELLING_LATER {
            return None;
        }
        let rate = surely / std::mem::replace(stretch, begun).took();
        let is_more = rate.bps() > known.rate.bps() * telling;
        self.learn(is_more.then_some(Pace::of_path(rate)))
    }

    fn learn(&mut self, pace: Option<Pace>) -> Option<Pace> {
        self.known = pace.or(self.known);
        pace
    }

    /// The path brings handshakes no faster than it may. Where less has come since than they had, answers may have waited for
    /// requests that left one by one, as those did.
    fn beside_handshakes(&self, pace: Pace) -> Pace {
        let came = self.all.map_or(Bytes::ZERO, |all| all.bytes);
        let tell = !pace.of_servers && self.others.bytes > came;
        let faster = self.others.rate().filter(|rate| tell && rate.bps() > pace.rate.bps());
        Pace { rate: faster.unwrap_or(pace.rate), ..pace }
    }

    /// `bytes` arrived that answer no request, as those of handshakes do. They tell how fast a path
    /// is at least, as servers compute meanwhile, and share it with what comes at the same time.
    fn on_other_bytes(&mut self, now: Timestamp, bytes: Bytes, rtt: Duration) {
        self.others.add(now, bytes, rtt, self.all.is_some());
        if let (Some(flight), Some(all)) = (&mut self.flight, &mut self.all)
            && !flight.has_ended(now, rtt)
        {
            flight.add(now, bytes);
            all.add(now, bytes);
            if let Some(stretch) = &mut self.stretch {
                stretch.add(now, bytes);
            }
        }
    }
}

/// Handshakes, without the pauses between them.
#[derive(Debug, Clone, Copy, Default)]
struct Others {
    last: Option<Timestamp>,
    bytes: Bytes,
    took: Duration,
    /// Those that came since the first answer.
    beside: Bytes,
}

impl Others {
    fn add(&mut self, now: Timestamp, bytes: Bytes, rtt: Duration, is_beside: bool) {
        self.beside += if is_beside { bytes } else { Bytes::ZERO };
        let pause = self.last.replace(now).map(|last| now.saturating_since(last));
        let most = (rtt / SILENCE_OF_RTT).max(FAR_APART);
        if let Some(between) = pause.filter(|pause| *pause <= most) {
            self.bytes += bytes;
            self.took += between;
        }
    }

    /// Their pace, where there are enough of them.
    fn rate(&self) -> Option<BitRate> {
        let tell = self.bytes >= TELLING_FLIGHT && !self.took.is_zero();
        tell.then(|| self.bytes / self.took)
    }

    /// Whether they tell that the path hardly brings more than `rate`.
    fn came_like(&self, rate: BitRate) -> bool {
        self.rate().is_some_and(|own| own.bps() < rate.bps() * FASTER)
    }
}

impl Flight {
    const fn beginning(now: Timestamp) -> Self {
        Self { since: now, last: now, bytes: Bytes::ZERO, largest: Bytes::ZERO }
    }

    fn has_ended(&self, now: Timestamp, rtt: Duration) -> bool {
        now.saturating_since(self.last) > rtt / SILENCE_OF_RTT
    }

    fn add(&mut self, now: Timestamp, bytes: Bytes) {
        self.last = now;
        self.bytes += bytes;
        self.largest = self.largest.max(bytes);
    }

    /// Bytes that came one after the other: the largest piece counts no more than all others together.
    fn counted(&self) -> Bytes {
        self.bytes.min(Bytes(self.without_largest().0.saturating_mul(2)))
    }

    /// The largest piece may have waited behind a segment that was lost.
    fn without_largest(&self) -> Bytes {
        Bytes(self.bytes.0.saturating_sub(self.largest.0))
    }

    fn took(&self) -> Duration {
        self.last.saturating_since(self.since)
    }

    /// It has gone on for so long, and for a millisecond at least.
    fn lasts(&self, least: Duration) -> bool {
        self.took() >= least.max(TELLING_TIME)
    }

    fn rate(&self) -> BitRate {
        self.rate_over(Duration::from_nanos(1))
    }

    /// The same if it took so long at least.
    fn rate_over(&self, least: Duration) -> BitRate {
        self.counted() / self.took().max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::START + Duration::from_micros(micros)
    }

    #[test]
    fn a_few_packets_tell_the_rate() {
        let mut pace = FirstPace::default();
        // 20 Mbit/s are a packet each 600 us.
        let rtt = Duration::from_millis(60);
        let mut told = (0..13).map(|n| pace.on_bytes(at(120_000 + 600 * n), Bytes(1_448), rtt));
        assert!(told.by_ref().take(12).all(|told| told.is_none()));
        let seen = told.next().flatten().unwrap().rate.mbps();
        assert!((seen - 19.3).abs() < 0.1, "{seen}");
        assert_eq!(pace.rate().map(BitRate::mbps), Some(seen));
        assert_eq!(pace.on_bytes(at(130_000), Bytes::mib(1), rtt), None, "that was it");
        pace.set(Pace::of_path(BitRate::from_mbps(1.0)));
        assert_eq!(pace.rate().map(BitRate::mbps), Some(1.0));
    }

    #[test]
    fn what_was_read_late_or_came_slowly_is_put_right() {
        let rtt = Duration::from_millis(200);
        let mut pace = FirstPace::default();
        let mut now = 400_000;
        let mut packets = |pace: &mut FirstPace, count: u64, apart: u64| {
            for _ in 0..count {
                now += apart;
                pace.on_wire(at(now), Bytes(1_448), rtt, true);
            }
            pace.rate().unwrap().mbps()
        };
        // What had waited for 5 ms, and what comes over 50 Mbit/s after it.
        let at_once = packets(&mut pace, 22, 40);
        assert!(at_once > 100.0, "{at_once}");
        let put_right = packets(&mut pace, 110, 232);
        assert!((50.0..62.0).contains(&put_right), "{put_right}");
        // The server is busy with handshakes.
        let slower = packets(&mut pace, 30, 1_000);
        assert!(slower >= put_right, "{slower}");
        // The second flight comes three times as fast.
        let faster = packets(&mut pace, 800, 77);
        assert!((140.0..152.0).contains(&faster), "{faster}");
    }

    #[test]
    fn a_slow_link_is_seen_within_a_part_of_its_round_trip_time() {
        let mut pace = FirstPace::default();
        let mut packet = |millis: u64| {
            pace.on_bytes(at(millis * 1_000), Bytes(1_448), Duration::from_millis(400))
        };
        assert_eq!((packet(800), packet(849)), (None, None));
        let seen = packet(850).unwrap().rate.bps() / 1000.0;
        assert!((seen - 463.4).abs() < 0.1, "{seen}");
        // They came close together by chance.
        let told: Vec<_> = (1..12).filter_map(|n| packet(850 + 50 * n)).collect();
        let seen: Vec<_> = told.into_iter().map(|pace| pace.rate.bps().round() / 1000.0).collect();
        assert!(matches!(seen[..], [seen] if (231.0..260.0).contains(&seen)), "{seen:?}");
    }

    #[test]
    fn what_was_held_back_behind_a_lost_segment_is_no_pace() {
        let mut pace = FirstPace::default();
        // 100 Mbit/s are a packet each 116 us. One was lost, and thirty wait for it.
        let rtt = Duration::from_millis(1);
        assert_eq!(pace.on_bytes(at(2_000), Bytes(1_448), rtt), None);
        assert_eq!(pace.on_bytes(at(2_000), Bytes(31 * 1_448), rtt), None, "in no time");
        let told = (1..20).find_map(|n| pace.on_bytes(at(2_000 + 116 * n), Bytes(1_448), rtt));
        let seen = told.unwrap().rate.mbps();
        assert!((99.0..=200.0).contains(&seen), "{seen}");
    }

    #[test]
    fn a_silence_is_no_pace() {
        let mut pace = FirstPace::default();
        let rtt = Duration::from_millis(200);
        // One file came with the first flight, and the others need a second one.
        assert_eq!(pace.on_bytes(at(616_000), Bytes(14_465), rtt), None);
        assert_eq!(pace.on_bytes(at(814_000), Bytes(14_465), rtt), None);
        assert_eq!(pace.on_bytes(at(816_000), Bytes(16_384), rtt), None);
        let seen = pace.on_bytes(at(818_000), Bytes(16_384), rtt).unwrap().rate.mbps();
        assert!((seen - 65.5).abs() < 0.1, "{seen}");
    }

    #[test]
    fn answers_of_next_to_nothing_tell_a_pace() {
        // Sixteen in a flight, which the next one follows after so long.
        let told = |silence: u64| {
            let mut pace = FirstPace::default();
            let rtt = Duration::from_millis(200);
            let come = (0..16).map(|n| pace.on_bytes(at(400_000 + 20 * n), Bytes(170), rtt));
            assert_eq!(come.flatten().count(), 0);
            pace.on_bytes(at(400_300 + silence), Bytes(170), rtt)
        };
        let seen = told(200_000).unwrap();
        assert!(!seen.of_servers && (seen.rate.mbps() - 20.4).abs() < 0.1, "{seen:?}");
        assert_eq!(told(400_000), None, "their server thinks");
    }

    #[test]
    fn answers_that_follow_handshakes_one_by_one_come_no_slower_than_those_did() {
        // Sixteen handshakes of 3.3 kB over 50 Mbit/s, and answers of so many bytes.
        let told = |bytes: u64| {
            let mut pace = FirstPace::default();
            let rtt = Duration::from_millis(12);
            let mut told = None;
            for n in 0..16 {
                let now = at(24_000 + 530 * n);
                assert_eq!(pace.on_wire(now, Bytes(3_300), rtt, false), None);
            }
            for n in 0..16 {
                told = pace.on_wire(at(36_000 + 530 * n), Bytes(bytes), rtt, true).or(told);
            }
            told.unwrap().rate.mbps()
        };
        let short = told(200);
        assert!((48.0..52.0).contains(&short), "{short}");
        let long = told(10_000);
        assert!((140.0..160.0).contains(&long), "{long}");
    }

    #[test]
    fn packets_of_a_slow_and_short_path_are_no_answers_of_servers() {
        // Each after so many microseconds, of so many bytes, over 4 ms.
        let told = |micros: u64, bytes, each_is_an_answer: bool| {
            let mut pace = FirstPace::default();
            let rtt = Duration::from_millis(4);
            let mut came = |n: u64, is_answer: bool| {
                let told = pace.on_bytes(at(micros * n), Bytes(bytes), rtt);
                is_answer.then(|| pace.on_file());
                told
            };
            (0..9u64).find_map(|n| came(n, each_is_an_answer || n == 0)).unwrap()
        };
        let slow = told(4_300, 1_448, true);
        assert!(!slow.of_servers && (slow.rate.mbps() - 2.7).abs() < 0.1, "{slow:?}");
        assert!(told(4_300, 5_000, true).of_servers && told(15_000, 1_448, true).of_servers);
        assert!(!told(4_300, 5_000, false).of_servers, "no server thinks within an answer");
        assert!(told(45_000, 5_000, false).of_servers, "but some hold it back");
    }

    #[test]
    fn what_came_before_and_beside_answers_tells_whether_the_path_is_what_they_wait_for() {
        // Answers of 2 kB each 8 ms are packets of a slow path, if it is not as short as only a faster one can be.
        let answers = |pace: &mut FirstPace, rtt| {
            (0..9u64).find_map(|n| pace.on_wire(at(60_000 + 8_000 * n), Bytes(2_000), rtt, true))
        };
        let told = |micros| answers(&mut FirstPace::default(), Duration::from_micros(micros));
        assert!(!told(4_000).unwrap().of_servers);
        assert!(told(50).unwrap().of_servers);
        // Handshakes came as fast, or much faster.
        let after_handshakes = |micros: u64| {
            let (mut pace, rtt) = (FirstPace::default(), Duration::from_micros(50));
            for n in 0..8 {
                pace.on_wire(at(micros * n), Bytes(3_000), rtt, false);
            }
            answers(&mut pace, rtt).unwrap().of_servers
        };
        assert!(!after_handshakes(8_000) && after_handshakes(1_000));
    }

    #[test]
    fn what_a_protocol_says_before_its_answers_is_no_pace() {
        let mut pace = FirstPace::default();
        let rtt = Duration::from_micros(50);
        assert_eq!((0..16).find_map(|n| pace.on_bytes(at(500 * n), Bytes(60), rtt)), None);
        let told = (0..9).find_map(|n| pace.on_bytes(at(50_000 + 20_000 * n), Bytes(2_000), rtt));
        assert!(told.unwrap().of_servers);
    }

    #[test]
    fn redirects_tell_no_pace() {
        let rtt = Duration::from_millis(1);
        let mut pace = FirstPace::default();
        let answers = |pace: &mut FirstPace, from: u64, bytes: u64| {
            let came = (0..32).map(|n| at(from + 100 * n));
            came.filter_map(|now| pace.on_wire(now, Bytes(bytes), rtt, true)).last()
        };
        // Words about where the files are to be had, as fast as the server finds them, and the files half a second later.
        let words = answers(&mut pace, 2_000, 150).unwrap().rate.mbps();
        assert!((10.0..15.0).contains(&words), "{words}");
        pace.on_redirect();
        assert_eq!(pace.rate(), None);
        let files = answers(&mut pace, 500_000, 1_448).unwrap().rate.mbps();
        assert!((100.0..125.0).contains(&files), "{files}");
        pace.on_file();
        pace.on_redirect();
        assert_eq!(pace.rate().map(BitRate::mbps), Some(files), "of files");
    }

    #[test]
    fn handshakes_share_the_path_with_answers() {
        let rtt = Duration::from_millis(200);
        let mut pace = FirstPace::default();
        // 50 Mbit/s are a packet each 232 us; every second one is of a handshake.
        pace.on_other_bytes(at(400_000), Bytes(1_448), rtt);
        let mut told = None;
        for n in 0..24 {
            let now = at(600_000 + 232 * n);
            if n % 2 == 0 {
                told = told.or(pace.on_bytes(now, Bytes(1_448), rtt));
            } else {
                pace.on_other_bytes(now, Bytes(1_448), rtt);
            }
        }
        let seen = told.unwrap().rate.mbps();
        assert!((seen - 50.0).abs() < 0.1, "{seen}");
    }

    #[test]
    fn flights_that_are_too_short_to_tell_are_not_waited_for_for_ever() {
        let rtt = Duration::from_millis(40);
        // Three files of 3 kB at a time: 6 kB after the first one, in 1 ms.
        let mut pace = FirstPace::default();
        let mut told =
            (0..6).map(|n| pace.on_bytes(at(40_000 * (n / 3) + 500 * (n % 3)), Bytes(3_000), rtt));
        assert!(told.by_ref().take(3).all(|told| told.is_none()));
        let seen = told.next().flatten().unwrap().rate.mbps();
        assert!((seen - 48.0).abs() < 0.1, "{seen}");
        drop(told);
        assert!(!pace.is_of_servers());
        // One at a time: what four round trips bring.
        let mut pace = FirstPace::default();
        let mut told = (0..5).map(|n| pace.on_bytes(at(40_000 * n), Bytes(3_000), rtt));
        assert!(told.by_ref().take(4).all(|told| told.is_none()));
        let seen = told.next().flatten().unwrap().rate.mbps();
        assert!((seen - 0.6).abs() < 0.01, "{seen}");
        drop(told);
        assert!(pace.is_of_servers());
    }

    #[test]
    fn a_server_that_is_slow_to_begin_is_told_from_a_slow_link_by_what_comes_later() {
        let rtt = Duration::from_millis(200);
        let mut pace = FirstPace::default();
        let mut on_wire = |micros, bytes| pace.on_wire(at(micros), Bytes(bytes), rtt, true);
        // It is busy with handshakes: 8 kB in 25 ms, and then 40 Mbit/s.
        let slow = [(400_000, 2_000), (410_000, 2_000), (420_000, 2_000), (426_000, 2_000)];
        let seen = slow.into_iter().find_map(|(micros, bytes)| on_wire(micros, bytes));
        assert!((1.0..3.0).contains(&seen.unwrap().rate.mbps()), "{seen:?}");
        let mut told: Vec<_> = (1..400)
            .filter_map(|n| on_wire(426_000 + 290 * n, 1_448))
            .map(|pace| pace.rate.mbps())
            .collect();
        let best = told.pop().unwrap();
        assert!((15.0..40.0).contains(&best), "{best}");
        assert!(told.len() <= 3, "{told:?}");
        // What comes slower later is no news: windows are small.
        assert_eq!((1..400).find_map(|n| on_wire(800_000 + 2_900 * n, 1_448)), None);
    }
}
