//! How many connections a path has room for.
//!
//! The formulas count streams by windows, and each further connection brings a window of its own.
//! Where windows are more than the path holds, the queue in front of it overflows, and what a
//! stopped stream had in flight was in vain. papers/001 leaves the bound to "fairness concerns".

use std::time::Duration;

use crate::energy::Forecast;
use crate::handshakes::HANDSHAKES_TO_SAVED;
use crate::link::LinkEstimate;
use crate::params::DEFAULT_CHANNELS;
use crate::units::{BitRate, Bytes};

/// What each connection shall have in flight at least: sixteen full segments. With a few less, a
/// loss is no more found by the segments that follow it (RFC 5681 section 3.2).
const LEAST_SHARE: Bytes = Bytes(16 * 1448);

/// Connections over which larger files are multiplexed: they need no more windows on a path that
/// loses nothing, and whatever shares a connection leaves it warm for the next.
const MULTIPLEXED: u32 = 16;

/// What each connection over a slow path shall have in flight, its part of the queue included: twice the
/// [`LEAST_SHARE`], as a window that grows doubles before it is known that the queue is full.
const SLOW_SHARE: Bytes = Bytes(LEAST_SHARE.0 * 2);

/// So many are left however slow a path is: what is lost on one holds nothing up on the other.
const FEWEST_HELD: u32 = 2;

/// What the queue in front of a slow link commonly holds, in time.
pub(crate) const QUEUE: Duration = Duration::from_millis(200);

/// On a shorter path, such as a wired local network, one connection's window grows, and recovers from a loss, before
/// anybody notices. What comes over several is read when the processor's cache has given it up (docs/tried.md).
const NEXT_DOOR: Duration = Duration::from_millis(1);

/// A stream whose window was measured below this has met losses.
const LOSSLESS_WINDOW: Bytes = Bytes::kib(64);

/// What a connection surely may have in flight: Linux gives a sender's socket 4 MiB at most, and others
/// less.
const WIDEST_WINDOW: Bytes = Bytes::mib(1);

/// A file of up to four initial windows (RFC 6928 section 2) takes two round trips: connections end
/// before they overfill anything, and each of them saves a wait.
pub const FEW_ROUND_TRIPS: Bytes = Bytes(4 * 10 * 1448);

/// What a short file has at most: it takes [few round trips](FEW_ROUND_TRIPS), or its server has `thought` of each answer for so
/// long that all channels, with a file each, leave the path empty meanwhile.
pub fn short_file(thought: Option<&LinkEstimate>) -> Bytes {
    let share = thought.map_or(0, |link| link.bdp().0 / u64::from(DEFAULT_CHANNELS));
    FEW_ROUND_TRIPS.max(Bytes(share))
}

/// Connections for which the path has room: each has its least share of the bandwidth-delay
/// product. Never below [`DEFAULT_CHANNELS`].
pub fn with_room(link: &LinkEstimate) -> u32 {
    let shares = link.bdp().0 / LEAST_SHARE.0;
    u32::try_from(shares).unwrap_or(u32::MAX).max(DEFAULT_CHANNELS)
}

/// A new connection's first flight (RFC 6928 section 2).
pub const FIRST_FLIGHT: Bytes = Bytes(10 * 1448);

/// So many that are shared are left however little their path holds: what one has lost holds up its own answers alone.
const FEWEST_SHARED: u64 = 4;

/// Connections that short files share on a path that holds so little that the first flights of fewer than are usual fill it.
/// `None` where it holds more.
pub fn shared_on_short_path(link: &LinkEstimate) -> Option<u32> {
    let flights = link.bdp().div_ceil(FIRST_FLIGHT).max(FEWEST_SHARED);
    u32::try_from(flights).ok().filter(|flights| *flights < DEFAULT_CHANNELS)
}

/// So many times what a path holds are in flight there and in a queue that holds as much.
const WITH_QUEUE: u64 = 2;

/// Whether the first flights of so many `connections` are more than a path that holds so many bytes and its queue take: what is
/// lost of them tells nothing of chance.
pub fn overfill_path(connections: u64, held: Bytes) -> bool {
    FIRST_FLIGHT.0.saturating_mul(connections) > held.0.saturating_mul(WITH_QUEUE)
}

/// How long so many `bytes` take over so many `connections` whose windows are those of new ones: at least one of them each
/// `rtt`.
pub fn time_of_first_windows(bytes: Bytes, connections: u32, rtt: Duration) -> Duration {
    let at_once = FIRST_FLIGHT.0.saturating_mul(u64::from(connections.max(1)));
    let round_trips = u32::try_from(bytes.0.div_ceil(at_once)).unwrap_or(u32::MAX);
    rtt.saturating_mul(round_trips)
}

/// How many times what the path holds is asked for where each request is answered in one flight: the lanes are not in
/// step. What is more overfills the short queues that there are (docs/tried.md).
const SHORT_FILES_IN_FLIGHT: f64 = 1.25;

/// Heads of answers have some 300 bytes, and so have the headers of the two or three packets that bring it.
const HEAD: Bytes = Bytes(500);

/// What a file of several flights has under way, on the average of connections that are new and such whose
/// windows have grown: more than a first flight.
const MEAN_FLIGHT: Bytes = Bytes(FIRST_FLIGHT.0 * 3 / 2);

/// Requests for files of `mean_size` that take few round trips: so many flights fill the path, and
/// what is more overfills its queue. Never fewer than [`DEFAULT_CHANNELS`], or eight over a short path.
pub fn for_short_files(link: &LinkEstimate, mean_size: Bytes) -> u32 {
    let is_near = link.rtt < WORTH_PIPELINING;
    let least = if is_near { FEW_NEARBY } else { DEFAULT_CHANNELS };
    flights(link, SHORT_FILES_IN_FLIGHT, mean_size.min(MEAN_FLIGHT)).max(least)
}

/// Twice the flights that a limit needs leave room for handshakes, and for what is lost.
const FLIGHTS_OF_LIMIT: f64 = 2.0;

/// Channels that a limit of `rate` leaves work for where files have `mean_size`: each brings a file, or a first flight, in a
/// round trip at least. What more of them are sent beyond the limit waits unread, and is in vain if they are ended.
pub fn within_limit(rate: BitRate, link: &LinkEstimate, mean_size: Bytes) -> u32 {
    let flight = answer(mean_size).min(FIRST_FLIGHT);
    flights(&LinkEstimate { bandwidth: rate, ..*link }, FLIGHTS_OF_LIMIT, flight).max(1)
}

/// The first flights of more connections than these overfill the queue of a short path, and the last packet of a
/// short file is missed for far longer than a round trip.
const FEW_NEARBY: u32 = 8;

/// The path may hold so many times what is assumed before its bandwidth was seen.
const MORE_THAN_ASSUMED: f64 = 4.0;

/// Files of unknown size have so many times the bytes of the handshakes of connections that are opened for them.
const FILES_TO_HANDSHAKES: u64 = 28;

/// So many `files` of unknown size, and the bytes that they are taken to have for connections to be opened for them.
pub const fn of_unknown_sizes(files: u64) -> (u64, Bytes) {
    (files, Bytes(files.saturating_mul(FIRST_FLIGHT.0)))
}

/// Connections that may be of use as soon as the first answers over a few of them have told how fast the link
/// is, for so many `files` of unknown size. What their handshakes bring, a `handshake` each, shall take no more
/// than a part of what they save, which is round trips, and of the whole, over a link that proves slow.
pub fn ahead(link: &LinkEstimate, files: u64, handshake: Bytes) -> u32 {
    let useful = flights(link, MORE_THAN_ASSUMED, FIRST_FLIGHT);
    let (_, bytes) = of_unknown_sizes(files);
    let cheap = bytes.0.checked_div(handshake.0 * FILES_TO_HANDSHAKES).unwrap_or(u64::MAX);
    let soon = (link.bandwidth * link.rtt.mul_f64(HANDSHAKES_TO_SAVED)).0.checked_div(handshake.0);
    useful.min(u32::try_from(cheap.min(soon.unwrap_or(u64::MAX))).unwrap_or(u32::MAX))
}

/// What a path has to bring for a short file: its head comes with it, and each of its packets has headers.
pub fn answer(file: Bytes) -> Bytes {
    file + HEAD
}

/// Flights of a mean size that are so many `times` what the path holds.
fn flights(link: &LinkEstimate, times: f64, flight: Bytes) -> u32 {
    let in_flight = link.bdp().as_f64() * times;
    (in_flight / flight.as_f64().max(1.0)).ceil() as u32
}

/// The same where several are asked for in one piece, and count together. On a short path there is next to nothing to be
/// saved: one, as without.
pub fn for_pipelined_files(link: &LinkEstimate, mean_size: Bytes) -> u32 {
    if link.rtt < WORTH_PIPELINING {
        return 1;
    }
    flights(link, SHORT_FILES_IN_FLIGHT, mean_size)
}

/// How long `files` of so many `bytes` take where so many requests are under way at once, each file with so many: as
/// long as the link needs, or the round trips.
pub fn forecast_of_short_files(
    link: &LinkEstimate,
    files: u64,
    bytes: Bytes,
    at_once: u32,
    requests_of_each: u64,
) -> Forecast {
    let round_trips = files.div_ceil(u64::from(at_once.max(1))) as f64 * link.rtt.as_secs_f64();
    let seconds = (bytes / link.bandwidth).as_secs_f64().max(round_trips);
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4);
    Forecast {
        bytes,
        rate: bytes / duration,
        duration,
        requests: files.saturating_mul(requests_of_each),
        ..Forecast::default()
    }
}

/// A shorter round trip costs less than a burst that overfills a queue: its last packet is missed only after
/// 200 ms.
const WORTH_PIPELINING: Duration = Duration::from_millis(10);

/// Requests under way over one HTTP/1.1 connection at most (RFC 9112 section 9.3.2): what one of them
/// meets, those behind it meet too.
const MOST_PIPELINED: u32 = 8;

/// Whoever is behind a longer response than this over HTTP/1.1 is better served elsewhere.
pub const LONGEST_AHEAD: Bytes = Bytes::kib(128);

/// Requests that each HTTP/1.1 connection bears where `requests` for short files fill the path and
/// there are no more than `connections`.
pub fn pipelined(requests: u32, connections: u32) -> u32 {
    requests.div_ceil(connections.max(1)).clamp(1, MOST_PIPELINED)
}

/// The window of a connection that has answered is so many times as wide as that of a new one.
const WARM_FLIGHTS: u64 = 2;

/// How many requests for short files go out in one piece (HTTP/1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// Over a new connection.
    pub new: u32,
    /// Over one that has answered.
    pub warm: u32,
}

impl Together {
    /// Each goes out alone.
    pub const ALONE: Self = Self { new: 1, warm: 1 };

    /// As many of a mean size as come together, with the next flight.
    pub fn with_a_flight(mean_size: Bytes) -> Self {
        let of = |flights| {
            let files = FIRST_FLIGHT.0.saturating_mul(flights) / answer(mean_size).0.max(1);
            u32::try_from(files).unwrap_or(u32::MAX).max(1)
        };
        Self { new: of(1), warm: of(WARM_FLIGHTS) }
    }

    /// The same where a connection bears no more than so many.
    #[must_use]
    pub fn at_most(self, pipelined: u32) -> Self {
        Self { new: self.new.min(pipelined), warm: self.warm.min(pipelined) }
    }
}

/// Whether answers of so many `bytes`, those under way included, are more than connections bring with their next flights, of
/// which so many are `new` and others `warm`, with a window twice as wide: then nothing is brought sooner by
/// waiting for another one.
pub fn overfill_flights(bytes: Bytes, new: usize, warm: usize) -> bool {
    let flights = new as u64 + WARM_FLIGHTS * warm as u64;
    bytes.0 > FIRST_FLIGHT.0.saturating_mul(flights)
}

/// Whether a connection bears one request more than the `asked` that it has, if all their answers together
/// have some `bytes`. What a new one does not bring in its first flight is sooner asked for elsewhere, unless there is
/// [too much](overfill_flights) for that; one that `is_warm` has a wider window.
pub fn bears_another(
    asked: u32,
    pipelined: u32,
    bytes: Bytes,
    is_warm: bool,
    overfills: bool,
) -> bool {
    asked == 0 || (asked < pipelined && (is_warm || overfills || bytes <= FIRST_FLIGHT))
}

/// Whether a connection brings answers of so many `bytes` with its next flight: none of them comes sooner elsewhere.
pub fn brings_at_once(bytes: Bytes, is_warm: bool) -> bool {
    !overfill_flights(bytes, usize::from(!is_warm), usize::from(is_warm))
}

/// A handshake is overdue after so many times what the last one took, and not before [`LEAST_HANDSHAKE_OVERDUE`].
const HANDSHAKE_OVERDUE: u32 = 4;
/// Programs that wait for their turn take longer than packets.
const LEAST_HANDSHAKE_OVERDUE: Duration = Duration::from_millis(50);
/// The first time-out of a sender that knows nothing of a path (RFC 6298 section 2.1).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);

/// After how long another handshake is tried beside one with a host of which the last one `took` so long. No
/// later than the first one's packet is sent again.
pub fn handshake_overdue(took: Duration) -> Duration {
    took.saturating_mul(HANDSHAKE_OVERDUE).clamp(LEAST_HANDSHAKE_OVERDUE, SYN_TIMEOUT)
}

/// So many flights come over an open connection before the first answer over one that is opened now,
/// after its handshake: one, two and four in slow start, and the last ones are shared with it.
const FLIGHTS_AHEAD: u64 = 4;

/// What short files that share connections may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Connections.
    pub connections: u32,
    /// Requests at once, over all of them.
    pub requests: u32,
    /// Windows have grown when so much has come, and fewer requests fill the path.
    pub until: Bytes,
}

/// What files of `mean_size` and of `bytes` in all may have where they share connections. A connection
/// brings a flight however many files are in it, and a new one is of use only for what the open ones do
/// not bring before it answers; those that are `there` are of use for whatever is a flight. `link` is `None` as long as
/// nothing is known of its bandwidth: then the connections that are open anyway find out. There may be `most` connections.
/// Of a path that `is_new` nothing is known but the pace of its first answers, and how much `came`.
pub fn for_sharing(
    link: Option<&LinkEstimate>,
    mean_size: Bytes,
    bytes: Bytes,
    (there, most): (u32, u32),
    is_new: bool,
    came: Bytes,
) -> Sharing {
    let Some(link) = link else {
        let requests = DEFAULT_CHANNELS.saturating_mul(FLIGHTS_AHEAD as u32);
        return Sharing { connections: DEFAULT_CHANNELS, requests, until: Bytes(u64::MAX) };
    };
    let flights = link.bdp().div_ceil(FIRST_FLIGHT);
    let worth_opening = bytes.0.div_ceil(FIRST_FLIGHT.0 * FLIGHTS_AHEAD);
    let useful = bytes.0.div_ceil(FIRST_FLIGHT.0).min(there.into()).max(worth_opening);
    let connections = u32::try_from(flights.min(useful)).unwrap_or(u32::MAX).max(DEFAULT_CHANNELS);
    let windows = FIRST_FLIGHT.0 * u64::from(connections.min(most));
    // More than where each has a connection: they wait for their turn as well. Not where windows, which grow by what they bring, fill
    // the path, with files that take half of a first one: all of them are under way soon, and what is more than the path and its
    // queue hold is lost. What is known is the pace of the first answers: where those were less than half of what it says that the
    // path holds, it may hold more.
    let may_fill = is_new && mean_size.0 >= FIRST_FLIGHT.0 / 2;
    let until = if may_fill { link.bdp().0.saturating_sub(windows) } else { u64::MAX };
    let first = Bytes(mean_size.min(FIRST_FLIGHT).0.saturating_mul(DEFAULT_CHANNELS.into()));
    let quarters = match link.bdp().0 {
        _ if came.0 >= until => 4,
        bdp if first.0 * 2 >= bdp => 5,
        _ => 6,
    };
    let requests = for_short_files(link, mean_size).saturating_mul(quarters) / 4;
    let until = Bytes(if came.0 >= until { u64::MAX } else { until });
    Sharing { connections, requests, until }
}

/// What may be left to bring when the end begins, in bandwidth-delay products: the first files that ended have left
/// connections, and what their windows bring is less than the path.
const LAST_PRODUCTS: u64 = 3;

/// What connections that are shared were promised comes in vain where it is given to others: their end begins with so
/// much less.
const LAST_OF_SHARED: u64 = 2;

/// Whether so many `outstanding` bytes are the last ones, which all connections that are open had best bring: who has lost
/// packets brings them for many round trips, over a path that is not full any more.
pub fn are_last(outstanding: Bytes, link: &LinkEstimate, are_shared: bool) -> bool {
    let last = link.bdp().0.saturating_mul(LAST_PRODUCTS);
    outstanding.0 <= if are_shared { last / LAST_OF_SHARED } else { last }
}

/// Connections of which a path, with the queue in front of it, holds 46 kB each, or whose windows fill
/// it: two at least, and no more than are usual. What more of them have in flight over a slow path is lost.
pub fn held(link: &LinkEstimate) -> u32 {
    let shares = (link.bandwidth * (link.rtt + QUEUE)).0 / SLOW_SHARE.0;
    let fill_it = link.bdp().div_ceil(link.stream_window);
    shares.max(fill_it).clamp(FEWEST_HELD.into(), DEFAULT_CHANNELS.into()) as u32
}

/// Connections over which files larger than [`FEW_ROUND_TRIPS`] are multiplexed: more where losses
/// keep windows small, or hosts do; fewer where a slow path and its queue do not hold a share for each.
pub fn multiplexed(link: &LinkEstimate) -> u32 {
    let windows = if link.stream_window >= LOSSLESS_WINDOW {
        link.bdp().div_ceil(WIDEST_WINDOW)
    } else {
        link.bdp().div_ceil(link.stream_window).saturating_mul(2)
    };
    let least = if link.rtt < NEXT_DOOR { 1 } else { held(link) };
    u32::try_from(windows).unwrap_or(u32::MAX).min(with_room(link)).max(least)
}

/// Where no file waits, who brings less than the path carries has so many times the connections at most: windows that are small
/// by then grow too slowly for what is left.
const MOST_IN_PROPORTION: f64 = 4.0;

/// As many connections as fill a path that carries `bandwidth`, if so many that are `bearing` bring `goodput`. None where windows
/// grow before anybody notices.
pub fn in_proportion(
    link: &LinkEstimate,
    bandwidth: BitRate,
    goodput: BitRate,
    bearing: u32,
) -> u32 {
    if link.rtt < NEXT_DOOR || goodput == BitRate::ZERO {
        return 0;
    }
    let times = (bandwidth.bps() / goodput.bps()).min(MOST_IN_PROPORTION);
    (f64::from(bearing) * times) as u32
}

/// Files of `mean_size` that each of so many `lanes` bears where they share connections: what its part of
/// the path holds, and one that follows. Further ones would wait on a connection that may prove slow, while
/// others have nothing more to bring. Files of few round trips have [`Sharing::requests`] instead.
///
/// papers/001 section III counts the files that one lane has to have in flight to fill the path by itself.
pub fn files_of_lane(link: &LinkEstimate, mean_size: Bytes, lanes: u32) -> u32 {
    if mean_size <= FEW_ROUND_TRIPS {
        return u32::MAX;
    }
    let share = link.bdp().0 / u64::from(lanes.max(1));
    u32::try_from(share.div_ceil(mean_size.0)).unwrap_or(u32::MAX).saturating_add(1)
}

/// Of `early` connections that are open anyway those that larger files may share as well, until it is known
/// whether the path is full: as many doublings of those that they share at least. None where they are not
/// twice as many.
pub fn kept(early: u32) -> u32 {
    let doublings = (early / MULTIPLEXED).checked_ilog2().unwrap_or(0);
    if doublings == 0 { 0 } else { MULTIPLEXED << doublings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_leaves_work_for_few_channels_with_large_files_and_for_many_with_small_ones() {
        let link = link(50.0, 60, Bytes::kib(64));
        let channels = |mbps, size| within_limit(BitRate::from_mbps(mbps), &link, Bytes(size));
        assert_eq!(channels(3.0, 8_000_000), 4, "22.5 kB are under way");
        assert_eq!(channels(3.0, 1_000), 30);
        assert_eq!(channels(0.01, 8_000_000), 1);
        assert!(channels(100.0, 8_000_000) > 64);
    }

    fn link(mbps: f64, millis: u64, window: Bytes) -> LinkEstimate {
        LinkEstimate {
            bandwidth: BitRate::from_mbps(mbps),
            rtt: Duration::from_millis(millis),
            stream_window: window,
        }
    }

    #[test]
    fn files_are_short_where_a_server_thinks_for_longer_than_they_take() {
        // 7.5 MB in 300 ms, and 12.5 kB in 1 ms.
        assert_eq!(short_file(Some(&link(200.0, 300, Bytes::kib(64)))), Bytes(468_750));
        assert_eq!(short_file(Some(&link(100.0, 1, Bytes::kib(64)))), FEW_ROUND_TRIPS);
        assert_eq!(short_file(None), FEW_ROUND_TRIPS);
    }

    #[test]
    fn a_long_fat_path_has_room_for_more_connections_than_a_short_one() {
        // 1.25 MB, 250 kB and 1 kB in flight.
        assert_eq!(with_room(&link(50.0, 200, Bytes::kib(64))), 53);
        assert_eq!(with_room(&link(100.0, 20, Bytes::kib(64))), DEFAULT_CHANNELS);
        assert_eq!(with_room(&link(1.0, 8, Bytes::kib(64))), DEFAULT_CHANNELS);
    }

    #[test]
    fn short_files_are_asked_for_as_fast_as_the_path_brings_them() {
        let on = |mbps, kib| for_short_files(&link(mbps, 100, Bytes::kib(64)), Bytes::kib(kib));
        // 1.25 MB in flight, and a quarter more, in files of 12 KiB and in flights of 21.7 kB.
        assert_eq!(on(100.0, 12), 128);
        assert_eq!(on(100.0, 1_000), 72);
        // Where the path holds less, or is not known.
        assert_eq!(on(1.0, 1_000), DEFAULT_CHANNELS);
        assert_eq!(on(0.0, 1), DEFAULT_CHANNELS);
        let near =
            |mbps, millis| for_short_files(&link(mbps, millis, Bytes::kib(64)), Bytes::kib(12));
        assert_eq!([near(200.0, 9), near(200.0, 10)], [23, 26], "as many as fill it");
        assert_eq!([near(50.0, 4), near(100.0, 1)], [FEW_NEARBY; 2]);
    }

    #[test]
    fn the_last_bytes_are_a_few_times_what_the_path_holds() {
        // 1.25 MB in flight.
        let link = link(100.0, 100, Bytes::kib(64));
        let is_end = |bytes, are_shared| are_last(Bytes(bytes), &link, are_shared);
        assert!(is_end(3_750_000, false) && !is_end(3_800_000, false));
        assert!(is_end(1_870_000, true) && !is_end(1_900_000, true));
    }

    #[test]
    fn pipelined_files_are_asked_for_as_fast_as_the_path_brings_them() {
        let on = |mbps, kib| for_pipelined_files(&link(mbps, 100, Bytes::kib(64)), Bytes::kib(kib));
        // 1.25 MB in flight, and a quarter more, in files of 12 KiB.
        assert_eq!(on(100.0, 12), 128);
        let near = LinkEstimate { rtt: Duration::from_millis(9), ..link(1e4, 1, Bytes::kib(64)) };
        assert_eq!(for_pipelined_files(&near, Bytes::kib(12)), 1);
        assert_eq!([pipelined(153, 64), pipelined(64, 64), pipelined(0, 64)], [3, 1, 1]);
        assert_eq!(pipelined(u32::MAX, 64), 8);
        assert_eq!(pipelined(10, 0), 8, "no connections are none to divide by");
    }

    #[test]
    fn handshakes_ahead_are_a_small_part_of_a_list() {
        let on = |millis, files, handshake| {
            ahead(&link(20.0, millis, Bytes::kib(64)), files, Bytes(handshake))
        };
        // 500 kB in flight, four times, in flights of 14.5 kB.
        assert_eq!(on(200, u64::MAX, 0), 139);
        assert_eq!((on(200, 400, 3_200), on(200, 100, 3_200)), (64, 16));
        // 133 kB in 53 ms.
        assert_eq!(on(80, 10_000, 3_200), 41);
        assert_eq!(on(1, 10_000, 3_200), 0, "nothing is to be saved on a short path");
        assert_eq!(on(200, 0, 3_200), 0);
    }

    #[test]
    fn a_new_connection_bears_what_comes_in_one_flight() {
        let bears = |asked, bytes, is_warm| bears_another(asked, 3, Bytes(bytes), is_warm, false);
        assert!(bears(0, u64::MAX, false), "somewhere it has to go");
        assert!(bears(1, 14_480, false) && !bears(1, 14_481, false));
        assert!(bears(2, 100_000, true) && !bears(3, 1, true));
        // Ten files of 10 kB over six connections, of which two are warm, and twelve.
        let overfill = |files: u64| overfill_flights(Bytes(files * 10_000), 4, 2);
        assert!(!overfill(11) && overfill(12));
        assert!(bears_another(1, 3, Bytes(20_000), false, overfill(12)));
    }

    #[test]
    fn few_share_a_path_that_few_flights_fill() {
        let few = |mbps, millis| {
            let rtt = Duration::from_millis(millis);
            let bandwidth = BitRate::from_mbps(mbps);
            shared_on_short_path(&LinkEstimate { rtt, bandwidth, stream_window: Bytes::kib(64) })
        };
        assert_eq!([few(3.0, 4), few(32.0, 4), few(20.0, 30)], [Some(4), Some(4), Some(6)]);
        assert_eq!([few(20.0, 80), few(216.0, 9), few(50.0, 200)], [Some(14), None, None]);
    }

    #[test]
    fn what_is_lost_of_too_many_first_flights_is_no_chance() {
        // 4 Mbit/s for 60 ms, and 50 for 200.
        assert!(overfill_path(16, Bytes(30_000)) && !overfill_path(4, Bytes(30_000)));
        assert!(!overfill_path(16, Bytes(1_250_000)));
        assert!(overfill_path(1, Bytes::ZERO), "nothing is known of it");
    }

    #[test]
    fn new_windows_bring_a_flight_each_round_trip() {
        let rtt = Duration::from_millis(20);
        let took = |bytes, connections| time_of_first_windows(Bytes(bytes), connections, rtt);
        assert_eq!(took(0, 4), Duration::ZERO);
        assert_eq!((took(14_480, 1), took(14_481, 1)), (rtt, rtt * 2));
        assert_eq!((took(144_800, 4), took(1, 0)), (rtt * 3, rtt));
        assert_eq!(took(u64::MAX, 1), rtt.saturating_mul(u32::MAX));
    }

    #[test]
    fn short_files_share_as_many_connections_as_bring_something_in_time() {
        let on = |mbps, bytes| {
            let link = link(mbps, 200, Bytes::kib(64));
            for_sharing(Some(&link), Bytes::kib(1), bytes, (16, 64), true, Bytes::ZERO)
        };
        let many = Bytes::mib(64);
        // 2.5 MB in flights of 14.5 kB; 24 flights of those that are open are enough for 1.4 MB.
        assert_eq!(on(100.0, many).connections, 173);
        assert_eq!(on(100.0, Bytes(1_400_000)).connections, 25);
        assert_eq!(on(1.0, many).connections, DEFAULT_CHANNELS);
        // 2.5 MB in files of 1 KiB, nearly twice, and 25 kB one and a half times.
        assert_eq!((on(100.0, many).requests, on(1.0, many).requests), (4_578, 38));
        let unknown = for_sharing(None, Bytes::kib(1), many, (16, 64), true, Bytes::ZERO);
        assert_eq!((unknown.connections, unknown.requests), (16, 64));
    }

    #[test]
    fn connections_that_are_there_are_shared_as_long_as_each_has_a_flight_to_bring() {
        let link = link(100.0, 200, Bytes::kib(64));
        let connections = |there, flights| {
            let bytes = Bytes(FIRST_FLIGHT.0 * flights);
            for_sharing(Some(&link), Bytes::kib(1), bytes, (there, 64), true, Bytes::ZERO)
                .connections
        };
        assert_eq!((connections(16, 100), connections(64, 100)), (25, 64));
        assert_eq!((connections(64, 40), connections(64, 1)), (40, DEFAULT_CHANNELS));
    }

    #[test]
    fn windows_that_fill_a_new_path_are_asked_for_no_more_than_it_holds() {
        let sharing = |kib, mbps, is_new, came| {
            let link = link(mbps, 200, Bytes::kib(64));
            for_sharing(Some(&link), Bytes::kib(kib), Bytes::mib(64), (16, 64), is_new, Bytes(came))
        };
        let requests = |kib, mbps, is_new| sharing(kib, mbps, is_new, 0).requests;
        // 750 kB, and a quarter more; 64 first windows are 927 kB.
        assert_eq!((requests(12, 30.0, true), requests(12, 30.0, false)), (77, 115));
        assert_eq!(requests(12, 40.0, true), requests(12, 40.0, false), "windows are too small");
        assert_eq!(
            requests(2, 30.0, true),
            requests(2, 30.0, false),
            "many wait on each connection"
        );
        // 1 MB is 73 kB more than the first windows, by which they have grown then.
        let before = sharing(12, 40.0, true, 0);
        assert_eq!(before.until, Bytes(1_000_000 - 64 * FIRST_FLIGHT.0));
        let after = sharing(12, 40.0, true, before.until.0);
        assert_eq!((before.requests, after.requests, after.until), (153, 102, Bytes(u64::MAX)));
    }

    #[test]
    fn who_brings_less_than_the_path_carries_gets_as_many_connections_as_that_takes() {
        let on = |millis, goodput, bearing| {
            let link = link(50.0, millis, Bytes::kib(64));
            in_proportion(&link, link.bandwidth, BitRate::from_mbps(goodput), bearing)
        };
        assert_eq!((on(200, 25.0, 16), on(200, 20.0, 16)), (32, 40));
        assert_eq!((on(200, 1.0, 16), on(200, 0.0, 16), on(200, 25.0, 0)), (64, 0, 0));
        assert_eq!(on(0, 25.0, 16), 0);
    }

    #[test]
    fn losses_and_long_paths_make_multiplexed_connections_more() {
        assert_eq!(multiplexed(&link(50.0, 200, Bytes::kib(64))), MULTIPLEXED);
        // 1.25 MB in windows of 60 kB, twice.
        assert_eq!(multiplexed(&link(50.0, 200, Bytes(60_000))), 42);
        assert_eq!(multiplexed(&link(50.0, 200, Bytes(1))), 53);
        assert_eq!(multiplexed(&link(1.0, 8, Bytes(30_000))), FEWEST_HELD, "one fills it");
        assert_eq!(
            multiplexed(&link(5.0, 200, Bytes(6_000))),
            MULTIPLEXED,
            "losses keep them small"
        );
        let clean = |mbps| multiplexed(&link(mbps, 30, Bytes::kib(64)));
        assert_eq!([clean(1.0), clean(10.0), clean(20.0)], [FEWEST_HELD, 6, 12]);
        // 25 MB in windows of 1 MiB.
        assert_eq!(multiplexed(&link(1_000.0, 200, Bytes::kib(64))), 24);
        let next_door = |mbps| LinkEstimate {
            rtt: Duration::from_micros(200),
            ..link(mbps, 1, Bytes::kib(64))
        };
        assert_eq!([multiplexed(&next_door(1_000.0)), multiplexed(&next_door(1e5))], [1, 3]);
    }

    #[test]
    fn a_slow_path_holds_few_connections_unless_their_windows_stay_small() {
        let on = |mbps, millis, window| held(&link(mbps, millis, window));
        let clean = |mbps| on(mbps, 60, Bytes::kib(64));
        assert_eq!([clean(1.0), clean(10.0), clean(50.0)], [FEWEST_HELD, 7, DEFAULT_CHANNELS]);
        assert_eq!(on(15.0, 150, Bytes(17_000)), DEFAULT_CHANNELS, "losses");
        assert_eq!(on(1.0, 20, Bytes(1_500)), FEWEST_HELD, "it holds next to nothing");
    }

    #[test]
    fn a_lane_bears_what_its_part_of_the_path_holds_and_one_file_more() {
        // 2.5 MB in flight.
        let on =
            |kib, lanes| files_of_lane(&link(100.0, 200, Bytes::kib(64)), Bytes::kib(kib), lanes);
        assert_eq!([on(250, 1), on(250, 8), on(250, 16), on(250, 64)], [11, 3, 2, 2]);
        assert_eq!(on(100, 0), 26, "no lanes are none to divide by");
        assert_eq!(on(12, 16), u32::MAX);
    }

    #[test]
    fn a_flight_brings_what_fits_into_its_window() {
        assert!(brings_at_once(FIRST_FLIGHT, false));
        assert!(!brings_at_once(FIRST_FLIGHT + Bytes(1), false));
        assert!(brings_at_once(FIRST_FLIGHT + FIRST_FLIGHT, true));
        let of = |bytes| Together::with_a_flight(Bytes(bytes));
        let half = FIRST_FLIGHT.0 / 2 - HEAD.0;
        assert_eq!(of(half), Together { new: 2, warm: 4 });
        assert_eq!(of(half).at_most(3), Together { new: 2, warm: 3 });
        assert_eq!((of(1 << 20), of(u64::MAX)), (Together::ALONE, Together::ALONE));
    }

    #[test]
    fn connections_that_were_opened_early_are_kept_by_doublings() {
        assert_eq!([0, 16, 31].map(kept), [0; 3]);
        assert_eq!([32, 63, 64, 100].map(kept), [32, 32, 64, 64]);
    }
}
