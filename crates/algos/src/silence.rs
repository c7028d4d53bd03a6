//! For how long a stream may bring nothing until another connection is asked for what it has to bring.
//!
//! A lost segment is found by those behind it (RFC 5681 section 3.2). Of what a sender has lost last nothing tells, and
//! it waits for a time-out: 200 ms and more after the last acknowledgement (Linux: `TCP_RTO_MIN`, which a tail-loss
//! probe of a single segment, RFC 8985 section 7.2, waits for, too). All that is left of a run then waits for that.
//! A connection that idles brings it a round trip later.

use std::time::Duration;

use crate::units::Bytes;

/// An answer has so much left at most when its end was lost: what a window holds.
pub const SHORT_END: Bytes = Bytes::kib(64);

/// The end of an answer was lost after a silence of so many round trips, or of so many times what answers
/// take, queues and all.
const RTTS: u32 = 3;
const ANSWERS: u32 = 2;
/// Over a connection that others share it is not so much sooner there: the time-out may be over by then.
const SHARING: u32 = 2;
/// So few streams that are left fill no queue, and the end of an answer was lost after so many round trips.
const FEW_LEFT: usize = 16;
const RTTS_AMONG_FEW: u32 = 4;
/// A whole answer was lost after so many times what others took. A server may need longer for one file.
const LOST_ANSWERS: u32 = 8;
/// What has more left than an end is a server's, or its path's, that has stopped: it is asked for elsewhere after so
/// many times what an answer takes, and not before another time. Radios pause for seconds, too: where its host sends
/// over other connections meanwhile, it is none of that, and two time-outs in a row are over sooner.
const STOPPED_ANSWERS: u32 = 8;
const LEAST_STOP: Duration = Duration::from_secs(4);
const LEAST_STOP_AMONG_OTHERS: Duration = Duration::from_secs(1);
/// Processes wait so long for their turn.
pub(crate) const PROCESS_TURN: Duration = Duration::from_millis(20);
/// Streams are looked at so often in the time that they may be silent.
const LOOKS: u32 = 2;
/// A sender's shortest time-out (Linux: `TCP_RTO_MIN`).
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// Where a sender's time-out is more than twice as far away, a connection that has yet to be opened is sooner.
const MUCH_SOONER: Duration = Duration::from_millis(100);

/// Of fewer streams than these each may be silent for a reason of its own.
const SEVERAL: usize = 4;

/// So many requests may be made anew for nothing, and one for so many answers beside them: a server that pauses within
/// each answer has lost nothing. Some servers never answer one of a few requests, and some stop within one of a few.
const FEW: u32 = 2;
const ANSWERS_FOR_ONE: u32 = 8;
const ANSWERS_FOR_UNANSWERED: u32 = 4;
const ANSWERS_WHERE_IT_PAYS: u32 = 2;

/// A file is asked for anew so often for nothing, and once more for so much of it: a long one has many streams.
const EACH_MAY: u64 = 3;
const ONCE_MORE_FOR: Bytes = Bytes::mib(1);
/// The second time and the third after so many times the silence each: a server may need longer for this file.
const LONGER: u32 = 4;
const MOST_LONGER: u32 = 2;

/// So many times half as long as before is waited for what has stopped, where that was right before.
const MOST_HALVINGS: u32 = 3;

/// Where so large a part of them has paid, of so many at least, asking anew is right however often: some connections are
/// answered and others are not. A file is asked for more often then, after ever longer silences.
const PAYING_PART: u32 = 4;
const LEAST_PAID: u32 = 8;
const EACH_MAY_WHERE_IT_PAYS: u32 = 16;
const MOST_DOUBLINGS: u32 = 6;

/// What came of asking anew, in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskedAnew {
    /// Requests that were made anew, but for those that paid.
    unpaid: u32,
    /// Those that paid, less those that did not.
    paid: u32,
    /// All of either.
    all: u32,
    all_paid: u32,
}

impl AskedAnew {
    /// A request was made anew. `stood_in` says that the silent one was made anew itself.
    pub const fn on_asked(&mut self, stood_in: bool) {
        self.unpaid += 1;
        self.all += 1;
        if stood_in {
            self.paid = self.paid.saturating_sub(1);
        }
    }

    /// What was asked for anew came, or [`SHORT_END`] of it, sooner than the first stream had been silent.
    pub fn on_paid(&mut self) {
        self.unpaid = self.unpaid.saturating_sub(1);
        self.paid = (self.paid + 1).min(MOST_HALVINGS);
        self.all_paid += 1;
    }

    const fn pays(self) -> bool {
        self.all_paid >= LEAST_PAID && self.all_paid >= self.all / PAYING_PART
    }

    /// Whether another request may be made anew in a run of so many `answers`, where `of_file` were for a file of this
    /// `size`, of whose answer something has come or nothing.
    pub const fn may_ask(self, answers: u32, of_file: u32, size: Bytes, has_begun: bool) -> bool {
        if self.pays() && !has_begun {
            return of_file < EACH_MAY_WHERE_IT_PAYS;
        }
        let answers_for_one = match has_begun {
            _ if self.paid > 0 => ANSWERS_WHERE_IT_PAYS,
            true => ANSWERS_FOR_ONE,
            false => ANSWERS_FOR_UNANSWERED,
        };
        let each_may = EACH_MAY + size.0 / ONCE_MORE_FOR.0;
        let may_file = self.paid > 0 || (of_file as u64) < each_may;
        may_file && self.unpaid < FEW + answers / answers_for_one
    }

    /// How many times longer than usual a stream of a file of this `size` may be silent, for which requests were made
    /// anew so often for nothing.
    pub fn times_longer(self, of_file: u32, size: Bytes) -> u32 {
        if self.paid > 0 {
            return 1;
        }
        let usual = u32::try_from(size.0 / ONCE_MORE_FOR.0).unwrap_or(u32::MAX);
        if self.pays() {
            return 1 << of_file.saturating_sub(usual).min(MOST_DOUBLINGS);
        }
        LONGER.pow(of_file.saturating_sub(usual).min(MOST_LONGER))
    }
}

/// How long streams may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Within an answer.
    pub within: Duration,
    /// Before an answer.
    pub before: Duration,
    /// Where no connection idles and one that others share has to bring it.
    pub sharing: Duration,
    /// Within an answer, however much is left of it.
    stopped: Duration,
}

impl Patience {
    /// Over a path of this round-trip time, where answers begin after `answer_time` on the average.
    pub fn new(rtt: Duration, answer_time: Duration) -> Self {
        let least = Self::without_queue(rtt);
        let answers = |times| answer_time.saturating_mul(times).max(least);
        let within = answers(ANSWERS);
        Self {
            within,
            sharing: within.saturating_mul(SHARING),
            before: answers(LOST_ANSWERS),
            stopped: answers(STOPPED_ANSWERS),
        }
    }

    /// The same among so many `streams` that are the last ones, over a path of this round-trip time: among few of them
    /// the queue has gone in which earlier answers waited.
    #[must_use]
    pub fn among(self, streams: usize, rtt: Duration) -> Self {
        if streams > FEW_LEFT {
            return self;
        }
        let longest = rtt.saturating_mul(RTTS_AMONG_FEW).max(PROCESS_TURN);
        let (within, sharing) = (self.within.min(longest), self.sharing.min(longest));
        Self { within, sharing, ..self }
    }

    /// The same where nothing came from any host for so long, over a path of this round-trip time: what waits in a queue would
    /// have come, and a sender's time-out takes longer. Answers take `answer_time` on the average and took the `longest` at
    /// most, queues and all.
    #[must_use]
    pub fn where_nothing_comes(
        self,
        silence: Duration,
        rtt: Duration,
        answer_time: Duration,
        longest: Duration,
    ) -> Self {
        let timeout = Self::sooner_than_timeout(rtt);
        let lost = timeout.unwrap_or_else(|| rtt.saturating_mul(RTTS_AMONG_FEW));
        if silence < lost {
            return self;
        }
        let empty = lost + answer_time.saturating_sub(rtt);
        if timeout.is_none() {
            // Its sender's time-out has grown with the queue. A part of a TLS record tells nothing, the end of a short
            // answer brings its beginning.
            return Self { before: self.before.min(empty.max(longest)), ..self };
        }
        let (within, sharing) = (self.within.min(lost), self.sharing.min(lost));
        Self { within, before: self.before.min(empty), sharing, ..self }
    }

    /// The same where servers think about answers, for so long at most.
    #[must_use]
    pub fn with_thoughts(self, at_longest: Duration) -> Self {
        Self { before: self.before.max(at_longest), ..self }
    }

    /// For how long a stream is silent over a path of this round-trip time that has no queue, and has lost nothing.
    fn without_queue(rtt: Duration) -> Duration {
        rtt.saturating_mul(RTTS).max(PROCESS_TURN)
    }

    /// The same, where a sender's time-out takes longer.
    fn sooner_than_timeout(rtt: Duration) -> Option<Duration> {
        Some(Self::without_queue(rtt)).filter(|quiet| *quiet < LEAST_TIMEOUT)
    }

    /// After how long the last streams of a run are looked at again, over a path of this round-trip time.
    pub fn look_at_last(&self, rtt: Duration) -> Duration {
        self.look().min(Self::sooner_than_timeout(rtt).map_or(Duration::MAX, |quiet| quiet / LOOKS))
    }

    /// After how long all other streams are.
    pub fn look(&self) -> Duration {
        self.within / LOOKS
    }

    /// Whether a stream that is `silent` for so long has stopped, from whose host nothing came for `host_silent`, by what
    /// came of asking `anew`.
    pub fn has_stopped(&self, silent: Duration, host_silent: Duration, anew: AskedAnew) -> bool {
        let others_come = host_silent < silent / 2;
        let least = if others_come { LEAST_STOP_AMONG_OTHERS } else { LEAST_STOP };
        silent >= self.stopped.max(least / (1 << anew.paid))
    }

    /// Whether so many `silent` ones of all `streams` are worth new connections although files wait.
    pub fn is_stuck(&self, silent: usize, streams: usize) -> bool {
        self.within < MUCH_SOONER && silent >= SEVERAL && silent * 2 >= streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn queues_servers_and_processes_are_waited_for() {
        let patience = |rtt, answer| {
            let patience = Patience::new(ms(rtt), ms(answer));
            [patience.within, patience.before, patience.stopped].map(|time| time.as_millis())
        };
        assert_eq!(patience(1, 1), [20, 20, 20], "a local network");
        assert_eq!(patience(60, 60), [180, 480, 480]);
        assert_eq!(patience(60, 150), [300, 1_200, 1_200], "a queue, or a server that thinks");
        assert_eq!(patience(600, 1_000), [2_000, 8_000, 8_000], "for a second");
        assert_eq!(patience(60, 0), [180, 180, 180], "no answer yet");
    }

    #[test]
    fn the_longest_thought_is_waited_for() {
        let patience =
            Patience::new(ms(1), ms(100)).where_nothing_comes(ms(100), ms(1), ms(100), ms(150));
        assert_eq!([patience.before, patience.with_thoughts(ms(500)).before], [ms(119), ms(500)]);
        assert_eq!(patience.with_thoughts(ms(50)), patience);
    }

    #[test]
    fn a_stream_has_stopped_sooner_where_its_host_sends_others() {
        let patience = Patience::new(ms(20), ms(30));
        let stopped =
            |silent, host| patience.has_stopped(ms(silent), ms(host), AskedAnew::default());
        assert!(!stopped(999, 0) && stopped(1_000, 400));
        assert!(!stopped(1_000, 600) && !stopped(3_999, 3_999), "the path may pause");
        assert!(stopped(4_000, 4_000));
        let far = Patience::new(ms(600), ms(1_000));
        assert!(!far.has_stopped(ms(7_999), ms(0), AskedAnew::default()), "answers take long");
    }

    #[test]
    fn a_server_that_stops_now_and_then_is_waited_for_ever_less() {
        let patience = Patience::new(ms(20), ms(30));
        let mut anew = AskedAnew::default();
        let least = |anew| {
            [4_000, 2_000, 1_000, 500].map(|time| patience.has_stopped(ms(time), ms(time), anew))
        };
        assert_eq!(least(anew), [true, false, false, false]);
        (0..3).for_each(|_| anew.on_paid());
        assert_eq!(least(anew), [true; 4]);
        assert!(!patience.has_stopped(ms(239), ms(0), anew), "answers take their time");
        anew.on_asked(true);
        assert_eq!(least(anew), [true, true, true, false], "what stood in was silent, too");
    }

    #[test]
    fn few_that_are_left_do_not_wait_for_a_queue_that_has_gone() {
        let patience = Patience::new(ms(30), ms(150));
        let among = |streams| patience.among(streams, ms(30));
        assert_eq!((among(17), among(17).within), (patience, ms(300)));
        assert_eq!((among(16).within, among(16).before), (ms(120), patience.before));
        assert_eq!(Patience::new(ms(1), ms(1)).among(1, ms(1)).within, ms(20));
    }

    #[test]
    fn nothing_waits_in_a_queue_from_which_nothing_comes() {
        let after = |rtt, answer, silence| {
            let patience = Patience::new(ms(rtt), ms(answer));
            let quiet = patience.where_nothing_comes(ms(silence), ms(rtt), ms(answer), ms(900));
            (quiet != patience)
                .then(|| [quiet.within, quiet.sharing, quiet.before].map(|time| time.as_millis()))
        };
        assert_eq!(after(14, 100, 41), None);
        assert_eq!(after(14, 100, 42), Some([42, 42, 128]));
        assert_eq!(after(1, 60, 20), Some([20, 20, 79]), "processes wait for their turn");
        assert_eq!(after(67, 100, 1_000), None, "a time-out is over by then");
        assert_eq!(
            after(67, 200, 268),
            Some([400, 800, 900]),
            "what waits for its head is asked for sooner"
        );
        assert_eq!(after(167, 800, 668), Some([1_600, 3_200, 1_301]));
        assert_eq!(after(167, 800, 667), None, "the queue may not be empty yet");
        let look = |rtt| Patience::new(ms(rtt), ms(200)).look_at_last(ms(rtt)).as_millis();
        assert_eq!([look(14), look(67)], [21, 200], "it is seen soon, or as before");
    }

    #[test]
    fn what_is_asked_for_anew_is_a_small_part() {
        let size = Bytes::kib(60);
        let may = |unpaid, answers, of_file, size| {
            AskedAnew { unpaid, ..AskedAnew::default() }.may_ask(answers, of_file, size, true)
        };
        assert!(may(1, 0, 0, size) && !may(2, 7, 0, size));
        assert!(may(11, 80, 0, size) && !may(12, 80, 0, size));
        assert!(!may(1, 80, 3, size) && may(1, 80, 3, Bytes::mib(1)));
        let mut anew = AskedAnew::default();
        (0..2).for_each(|_| anew.on_asked(false));
        assert!(!anew.may_ask(7, 0, size, true));
        anew.on_paid();
        assert!(anew.may_ask(7, 0, size, true), "it was right");
    }

    #[test]
    fn what_is_never_answered_is_asked_for_a_few_times_after_longer_silences() {
        let may = |unpaid, answers, of_file| {
            AskedAnew { unpaid, ..AskedAnew::default() }.may_ask(
                answers,
                of_file,
                Bytes::kib(60),
                false,
            )
        };
        assert!(may(21, 80, 2) && !may(22, 80, 2) && !may(1, 80, 3));
        let anew = AskedAnew::default();
        let longer = |times| anew.times_longer(times, Bytes::kib(60));
        assert_eq!([0, 1, 2, 9].map(longer), [1, 4, 16, 16]);
        assert_eq!(anew.times_longer(4, Bytes::mib(3)), 4, "it has many streams");
    }

    #[test]
    fn who_is_answered_over_some_connections_alone_is_asked_on() {
        let mut anew = AskedAnew::default();
        // Three of four are silent.
        for number in 0..200 {
            anew.on_asked(number % 4 != 0);
            if number % 4 == 3 {
                anew.on_paid();
            }
        }
        let may_ask = |anew: AskedAnew, of_file| anew.may_ask(50, of_file, Bytes::kib(10), false);
        assert!(may_ask(anew, 15) && !may_ask(anew, 16));
        assert!(!anew.may_ask(50, 15, Bytes::kib(10), true), "what has begun may pause");
        (0..40).for_each(|_| anew.on_asked(true));
        assert!(!may_ask(anew, 1), "they are silent all the same");
        assert_eq!(anew.times_longer(3, Bytes::kib(10)), 16);
    }

    #[test]
    fn half_of_the_streams_are_stuck_on_a_short_path() {
        let near = Patience::new(ms(10), ms(20));
        for (silent, streams, is_stuck) in [
            (0, 0, false),
            (1, 1, false),
            (4, 4, true),
            (7, 15, false),
            (8, 15, true),
            (8, 16, true),
        ] {
            assert_eq!(near.is_stuck(silent, streams), is_stuck, "{silent} of {streams}");
        }
        assert!(!Patience::new(ms(60), ms(60)).is_stuck(8, 8), "a time-out is over as soon");
    }
}
