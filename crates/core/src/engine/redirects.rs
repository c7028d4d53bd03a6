//! Where a redirect has led to, and when that is no more to be trusted.

use std::time::Duration;

use pelton_algos::time::Timestamp;

use super::event::FileId;
use super::facts::Failure;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::connection::Origin;

impl Engine {
    /// `stream` asked, or asks further, where a redirect has led to, and that has come to nothing: signed URLs
    /// expire, and mirrors go. Then its file is asked for where the list says for good, and what has come is
    /// kept. Returns whether that is so.
    pub(super) fn goes_back(&mut self, now: Timestamp, stream: &Stream, failure: &Failure) -> bool {
        let unreachable = stream.is_unreachable(failure.kind);
        let is_final = failure.kind.is_answer() && !failure.kind.is_retryable();
        if !stream.redirected || !(unreachable || is_final || failure.kind == ErrorKind::Tls) {
            return false;
        }
        let entry = &mut self.files[stream.file.index()];
        if stream.attempt == entry.attempt {
            entry.attempt += 1;
            entry.setbacks += 1;
        }
        let setbacks = entry.setbacks.max(1);
        let pause = self.config.retry.pause(setbacks, failure.retry_after, &mut self.jitter);
        self.ask_at_home(now, stream.file, pause);
        true
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
        entry.located = None;
        entry.asks_at_home = true;
        let (class, home) = (entry.class, Origin::of(entry.place()));
        if let Ok(home) = home {
            let home = self.origin_id(&home);
            self.move_to(file, class, home);
        }
        self.totals.retries += u64::from(self.files[file.index()].not_before.is_none());
        self.redecide = true;
        self.hold(now + pause, file);
    }
}
