//! Connections that are opened before it is known that they are of use.

use std::cell::Cell;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::exchange::until;
use super::tls::Secure;
use super::*;

#[test]
fn connections_that_are_opened_ahead_wait_for_their_handshakes() {
    run(async {
        for (wanted, opened) in [(4, 4), (1, 2)] {
            let secure = Secure::new(&["h2"]).await;
            let client = secure.trusting(ProtocolChoice::Auto);
            let (url, accepted) = ("https://a.test/", Rc::clone(&secure.server.accepted));
            let origin = origin(url);
            client.http.set_limit(&origin, 4);
            client.http.set_handshakes(&origin, Some(2), 4);
            client.http.open_early(&origin, 4);
            until(|| accepted.get() == 4 && client.http.counters().open_now == 2).await;
            assert_eq!(client.text(url).await, "/");
            assert_eq!(client.http.counters().opened, 2, "two wait");
            client.http.set_handshakes(&origin, None, wanted);
            until(|| client.http.counters().opened == opened).await;
            assert_eq!(client.text(url).await, "/");
            assert_eq!(client.http.counters().opened, opened, "{wanted} are wanted");
        }
    });
}

#[test]
fn who_has_failed_to_shake_hands_lets_another_try() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Rc::new(Cell::new(0));
        let count = Rc::clone(&accepted);
        tokio::task::spawn_local(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                // Whoever shakes hands is sent away.
                tokio::task::spawn_local(async move { drop(stream.read_u8().await) });
                count.set(count.get() + 1);
            }
        });
        let client = Client::new(HttpConfig::default());
        let url = format!("https://{address}/");
        let origin = origin(&url);
        client.http.set_limit(&origin, 3);
        client.http.set_handshakes(&origin, Some(1), 3);
        client.http.open_early(&origin, 3);
        until(|| accepted.get() == 3).await;
        let failed = || {
            let is_failure =
                |it: &&ConnectionEvent| matches!(it, ConnectionEvent::OpenFailed { .. });
            client.events.borrow().iter().filter(is_failure).count()
        };
        until(|| failed() == 3).await;
    });
}
