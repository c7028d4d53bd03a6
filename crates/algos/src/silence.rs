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
/// many times what an answer takes, and not before the other time. Radios pause for seconds, too.
const STOPPED_ANSWERS: u32 = 8;
const LEAST_STOP: Duration = Duration::from_secs(4);
/// Processes wait so long for their turn.
pub(crate) const PROCESS_TURN: Duration = Duration::from_millis(20);
/// Where a sender's time-out is more than twice as far away, a connection that has yet to be opened is sooner.
const MUCH_SOONER: Duration = Duration::from_millis(100);

/// Of fewer streams than these each may be silent for a reason of its own.
const SEVERAL: usize = 4;

/// So many streams may be ended for their silence, and one for so many answers beside them: a server that pauses within
/// each answer has lost nothing.
const FEW: u32 = 2;
const ANSWERS_FOR_ONE: u32 = 8;

/// A file is asked for anew once, and once more for so much of it: a long one has many streams.
const EACH_MAY: Bytes = Bytes::mib(1);

/// Some servers never answer one of a few requests. Where nothing of an answer came, a file is asked for anew so much
/// more often, and one request for so few answers.
const UNANSWERED_MAY: u64 = 3;
const ANSWERS_FOR_UNANSWERED: u32 = 4;
/// The second time and the third after so many times the silence each: a server may need longer for this file.
const LONGER: u32 = 4;
const MOST_LONGER: u32 = 2;

/// Whether another request may be made anew in a run of so many `answers`, in which `of_run` were, `of_file` of them
/// for a file of this `size`, of whose answer something has come or nothing.
pub fn may_ask_anew(of_run: u32, answers: u32, of_file: u32, size: Bytes, has_begun: bool) -> bool {
    let (answers_for_one, least) =
        if has_begun { (ANSWERS_FOR_ONE, 1) } else { (ANSWERS_FOR_UNANSWERED, UNANSWERED_MAY) };
    of_run < FEW + answers / answers_for_one && u64::from(of_file) < least + size.0 / EACH_MAY.0
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
    pub stopped: Duration,
}

impl Patience {
    /// Over a path of this round-trip time, where answers begin after `answer_time` on the average.
    pub fn new(rtt: Duration, answer_time: Duration) -> Self {
        let least = rtt.saturating_mul(RTTS).max(PROCESS_TURN);
        let answers = |times| answer_time.saturating_mul(times).max(least);
        let within = answers(ANSWERS);
        Self {
            within,
            sharing: within.saturating_mul(SHARING),
            before: answers(LOST_ANSWERS),
            stopped: answers(STOPPED_ANSWERS).max(LEAST_STOP),
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

    /// For how long nothing of an answer may come to a file that was asked for anew so often.
    pub fn before_again(&self, asked_anew: u32) -> Duration {
        self.before.saturating_mul(LONGER.saturating_pow(asked_anew.min(MOST_LONGER)))
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
        assert_eq!(patience(1, 1), [20, 20, 4_000], "a local network");
        assert_eq!(patience(60, 60), [180, 480, 4_000]);
        assert_eq!(patience(60, 150), [300, 1_200, 4_000], "a queue, or a server that thinks");
        assert_eq!(patience(600, 1_000), [2_000, 8_000, 8_000], "for a second");
        assert_eq!(patience(60, 0), [180, 180, 4_000], "no answer yet");
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
    fn what_is_asked_for_anew_is_a_small_part() {
        let size = Bytes::kib(60);
        let may =
            |of_run, answers, of_file, size| may_ask_anew(of_run, answers, of_file, size, true);
        assert!(may(1, 0, 0, size) && !may(2, 7, 0, size));
        assert!(may(11, 80, 0, size) && !may(12, 80, 0, size));
        assert!(!may(1, 80, 1, size) && may(1, 80, 3, Bytes::mib(3)));
    }

    #[test]
    fn what_is_never_answered_is_asked_for_a_few_times_after_longer_silences() {
        let may = |of_run, answers, of_file| {
            may_ask_anew(of_run, answers, of_file, Bytes::kib(60), false)
        };
        assert!(may(21, 80, 2) && !may(22, 80, 2) && !may(1, 80, 3));
        let patience = Patience::new(ms(1), ms(1));
        let again = |times| patience.before_again(times);
        assert_eq!([0, 1, 2, 9].map(again), [ms(20), ms(80), ms(320), ms(320)]);
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
