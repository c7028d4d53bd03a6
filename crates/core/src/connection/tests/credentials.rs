//! Redirects, and who gets to see what secret.

use super::server::{Server, redirect, text};
use super::*;
use crate::ErrorKind;

/// Two origins on one host; the first one redirects `/away` to the second one and `/back` to itself.
async fn two_origins() -> (Server, Server) {
    let other = Server::plain(text).await;
    // The host is the same: only the port tells the origins apart.
    let (away, back) = (other.url("/there"), "here?x".to_owned());
    let first = Server::plain(move |path| match path {
        "/away" => redirect(&away),
        "/back" => redirect(&back),
        _ => text(path),
    })
    .await;
    (first, other)
}

fn with_secrets() -> HttpConfig {
    HttpConfig {
        headers: vec![
            ("accept-language".parse().unwrap(), "de".parse().unwrap()),
            ("x-api-key".parse().unwrap(), "mine".parse().unwrap()),
            ("cookie".parse().unwrap(), "mine=1".parse().unwrap()),
        ],
        user: Some(("me".into(), "pass:word".into())),
        ..HttpConfig::default()
    }
}

#[test]
fn secrets_stay_with_the_origin_they_were_given_for() {
    run(async {
        let (first, other) = two_origins().await;
        let client = Client::new(with_secrets());
        // printf 'me:pass:word' | base64
        let basic = Some("Basic bWU6cGFzczp3b3Jk");

        let mut response = client.get(&first.url("/back")).await.unwrap();
        assert_eq!(response.final_url.as_str(), first.url("/here?x"));
        assert_eq!(read(&mut response).await.unwrap(), "/here");
        let seen = first.last();
        assert_eq!(seen.header("authorization"), basic);
        assert_eq!(seen.header("cookie"), Some("mine=1"));
        assert_eq!(first.accepted.get(), 1, "the redirect's connection is used again");

        let response = client.get(&first.url("/away")).await.unwrap();
        assert_eq!(response.origin, origin(&other.url("/")));
        assert_eq!(first.last().header("authorization"), basic);
        let seen = other.last();
        assert_eq!(seen.path, "/there");
        assert_eq!(seen.header("authorization"), None);
        assert_eq!(seen.header("cookie"), None);
        assert_eq!(seen.header("x-api-key"), None);
        assert_eq!(seen.header("accept-language"), Some("de"));
        assert_eq!(first.last().header("x-api-key"), Some("mine"));
    });
}

#[test]
fn a_header_of_the_request_goes_before_a_user() {
    run(async {
        let (first, other) = two_origins().await;
        let client = Client::new(with_secrets());
        let mut request = GetRequest::new(Url::parse(&first.url("/away")).unwrap());
        request.headers = vec![("authorization".parse().unwrap(), "Bearer t".parse().unwrap())];
        client.http.get(&request).await.unwrap();
        assert_eq!(first.last().header("authorization"), Some("Bearer t"));
        assert_eq!(other.last().header("authorization"), None);
    });
}

#[test]
fn a_user_in_the_url_is_sent_and_not_shown() {
    run(async {
        let (first, other) = two_origins().await;
        let client = Client::new(HttpConfig::default());
        let url = |path: &str| first.url(path).replace("http://", "http://u%40x:p%3Aw@");
        let response = client.get(&url("/x")).await.unwrap();
        assert_eq!(response.final_url.as_str(), first.url("/x"));
        // printf 'u@x:p:w' | base64
        assert_eq!(first.last().header("authorization"), Some("Basic dUB4OnA6dw=="));
        assert_eq!(first.last().path, "/x");
        client.get(&url("/away")).await.unwrap();
        assert_eq!(other.last().header("authorization"), None);
    });
}

#[test]
fn netrc_and_cookie_file_know_their_hosts() {
    run(async {
        let (first, _) = two_origins().await;
        let netrc = "machine 127.0.0.1 login n password 1\nmachine 127.0.0.1 login o password 2";
        let cookies = "127.0.0.1\tFALSE\t/here\tFALSE\t0\tc\tv\n";
        let config = HttpConfig {
            netrc: Netrc::parse(netrc, "netrc").unwrap(),
            cookies: Cookies::parse(cookies, "cookies").unwrap(),
            ..HttpConfig::default()
        };
        let client = Client::new(config);
        client.get(&first.url("/here")).await.unwrap();
        // printf 'n:1' | base64
        assert_eq!(first.last().header("authorization"), Some("Basic bjox"));
        assert_eq!(first.last().header("cookie"), Some("c=v"));
        client.get(&first.url("/x").replace("http://", "http://o@")).await.unwrap();
        // printf 'o:2' | base64
        assert_eq!(first.last().header("authorization"), Some("Basic bzoy"));
        assert_eq!(first.last().header("cookie"), None);
    });
}

#[test]
fn redirects_that_lead_nowhere_are_errors() {
    run(async {
        let server = Server::plain(|path| match path {
            "/circle" => redirect("/circle2"),
            "/circle2" => redirect("/circle"),
            path => redirect(&format!("{path}x")),
        })
        .await;
        let client = Client::new(HttpConfig { max_redirects: 4, ..HttpConfig::default() });
        let error = client.get(&server.url("/circle")).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Redirect);
        assert!(error.message().contains("/circle in a circle"), "{}", error.message());
        let error = client.get(&server.url("/")).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Redirect);
        assert!(error.message().contains("/xxxxx after 4 redirects"), "{}", error.message());
        assert_eq!(server.last().path, "/xxxx");
    });
}

#[test]
fn a_status_is_no_error() {
    run(async {
        let server = Server::plain(|path| {
            let mut response = text("sorry");
            *response.status_mut() = path[1..].parse().unwrap();
            response
        })
        .await;
        let client = Client::new(HttpConfig::default());
        for status in [304, 401, 404, 416, 500, 503] {
            let response = client.get(&server.url(&format!("/{status}"))).await.unwrap();
            assert_eq!(response.status.as_u16(), status);
        }
    });
}
