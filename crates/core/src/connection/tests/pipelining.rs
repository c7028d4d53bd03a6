//! Several requests over one HTTP/1.1 connection at a time.

use std::collections::VecDeque;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use pelton_algos::connections::LONGEST_AHEAD;

use super::*;

/// What the server does with the requests of one connection: it waits for so many, and then says this of
/// their methods and paths.
pub(super) type Script = Vec<(usize, fn(&[(String, String)]) -> String)>;

/// A server with a script for each of its connections; the last one serves all further ones.
pub(super) async fn server(scripts: Vec<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut scripts = VecDeque::from(scripts);
    tokio::task::spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let script =
                if scripts.len() > 1 { scripts.pop_front() } else { scripts.front().cloned() };
            tokio::task::spawn_local(serve(stream, script.unwrap()));
        }
    });
    format!("http://{address}")
}

/// Closes the connection at the end of the script.
async fn serve(mut stream: TcpStream, script: Script) {
    let (mut received, mut asked) = (String::new(), Vec::new());
    for (count, answer) in script {
        while asked.len() < count {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer).await {
                Ok(length) if length > 0 => {
                    received.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
                }
                _ => return,
            }
            while let Some((head, rest)) = received.split_once("\r\n\r\n") {
                let mut words = head.split(' ').map(str::to_owned);
                asked.push((words.next().unwrap(), words.next().unwrap()));
                received = rest.to_owned();
            }
        }
        let rest = asked.split_off(count);
        let said = answer(&asked);
        asked = rest;
        stream.write_all(said.as_bytes()).await.unwrap();
    }
}

/// Each request's path as its body, and as its tag.
pub(super) fn in_order(asked: &[(String, String)]) -> String {
    asked.iter().map(|one| answer(one, &format!("ETag: \"{}\"\r\n", one.1))).collect()
}

/// The same without a version.
fn untagged(asked: &[(String, String)]) -> String {
    asked.iter().map(|one| answer(one, "")).collect()
}

fn answer((method, path): &(String, String), version: &str) -> String {
    let body = if method == "HEAD" { "" } else { path };
    format!("HTTP/1.1 200 OK\r\n{version}Content-Length: {}\r\n\r\n{body}", path.len())
}

fn in_reverse(asked: &[(String, String)]) -> String {
    asked.iter().rev().map(|one| in_order(std::slice::from_ref(one))).collect()
}

fn the_first_alone(asked: &[(String, String)]) -> String {
    in_order(&asked[..1])
}

/// A client that wants one connection with three requests at a time.
fn client(server: &str) -> Client {
    let client = Client::new(HttpConfig::default());
    client.http.set_limit(&origin(server), 1);
    client.http.set_pipelined(&origin(server), 3);
    client
}

/// What was told of the order.
fn told(client: &Client) -> Vec<bool> {
    let events = client.events.borrow();
    let of_order = events.iter().filter_map(|event| match event {
        ConnectionEvent::Pipelines { does, .. } => Some(*does),
        _ => None,
    });
    of_order.collect()
}

async fn texts(client: &Client, server: &str, paths: &[&str]) -> Vec<String> {
    let urls: Vec<String> = paths.iter().map(|path| format!("{server}{path}")).collect();
    join_all(urls.iter().map(|url| client.text(url))).await
}

#[test]
fn who_closes_a_connection_with_two_requests_is_asked_for_one() {
    run(async {
        let nothing: Script = vec![(2, |_| String::new())];
        let server =
            server(vec![nothing.clone(), vec![(1, in_order)], nothing, vec![(1, in_order)]]);
        let server = server.await;
        let client = client(&server);
        for path in ["/a", "/b", "/c", "/d"] {
            assert_eq!(client.text(&format!("{server}{path}")).await, path);
        }
        assert_eq!(told(&client), [false]);
        let closed = |event: &&ConnectionEvent| matches!(event, ConnectionEvent::Unserved { .. });
        assert_eq!(client.events.borrow().iter().filter(closed).count(), 0, "none was refused");
    });
}

#[test]
fn what_replaces_an_ended_connection_is_waited_for_by_its_request() {
    run(async {
        // The first connection bears two requests, all others one each.
        let server = server(vec![vec![(1, in_order), (1, in_order)], vec![(1, in_order)]]).await;
        let client = Client::new(HttpConfig::default());
        client.http.set_limit(&origin(&server), 1);
        let mut waited = Vec::new();
        for path in ["/a", "/b", "/c", "/d"] {
            let mut response = client.get(&format!("{server}{path}")).await.unwrap();
            assert_eq!(read(&mut response).await.unwrap(), path);
            waited.push(!response.waited_before.is_zero());
        }
        assert_eq!(waited, [false, false, true, true]);
    });
}

#[test]
fn once_the_order_was_seen_requests_do_not_wait_for_answers() {
    run(async {
        // The first and one for its head; then the server says nothing before it has three, and their heads.
        let server = server(vec![vec![(2, in_order), (6, in_order), (6, in_order)]]).await;
        let client = client(&server);
        assert_eq!(client.text(&format!("{server}/first")).await, "/first");
        assert_eq!(told(&client), [true]);
        let paths = ["/1", "/22", "/333", "/4", "/55", "/666"];
        assert_eq!(texts(&client, &server, &paths).await, paths);
        assert_eq!(client.http.counters().opened, 1);
    });
}

#[test]
fn what_comes_with_one_flight_is_asked_for_over_one_connection() {
    run(async {
        // Of two connections one gets all three, and their heads; the other never any.
        let one = vec![(2, in_order as fn(&[(String, String)]) -> String), (6, in_order)];
        let server = server(vec![one.clone(), one]).await;
        let client = client(&server);
        client.http.set_limit(&origin(&server), 2);
        assert_eq!(client.text(&format!("{server}/first")).await, "/first");
        client.http.open_early(&origin(&server), 2);
        while client.http.counters().opened < 2 {
            tokio::task::yield_now().await;
        }
        let short = |path: &str| GetRequest {
            expected: Some(1_000),
            ..GetRequest::new(Url::parse(&format!("{server}{path}")).unwrap())
        };
        let requests = ["/1", "/22", "/333"].map(short);
        let answers = requests.iter().map(|request| async {
            read(&mut client.http.get(request).await.unwrap()).await.unwrap()
        });
        assert_eq!(join_all(answers).await, ["/1", "/22", "/333"]);
    });
}

#[test]
fn nobody_waits_behind_an_answer_that_is_known_to_be_long() {
    run(async {
        // It closes after two requests more, of heads or not.
        let server = server(vec![vec![(2, in_order), (1, in_order), (1, in_order)]]).await;
        let client = client(&server);
        assert_eq!(client.text(&format!("{server}/first")).await, "/first");
        let long = |path: &str| GetRequest {
            expected: Some(LONGEST_AHEAD.0 + 1),
            ..GetRequest::new(Url::parse(&format!("{server}{path}")).unwrap())
        };
        let requests = [long("/1"), long("/2")];
        let answers = requests.iter().map(|request| async {
            read(&mut client.http.get(request).await.unwrap()).await.unwrap()
        });
        assert_eq!(join_all(answers).await, ["/1", "/2"]);
        assert_eq!(client.http.counters().opened, 1);
    });
}

#[test]
fn nothing_is_found_out_where_one_request_at_a_time_is_wanted() {
    run(async {
        let server = server(vec![vec![(1, in_order), (1, in_order)]]).await;
        let client = client(&server);
        client.http.set_pipelined(&origin(&server), 1);
        assert_eq!(texts(&client, &server, &["/1", "/2"]).await, ["/1", "/2"]);
        assert!(told(&client).is_empty());
    });
}

#[test]
fn answers_in_another_order_are_noticed_and_it_is_not_tried_for_ever() {
    run(async {
        // Each time it is asked for alone then.
        let server = server(vec![
            vec![(2, in_reverse)],
            vec![(1, in_order), (2, in_reverse)],
            vec![(1, in_order), (1, in_order), (1, in_order)],
        ])
        .await;
        let client = client(&server);
        let path =
            "/a-long-path-that-is-longer-than-the-head-of-its-answer-which-has-some-fifty-bytes";
        assert_eq!(texts(&client, &server, &[path]).await, [path]);
        assert_eq!(texts(&client, &server, &[path]).await, [path]);
        assert_eq!(told(&client), [false]);
        assert_eq!(texts(&client, &server, &["/1", "/2"]).await, ["/1", "/2"]);
    });
}

/// Two files, each and its head answered with the other's.
fn a_pair_too_few(asked: &[(String, String)]) -> String {
    in_order(&asked[2..])
}

fn a_pair_twice(asked: &[(String, String)]) -> String {
    [in_order(&asked[..2]), in_order(&asked[..4])].concat()
}

/// What is long ends early, and is followed by what is behind it.
fn cut_short(_: &[(String, String)]) -> String {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n";
    [head, &"x".repeat(100_000), head].concat()
}

fn long(_: &[(String, String)]) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n{}", "x".repeat(200_000))
}

#[test]
fn none_of_what_was_asked_for_together_counts_where_one_answer_is_missing_or_doubled() {
    for wrong in [a_pair_too_few, a_pair_twice] {
        run(async move {
            let server = server(vec![
                vec![(2, in_order), (6, wrong)],
                vec![(1, in_order), (1, in_order), (1, in_order)],
            ])
            .await;
            let client = client(&server);
            assert_eq!(client.text(&format!("{server}/first")).await, "/first");
            let paths = ["/1", "/22", "/333"];
            assert_eq!(texts(&client, &server, &paths).await, paths);
            assert!(told(&client)[0]);
        });
    }
}

#[test]
fn a_long_answer_is_asked_for_alone_before_any_of_it_counts() {
    run(async {
        let server = server(vec![vec![(2, cut_short)], vec![(1, long)]]).await;
        let client = client(&server);
        assert_eq!(client.text(&format!("{server}/long")).await, "x".repeat(200_000));
    });
}

#[test]
fn what_comes_with_something_behind_it_and_is_refused_is_asked_for_alone() {
    run(async {
        fn refusal(_: &[(String, String)]) -> String {
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        let server = server(vec![vec![(2, refusal)], vec![(1, in_order), (1, in_order)]]).await;
        let client = client(&server);
        assert_eq!(client.text(&format!("{server}/1")).await, "/1");
    });
}

#[test]
fn files_that_look_the_same_are_never_asked_for_together() {
    run(async {
        let alone = (1, untagged as fn(&[(String, String)]) -> String);
        let server = server(vec![vec![(2, alone.1), alone, alone, alone, alone]]).await;
        let client = client(&server);
        // The first pair tells that the order is kept, the others that nobody could see if it were not: nothing went behind them.
        for path in ["/1", "/2", "/3"] {
            assert_eq!(client.text(&format!("{server}{path}")).await, path);
        }
        assert_eq!(texts(&client, &server, &["/4", "/5"]).await, ["/4", "/5"]);
        assert_eq!(told(&client), [true, false]);
    });
}

#[test]
fn what_a_server_forgets_is_asked_for_again_and_one_at_a_time() {
    run(async {
        let server = server(vec![
            vec![(2, in_order), (3, the_first_alone)],
            vec![(1, in_order), (1, in_order), (1, in_order)],
        ])
        .await;
        let client = client(&server);
        assert_eq!(client.text(&format!("{server}/first")).await, "/first");
        let paths = ["/1", "/22", "/333"];
        assert_eq!(texts(&client, &server, &paths).await, paths);
        assert_eq!(told(&client), [true, false]);
        assert_eq!(client.http.counters().opened, 2);
    });
}
