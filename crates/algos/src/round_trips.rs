//! What one connection tells of how long round trips are of late.

use std::cmp::Ordering;
use std::time::Duration;

use crate::time::Timestamp;

/// Between two looks at a transport, where a round trip is shorter.
const LOOK: Duration = Duration::from_millis(200);
/// What has changed since a look so long ago may have been so for as long.
const STALE: Duration = Duration::from_secs(1);

/// How long a round trip takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// So long at most: a smoothed one that falls is still too long.
    AtMost(Duration),
    /// So long at least: one that rises is not yet long enough.
    AtLeast(Duration),
}

/// What the transport of a connection knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// The least since it began.
    pub least: Option<Duration>,
    /// Of what was sent, smoothed (RFC 6298 section 2).
    pub sent: Option<Duration>,
    /// Of what was received, smoothed.
    pub received: Option<Duration>,
}

/// Watches that. What is as long as at the last look is of then.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTripWatch {
    looked_at: Timestamp,
    known: Known,
}

impl RoundTripWatch {
    /// For a connection whose handshake took `rtt`, where that is known.
    pub fn new(rtt: Option<Duration>) -> Self {
        let known = Known { least: rtt, ..Known::default() };
        Self { looked_at: Timestamp::START, known }
    }

    /// The least that is known.
    pub const fn least(&self) -> Option<Duration> {
        self.known.least
    }

    /// Whether it is time to look.
    pub fn is_due(&self, now: Timestamp) -> bool {
        now >= self.looked_at + LOOK.max(self.known.least.unwrap_or_default())
    }

    /// Takes note of what the transport knows `now`. Returns what is new in it, and nothing where the last look was too
    /// long ago.
    pub fn on_look(&mut self, now: Timestamp, known: Known) -> impl Iterator<Item = News> + use<> {
        let known = Known { least: known.least.or(self.known.least), ..known };
        let Self { looked_at, known: before } =
            std::mem::replace(self, Self { looked_at: now, known });
        let is_stale = now.saturating_since(looked_at) > STALE;
        let least = known.least.filter(|least| before.least.is_none_or(|before| *least < before));
        let news = [
            least.map(News::AtMost),
            smoothed_news(before.sent, known.sent),
            smoothed_news(before.received, known.received),
        ];
        news.into_iter().flatten().filter(move |_| !is_stale)
    }
}

fn smoothed_news(before: Option<Duration>, now: Option<Duration>) -> Option<News> {
    let (before, now) = (before?, now?);
    match now.cmp(&before) {
        Ordering::Less => Some(News::AtMost(now)),
        Ordering::Equal => None,
        Ordering::Greater => Some(News::AtLeast(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_changes_between_two_looks_is_news() {
        let mut watch = RoundTripWatch::new(Some(ms(50)));
        assert!(!watch.is_due(at(100)) && watch.is_due(at(200)));
        assert!(!RoundTripWatch::new(Some(ms(300))).is_due(at(200)));
        let mut look = |now, least, sent| {
            let known = Known { least: Some(ms(least)), sent: Some(ms(sent)), received: None };
            watch.on_look(at(now), known).collect::<Vec<_>>()
        };
        assert_eq!(look(200, 50, 70), [], "the first");
        assert_eq!(look(400, 50, 80), [News::AtLeast(ms(80))]);
        assert_eq!(look(600, 40, 75), [News::AtMost(ms(40)), News::AtMost(ms(75))]);
        assert_eq!(look(1_601, 30, 90), [], "changed at some time since long ago");
        assert_eq!((look(1_800, 30, 90), watch.least()), (vec![], Some(ms(30))));
    }
}
