//! Tries several addresses of a host, staggered (RFC 8305).

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// "Connection Attempt Delay ... recommended to be 250 milliseconds" (RFC 8305, section 8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Alternates the two families, beginning with that of the first address (RFC 8305, section 4).
/// The order within a family is kept.
pub(super) fn interleave(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let addresses: Vec<_> = addresses.into_iter().collect();
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    let mut ordered = Vec::with_capacity(preferred.len() + other.len());
    loop {
        match (preferred.next(), other.next()) {
            (None, None) => return ordered,
            (one, two) => ordered.extend(one.into_iter().chain(two)),
        }
    }
}

/// Runs `attempt` on each address: the next one begins when one has failed or 250 ms after the one
/// before. The first success wins and ends the others; `Err` holds the failure of the address that
/// was preferred most, or `None` without addresses.
pub(super) async fn race<T, E, F>(
    addresses: Vec<SocketAddr>,
    attempt: impl Fn(SocketAddr) -> F,
) -> Result<T, Option<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let mut waiting = addresses.into_iter().enumerate();
    let mut running = FuturesUnordered::new();
    let mut failure: Option<(usize, E)> = None;
    loop {
        if let Some((rank, address)) = waiting.next() {
            let attempt = attempt(address);
            running.push(async move { (rank, attempt.await) });
        } else if running.is_empty() {
            return Err(failure.map(|(_, error)| error));
        }
        let stagger = tokio::time::sleep(ATTEMPT_DELAY);
        let finished = tokio::select! {
            biased;
            finished = running.next() => finished,
            () = stagger, if waiting.len() > 0 => None,
        };
        match finished {
            Some((_, Ok(stream))) => return Ok(stream),
            Some((rank, Err(error))) if failure.as_ref().is_none_or(|(best, _)| rank < *best) => {
                failure = Some((rank, error));
            }
            Some((_, Err(_))) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use tokio::time::{Instant, sleep};

    fn addresses(text: &[&str]) -> Vec<SocketAddr> {
        text.iter().map(|one| one.parse().unwrap()).collect()
    }

    #[test]
    fn families_alternate_from_the_first_on() {
        let mixed = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let expected = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(interleave(mixed), expected);
        let one_family = addresses(&["1.1.1.1:1", "2.2.2.2:1"]);
        assert_eq!(interleave(one_family.clone()), one_family);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_delays_by_the_stagger_only() {
        let start = Instant::now();
        let won = race(addresses(&["[::1]:1", "1.1.1.1:1"]), async |address| {
            if address.is_ipv6() {
                sleep(Duration::from_secs(60)).await;
            }
            Ok::<_, ()>(address)
        })
        .await;
        assert_eq!(won.unwrap().port(), 1);
        assert_eq!(start.elapsed(), ATTEMPT_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_starts_the_next_at_once() {
        let start = Instant::now();
        let tried = RefCell::new(Vec::new());
        let result = race(addresses(&["[::1]:1", "1.1.1.1:2", "2.2.2.2:3"]), async |address| {
            tried.borrow_mut().push(address.port());
            Err::<(), _>(address.port())
        })
        .await;
        assert_eq!(result, Err(Some(1)));
        assert_eq!(*tried.borrow(), [1, 2, 3]);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_first_address_may_still_win() {
        let won = race(addresses(&["[::1]:1", "1.1.1.1:2"]), async |address| {
            sleep(Duration::from_millis(if address.is_ipv6() { 300 } else { 500 })).await;
            Ok::<_, ()>(address.port())
        })
        .await;
        assert_eq!(won, Ok(1));
    }
}
