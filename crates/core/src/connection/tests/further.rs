//! Parts of one file that are asked for one after the other over one connection.

use super::pipelining::{Script, in_order, server};
use super::*;

/// Asks for `first`, then behind it for `second` while the first answer comes.
async fn both(client: &Client, server: &str) -> (String, Option<String>) {
    let url = |path: &str| Url::parse(&format!("{server}{path}")).unwrap();
    let part = |path, range| GetRequest { range: Some(range), ..GetRequest::new(url(path)) };
    let mut before = client.http.get(&part("/first", (0, Some(5)))).await.unwrap();
    let second = part("/second", (6, Some(12)));
    let further = client.http.get_further(&second, &before).unwrap();
    let first = read(&mut before).await.unwrap();
    let Some(further) = further else { return (first, None) };
    let Some(mut answer) = further.answer(&before).await else { return (first, None) };
    (first, Some(read(&mut answer).await.unwrap()))
}

/// A first head and half of its body; the rest, and an answer to the second request, when that has come.
fn half(_: &[(String, String)]) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n/fi".to_owned()
}

fn the_rest_and_the_second(_: &[(String, String)]) -> String {
    "rstHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n/second".to_owned()
}

fn the_rest(_: &[(String, String)]) -> String {
    "rst".to_owned()
}

async fn scripted(second: Script) -> String {
    let script = [vec![(1, half as fn(&[(String, String)]) -> String)], second].concat();
    server(vec![script, vec![(1, in_order)]]).await
}

#[test]
fn the_next_part_is_asked_for_while_the_one_before_it_comes() {
    run(async {
        let server = scripted(vec![(1, the_rest_and_the_second), (1, in_order)]).await;
        let client = Client::new(HttpConfig::default());
        let (first, second) = both(&client, &server).await;
        assert_eq!((first.as_str(), second.as_deref()), ("/first", Some("/second")));
        // The connection goes on.
        assert_eq!(client.text(&format!("{server}/third")).await, "/third");
        assert_eq!(client.http.counters().opened, 1);
    });
}

#[test]
fn a_server_that_ends_the_connection_gives_no_further_answer() {
    run(async {
        let server = scripted(vec![(1, the_rest)]).await;
        let client = Client::new(HttpConfig::default());
        let (first, second) = both(&client, &server).await;
        assert_eq!((first.as_str(), second), ("/first", None));
        assert_eq!(client.text(&format!("{server}/again")).await, "/again");
        assert_eq!(client.http.counters().opened, 2);
    });
}

#[test]
fn a_server_that_forgets_what_comes_too_early_is_not_asked_early_again() {
    run(async {
        // It waits for a third request before it says anything about the second.
        let forgetful =
            || vec![(1, half as fn(&[(String, String)]) -> String), (1, the_rest), (2, the_rest)];
        let server = server(vec![forgetful(), forgetful(), forgetful()]).await;
        let client = Client::new(HttpConfig::default());
        for _ in 0..2 {
            let (first, second) = both(&client, &server).await;
            assert_eq!((first.as_str(), second), ("/first", None));
        }
        assert_eq!(client.http.counters().opened, 2, "each ended with its answer");
        let url = Url::parse(&format!("{server}/first")).unwrap();
        let before = client.http.get(&GetRequest::new(url)).await.unwrap();
        let request = GetRequest::new(before.final_url.clone());
        assert!(client.http.get_further(&request, &before).unwrap().is_none());
    });
}

#[test]
fn nothing_follows_a_body_that_was_read() {
    run(async {
        let server = server(vec![vec![(1, in_order)]]).await;
        let client = Client::new(HttpConfig::default());
        let mut before = client.get(&format!("{server}/first")).await.unwrap();
        assert_eq!(read(&mut before).await.unwrap(), "/first");
        let request = GetRequest::new(before.final_url.clone());
        assert!(client.http.get_further(&request, &before).unwrap().is_none());
    });
}
