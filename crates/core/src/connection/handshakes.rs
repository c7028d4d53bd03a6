//! Handshakes whose first packet was lost.
//!
//! A sender that knows nothing of a path waits a second before it sends a SYN again (RFC 6298, section 2.1). Who has just
//! shaken hands with the same host knows more: what takes so much longer than that was lost on its way, or a server
//! whose queue of new connections is short has dropped it. Another attempt is made beside it, and the first to succeed is
//! used.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use pelton_algos::connections::handshake_overdue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Attempts beside the first, each after twice the time: by then the first one's packet has been sent again.
const FURTHER: u32 = 3;

/// A host and a port.
type Place = (String, u16);

/// How long the last handshake with each place took.
#[derive(Default)]
pub(super) struct Handshakes {
    took: RefCell<HashMap<Place, Duration>>,
    changed: Notify,
}

impl Handshakes {
    /// Runs `attempt`, and again beside it where it takes too long. The first success wins; a failure of the first
    /// attempt is one, as long as no other has succeeded.
    pub(super) async fn with<T, E, F>(
        &self,
        host: &str,
        port: u16,
        attempt: impl Fn() -> F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let place = (host.to_owned(), port);
        let began = Instant::now();
        let numbered = |number: u32| {
            let attempt = attempt();
            let began = Instant::now();
            async move { (number, began, attempt.await) }
        };
        let mut running = FuturesUnordered::from_iter([numbered(0)]);
        let mut further = 0;
        loop {
            let finished = tokio::select! {
                biased;
                finished = running.next() => finished,
                () = self.overdue(&place, began, further), if further < FURTHER => None,
            };
            match finished {
                Some((_, began, Ok(connected))) => {
                    self.took.borrow_mut().insert(place, began.elapsed());
                    self.changed.notify_waiters();
                    return Ok(connected);
                }
                Some((0, _, Err(error))) => return Err(error),
                Some((_, _, Err(_))) => {}
                None => {
                    further += 1;
                    running.push(numbered(further));
                }
            }
        }
    }

    /// Waits until a handshake that `began` then is overdue after so many `further` attempts: for ever where
    /// none is known to have taken less.
    async fn overdue(&self, place: &Place, began: Instant, further: u32) {
        loop {
            let took = self.took.borrow().get(place).copied();
            if let Some(took) = took {
                return sleep_until(began + handshake_overdue(took) * (1 << further)).await;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::sleep;

    use super::*;

    /// Attempts of which each takes so long, or fails where it takes none.
    async fn attempts(handshakes: &Handshakes, took: &[u64]) -> Result<usize, usize> {
        let begun = Cell::new(0);
        let attempt = || {
            let number = begun.replace(begun.get() + 1);
            let takes = Duration::from_millis(took[number]);
            async move {
                sleep(takes).await;
                if takes.is_zero() { Err(number) } else { Ok(number) }
            }
        };
        handshakes.with("host", 80, attempt).await
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_far_longer_than_the_last_one_is_tried_again() {
        let handshakes = Handshakes::default();
        let begin = Instant::now();
        assert_eq!(attempts(&handshakes, &[1_000]).await, Ok(0), "the first one waits");
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
        handshakes.took.borrow_mut().clear();
        assert_eq!(attempts(&handshakes, &[20]).await, Ok(0));
        let begin = Instant::now();
        assert_eq!(attempts(&handshakes, &[1_000, 20]).await, Ok(1));
        assert_eq!(begin.elapsed(), Duration::from_millis(100));
        let begin = Instant::now();
        assert_eq!(attempts(&handshakes, &[1_000, 900, 20]).await, Ok(2));
        assert_eq!(begin.elapsed(), Duration::from_millis(180));
        let begin = Instant::now();
        assert_eq!(attempts(&handshakes, &[900, 2_000, 2_000, 2_000]).await, Ok(0));
        assert_eq!(begin.elapsed(), Duration::from_millis(900));
    }

    #[tokio::test(start_paused = true)]
    async fn who_began_before_the_first_one_was_known_learns_of_it() {
        let handshakes = Handshakes::default();
        let begin = Instant::now();
        let (first, second) =
            tokio::join!(attempts(&handshakes, &[30]), attempts(&handshakes, &[1_000, 30]));
        assert_eq!((first, second), (Ok(0), Ok(1)));
        assert_eq!(begin.elapsed(), Duration::from_millis(150));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_failure_is_told_and_others_are_not() {
        let handshakes = Handshakes::default();
        assert_eq!(attempts(&handshakes, &[0]).await, Err(0));
        assert_eq!(attempts(&handshakes, &[20]).await, Ok(0));
        assert_eq!(attempts(&handshakes, &[500, 0, 900, 900]).await, Ok(0));
    }
}
