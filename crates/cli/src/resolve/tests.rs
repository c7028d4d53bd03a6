use std::time::Duration;

use clap::Parser;
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::ErrorKind;

use super::*;
use crate::args::{Cli, Command, GetArgs};

fn args(line: &str) -> GetArgs {
    let words = ["pelton", "get"].into_iter().chain(line.split_whitespace());
    match Cli::try_parse_from(words).unwrap().command {
        Command::Get(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn engine_of(line: &str) -> EngineConfig {
    let args = args(line);
    engine(&args.tuning, &args.retry, &args.target)
}

fn http_of(line: &str) -> Result<HttpConfig> {
    let args = args(line);
    http(&args.http, &args.retry)
}

#[test]
fn flags_that_are_not_given_leave_the_libraries_defaults() {
    let (made, defaults) = (engine_of(""), EngineConfig::default());
    assert_eq!(made.limits, defaults.limits);
    assert_eq!(made.retry, defaults.retry);
    assert_eq!(made.stall_timeout, defaults.stall_timeout);
    let (made, defaults) = (http_of("").unwrap(), HttpConfig::default());
    assert_eq!(made.user_agent, defaults.user_agent);
    assert_eq!(made.max_redirects, defaults.max_redirects);
    assert_eq!(made.connect_timeout, defaults.connect_timeout);
}

#[test]
fn ceilings_hints_and_retries_reach_the_engine() {
    let made = engine_of(
        "-j 3 -s 4 -k 1M -x 7 --max-total-connections 20 --bandwidth 50M --rtt 200ms \
         --tries 2 --retry-wait 60 --timeout 10 --overwrite --limit-rate 9M --limit-rate-per-origin 3M",
    );
    assert_eq!(made.limits.max_files, Some(3));
    assert_eq!(made.limits.max_streams_per_file, Some(4));
    assert_eq!(made.limits.split_floor, Some(Bytes::mib(1)));
    assert_eq!(made.limits.max_connections_per_origin, 7);
    assert_eq!(made.limits.max_connections, 20);
    assert_eq!(made.limits.max_rate, Some(BitRate::from_mbps(9.0)));
    assert_eq!(made.limits.max_rate_per_origin, Some(BitRate::from_mbps(3.0)));
    assert_eq!(made.link.bandwidth_hint, Some(BitRate::from_mbps(50.0)));
    assert_eq!(made.link.rtt_hint, Some(Duration::from_millis(200)));
    assert_eq!(made.retry.attempts, 2);
    assert_eq!(made.retry.first_delay, Duration::from_secs(60));
    assert!(made.retry.longest_delay >= made.retry.first_delay);
    assert_eq!(made.stall_timeout, Duration::from_secs(10));
    assert!(made.overwrite);
    let lanes = engine_of("--policy fixed -j 4 --pipelining 8").limits;
    assert_eq!((lanes.max_files, lanes.max_streams_per_file), (Some(32), Some(1)));
    assert_eq!(engine_of("--polite").limits.max_connections_per_origin, 1);
    assert_eq!(engine_of("--tries 0").retry.attempts, u32::MAX);
}

#[test]
fn runs_do_not_share_their_jitter() {
    assert_ne!(engine_of("").seed, engine_of("").seed);
}

#[test]
fn http_flags_are_curls() {
    let made = http_of("-u me:pw -A x --max-redirs 3 --http1.1 --insecure").unwrap();
    assert_eq!(made.user, Some(("me".to_owned(), "pw".to_owned())));
    assert_eq!(made.user_agent, "x");
    assert_eq!(made.max_redirects, 3);
    assert_eq!(made.protocol, ProtocolChoice::Http1);
    assert!(made.tls.insecure);
    let made = http_of("--http2-prior-knowledge --cert c.pem").unwrap();
    assert_eq!(made.protocol, ProtocolChoice::Http2PriorKnowledge);
    assert_eq!(made.tls.client_certificate, Some(("c.pem".into(), "c.pem".into())));
    assert!(http_of("--key k.pem").err().unwrap().message().contains("--cert"));
}

#[test]
fn proxies_are_the_environments_unless_given() {
    let of = |line: &str| http_of(line).map(|made| made.proxies);
    assert!(matches!(of(""), Ok(Proxies::Environment { except: None })));
    assert!(matches!(of("--proxy="), Ok(Proxies::Direct)));
    assert!(matches!(of("--noproxy *"), Ok(Proxies::Direct)));
    assert!(matches!(of("--noproxy a"), Ok(Proxies::Environment { except: Some(_) })));
    let Ok(Proxies::Explicit { url, except }) = of("--proxy socks5h://p:1 --noproxy a,b") else {
        panic!("not explicit");
    };
    assert_eq!((url.as_str(), except.as_deref()), ("socks5h://p:1", Some("a,b")));
}

#[test]
fn the_address_family_and_the_detours_reach_the_connector() {
    let args = args("-6 --connect-to a:80:b:81 --connect-timeout 3");
    let made = connector(&args.http, &args.retry);
    assert_eq!(made.family, AddressFamily::V6);
    assert_eq!(made.connect_to[0].to_port, Some(81));
    assert_eq!(made.connect_timeout, Duration::from_secs(3));
}

#[test]
fn a_mistake_in_a_list_names_its_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls");
    fs::write(&list, "http://h/a\nexample.org/b\n").unwrap();
    let error = inputs(&args(&format!("-i {}", list.display())).inputs).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let expected = format!("{}: line 2: \"example.org/b\" is no URL", list.display());
    assert!(error.message().starts_with(&expected), "{}", error.message());
    let error = inputs(&args("-i /nowhere/urls").inputs).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileIo);
}

#[test]
fn a_listing_in_a_list_is_a_listing() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls");
    fs::write(&list, "http://h/d/\nhttp://h/d/\n out=x.html\nhttp://h/a\n").unwrap();
    let inputs = inputs(&args(&format!("-i {}", list.display())).inputs).unwrap();
    assert!(matches!(
        &inputs[..],
        [Input::Url(_), Input::File(page), Input::File(_)] if page.name == "x.html"
    ));
}

#[test]
fn urls_are_checked_before_anything_is_done() {
    for line in ["example.org/x", "", "-i - -i -", "http://h/a --base-url x"] {
        let error = inputs(&args(line).inputs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{line}");
    }
}

#[test]
fn what_is_for_one_file_refuses_more() {
    let only = |line: &str| only_file(inputs(&args(line).inputs).unwrap(), "--checksum", false);
    assert_eq!(only("http://h/d/a.iso").unwrap().name, "a.iso");
    assert!(only("http://h/a http://h/b").unwrap_err().message().contains("there are 2"));
    assert!(only("http://h/d/").unwrap_err().message().contains("directory listing"));
    let named = only_file(inputs(&args("http://h/d/").inputs).unwrap(), "-o", true);
    assert_eq!(named.unwrap().url.as_str(), "http://h/d/", "what has a name is a file");
}

#[test]
fn an_output_file_may_be_anywhere() {
    let of = |path: &str| directory_and_name(Path::new("d"), Path::new(path));
    assert_eq!(of("/tmp/x/a.iso").unwrap(), ("/tmp/x".into(), "a.iso".to_owned()));
    assert_eq!(of("./a.iso").unwrap(), ("d/.".into(), "a.iso".to_owned()));
    for path in ["..", "/", "a/..", "new/"] {
        assert!(of(path).is_err(), "{path}");
    }
}
