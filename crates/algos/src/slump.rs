//! How many range streams a path is given whose rate has fallen.

use std::time::Duration;

use crate::time::Timestamp;

/// Holds range streams back where a path brings much less than it did.
///
/// Either the streams have become too few for it (it has become longer, or loses more), and more of them bring more; or it has
/// become slower, and they fill its queue, which overflows and has to be filled again with what was lost. Both look the same at
/// first. So their number is doubled at most, and again when the new ones have shown that they need not queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slump {
    most: Option<u32>,
    next: Timestamp,
}

impl Slump {
    /// `streams` are under way at `now`, over a path that `brings_less` than it did, or as much; where handshakes have to queue it
    /// `is_full`. A change takes `settle` to show.
    pub fn on_rate(
        &mut self,
        now: Timestamp,
        brings_less: bool,
        streams: u32,
        is_full: bool,
        settle: Duration,
    ) {
        if !brings_less {
            self.most = None;
            return;
        }
        let doubled = streams.saturating_mul(2);
        match self.most {
            None => (self.most, self.next) = (Some(doubled), now + settle),
            Some(most) if now >= self.next && !is_full && doubled > most => {
                (self.most, self.next) = (Some(doubled), now + settle);
            }
            Some(_) => {}
        }
    }

    /// It has not become slower.
    pub fn end(&mut self) {
        self.most = None;
    }

    /// So many streams may be under way.
    pub fn most(&self) -> u32 {
        self.most.unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_millis(200);

    #[test]
    fn a_path_that_brings_less_gets_streams_step_by_step_while_they_need_not_queue() {
        let mut slump = Slump::default();
        let mut after = |millis, brings_less, streams, is_full| {
            slump.on_rate(Timestamp::from_millis(millis), brings_less, streams, is_full, SETTLE);
            slump.most()
        };
        assert_eq!(after(0, false, 1, false), u32::MAX);
        assert_eq!(after(100, true, 1, false), 2);
        assert_eq!(after(200, true, 2, false), 2, "they have not shown themselves");
        assert_eq!(after(300, true, 1, false), 2, "fewer are under way than may be");
        assert_eq!(after(400, true, 2, false), 4);
        assert_eq!(after(700, true, 4, true), 4, "they queue");
        assert_eq!(after(900, false, 4, true), u32::MAX, "it brings as much as ever");
    }
}
