//! Where a redirect has led to, and when that is no more to be trusted.

use std::time::Duration;

use pelton_algos::params::DEFAULT_CHANNELS;
use pelton_algos::time::Timestamp;
use url::Url;

use super::event::FileId;
use super::facts::Failure;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::connection::Origin;

/// It is asked so many times as often as where a host fails, after pauses that grow up to that of so many failures: another
/// one may be asked each time.
const PATIENCE: u32 = 2;
const MOST_PAUSES: u32 = 4;

/// So many of them, where there is more than one, are told of.
const NOTICED: u32 = 3;

/// Who limits how many requests it answers in a time answers some in each second.
const SERVES_FOR: Duration = Duration::from_secs(1);

/// Where a redirect had led to, until what was there came to nothing: redirects are followed anew each time from then on, until
/// one is to be trusted.
#[derive(Debug)]
pub(super) struct Left {
    origin: OriginId,
    url: Option<Url>,
    /// It had answered more than the request that was led there.
    lasted: bool,
}

/// Where the redirects of an origin have led.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LeadsTo {
    #[default]
    Nowhere,
    /// Always to the same one. So many files that are not there were asked for again all the same.
    One(OriginId, u32),
    Several,
}

/// Whether there are others so many files find out: as many as are asked for at once.
const FIND_OUT: u32 = DEFAULT_CHANNELS;

/// So many attempts where one of `attempts` is asked for. Who wants one gets one.
const fn most_attempts(attempts: u32) -> u32 {
    if attempts == 1 { 1 } else { attempts.saturating_mul(PATIENCE) }
}

impl Engine {
    /// `stream` asked, or asks further, where a redirect has led to, and that has come to nothing: signed URLs
    /// expire, and mirrors go. Then its file is asked for where the list says, until that leads elsewhere, and what has come
    /// is kept. Returns whether that is so.
    pub(super) fn goes_back(&mut self, now: Timestamp, stream: &Stream, failure: &Failure) -> bool {
        let unreachable = stream.is_unreachable(failure.kind);
        let is_final = failure.kind.is_answer() && !failure.kind.is_retryable();
        let has_gone = || unreachable || is_final || failure.kind == ErrorKind::Tls;
        if !stream.redirected || !(has_gone() || self.is_of_no_use(stream, failure.kind)) {
            return false;
        }
        let entry = &mut self.files[stream.file.index()];
        let is_led_again = entry.located.is_some() && stream.attempt != entry.attempt;
        if entry.origin != stream.origin || is_led_again {
            // It is asked for elsewhere by now.
            if entry.not_before.is_none() {
                self.hold(now, stream.file);
            }
            return true;
        }
        if stream.attempt == entry.attempt {
            entry.attempt += 1;
            entry.setbacks += 1;
        }
        let setbacks = entry.setbacks.max(1);
        let pause = self.config.retry.pause(setbacks, failure.retry_after, &mut self.jitter);
        self.ask_at_home(now, stream.file, pause);
        true
    }

    /// Whether the origin of `stream` serves nobody any more, or has a fault for its file again and again.
    fn is_of_no_use(&self, stream: &Stream, kind: ErrorKind) -> bool {
        let is_fault = kind == ErrorKind::ServerError || stream.is_turned_away(kind);
        let fails_again = is_fault && self.files[stream.file.index()].failures > 0;
        let is_refusal = is_fault || kind == ErrorKind::Overloaded;
        is_refusal && !self.serves_beside(stream, stream.origin) || fails_again
    }

    /// Whether `origin` serves anybody at present, or has answered who asked just before, or after, `stream` did.
    fn serves_beside(&self, stream: &Stream, origin: OriginId) -> bool {
        let state = &self.origins[origin.0 as usize];
        state.has_answered() && state.answered_from + SERVES_FOR >= stream.began
            || self.streams.values().any(|it| it.origin == origin && it.has_head)
    }

    /// Whether a request failed where its origin has sent it: of that the failure tells nothing. Who serves others there has
    /// too many of them.
    pub(super) fn has_failed_elsewhere(&mut self, stream: &Stream, failure: &Failure) -> bool {
        let Some(led_to) = failure.led_to.as_ref().filter(|_| !stream.has_head) else {
            return false;
        };
        let led_to = self.origin_id(led_to);
        self.note_where_led(stream.origin, led_to);
        let is_fault = stream.is_unreachable(failure.kind) || stream.is_turned_away(failure.kind);
        led_to != stream.origin
            && match failure.kind {
                ErrorKind::ServerError => true,
                ErrorKind::Overloaded => !self.serves_beside(stream, led_to),
                ErrorKind::NotFound => self.may_be_there_elsewhere(stream, led_to),
                _ => is_fault,
            }
    }

    /// One mirror may lack what others have by now, and where two do it is missing. Whether there are several some files find
    /// out that are asked for again.
    fn may_be_there_elsewhere(&mut self, stream: &Stream, led_to: OriginId) -> bool {
        let entry = &mut self.files[stream.file.index()];
        let lacking = *entry.lacking.get_or_insert(led_to);
        let failures = entry.failures;
        let attempts = self.config.retry.attempts;
        match &mut self.origin(stream.origin).leads_to {
            LeadsTo::Several => lacking == led_to && failures + 1 < most_attempts(attempts),
            LeadsTo::One(_, again) if failures == 0 && attempts > 1 && *again < FIND_OUT => {
                *again += 1;
                true
            }
            LeadsTo::One(..) | LeadsTo::Nowhere => false,
        }
    }

    /// A request to `origin` was led to another one.
    pub(super) fn note_where_led(&mut self, origin: OriginId, to: OriginId) {
        let leads_to = &mut self.origin(origin).leads_to;
        *leads_to = match *leads_to {
            LeadsTo::Nowhere => LeadsTo::One(to, 0),
            LeadsTo::One(before, again) if before == to => LeadsTo::One(to, again),
            LeadsTo::One(..) | LeadsTo::Several => LeadsTo::Several,
        };
    }

    /// Another time it may be led to another one.
    pub(super) fn ask_home_again(&mut self, now: Timestamp, stream: &Stream, failure: Failure) {
        let (file, retry) = (stream.file, self.config.retry);
        self.count_attempt(stream);
        let entry = &self.files[file.index()];
        let asks_too_much = self.asks_too_much(&failure);
        if entry.failures >= most_attempts(retry.attempts) || asks_too_much {
            let failure = self.explain(failure, file, asks_too_much);
            return self.fail(file, failure);
        }
        if entry.failures >= NOTICED {
            self.tell_of_wait_elsewhere(&failure);
        }
        if failure.kind.is_answer() {
            self.give_back(stream, failure.kind);
        }
        let setbacks = self.files[file.index()].setbacks.clamp(1, MOST_PAUSES);
        let pause = match failure.kind {
            // That is no load.
            ErrorKind::NotFound => Duration::ZERO,
            _ => retry.pause(setbacks, failure.retry_after, &mut self.jitter),
        };
        self.redecide = true;
        self.ask_later(now + pause, file);
    }

    /// An answer for `file` came from `url`: who was led elsewhere before it may stay, and so may who was led to what lasts
    /// for a while, as signed URLs do.
    pub(super) fn settle_where_led(&mut self, file: FileId, origin: OriginId, url: &Url) {
        let entry = &mut self.files[file.index()];
        let is_another = |left: &Left| {
            left.origin != origin || left.lasted && left.url.as_ref().is_some_and(|it| it != url)
        };
        if url != entry.place() && entry.left.as_ref().is_some_and(is_another) {
            entry.left = None;
            entry.located = Some(url.clone());
            let class = entry.class;
            self.move_to(file, class, origin);
        }
    }

    /// The same for a `file` of which nothing can be had from the origin `dead`. Returns whether it was led there.
    pub(super) fn goes_back_from(&mut self, now: Timestamp, file: FileId, dead: OriginId) -> bool {
        let entry = &self.files[file.index()];
        let leads_elsewhere = entry.located.is_some()
            && Origin::of(entry.place())
                .is_ok_and(|home| self.origins[dead.0 as usize].origin != home);
        if leads_elsewhere {
            self.ask_at_home(now, file, Duration::ZERO);
        }
        leads_elsewhere
    }

    fn ask_at_home(&mut self, now: Timestamp, file: FileId, pause: Duration) {
        let entry = &mut self.files[file.index()];
        let url = entry.located.take();
        let lasted = std::mem::take(&mut entry.located_again);
        entry.left = Some(Left { origin: entry.origin, url, lasted });
        let (class, home) = (entry.class, Origin::of(entry.place()));
        if let Ok(home) = home {
            let home = self.origin_id(&home);
            self.move_to(file, class, home);
        }
        self.redecide = true;
        self.ask_later(now + pause, file);
    }
}
