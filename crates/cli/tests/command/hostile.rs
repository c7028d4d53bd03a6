//! Servers that abuse HTTP, as the command meets them: equal bytes and exit code 0 where they do better
//! after a while, else the error by its name and exit code, in the JSON and as the process ends.

use pelton_core::ErrorKind;
use pelton_lab::origin::{Origin, OriginConfig, hostile, hostile2};
use serde_json::Value;

use crate::common::{Run, Said};

const IMPATIENT: [&str; 11] = [
    "get",
    "--json",
    "--power-meter=none",
    "--timeout",
    "0.4",
    "--tries",
    "3",
    "--retry-wait",
    "1ms",
    "-k",
    "16K",
];

fn get(run: &Run, arguments: &[&str]) -> Said {
    run.pelton(&[&IMPATIENT, arguments].concat())
}

/// The event of the file called `name`.
fn file(said: &Said, name: &str) -> Value {
    let events = said.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found = events.filter(|event| event["event"] == "file" && event["name"] == name);
    found.next().unwrap_or_else(|| panic!("no word of {name}: {}", said.stdout))
}

/// Asserts that the file called `name` failed as `kind` does, in all that is said.
fn assert_fails(scenario: &str, said: &Said, name: &str, kind: ErrorKind) {
    let error = &file(said, name)["error"];
    assert_eq!(error["code"], kind.exit_code(), "{scenario}: {error}");
    assert_eq!(said.code, i32::from(kind.exit_code()), "{scenario}");
    let message = error["message"].as_str().unwrap();
    let told = said.stderr.replace("--polite", "`polite`");
    assert!(told.contains(message), "{scenario}: {}", said.stderr);
}

#[test]
fn http1_that_is_abused() {
    for (scenario, abuse, kind) in hostile::ABUSES {
        // A body that breaks off is gone on with from where it broke, however often it does.
        let always = if scenario.starts_with("a body") { None } else { Some(usize::MAX) };
        for abused in [Some(2), always].into_iter().flatten() {
            let server = hostile::serve(abuse, abused).unwrap();
            let run = Run::new();
            let said = get(&run, &[&server.url("/f"), &server.url("/other")]);
            let found = |name: &str| std::fs::read(run.folder().join(name)).ok();
            let other = hostile::other().bytes(0..hostile::SIZE);
            assert!(found("other") == Some(other), "{scenario}: {}", said.stderr);
            if abused == 2 {
                assert_eq!(said.code, 0, "{scenario}: {}", said.stderr);
                let content = hostile::content().bytes(0..hostile::SIZE);
                assert!(found("f") == Some(content), "{scenario}: other bytes");
            } else {
                assert_fails(scenario, &said, "f", kind);
                assert_eq!(file(&said, "f")["error"]["kind"], kind.name(), "{scenario}");
                assert!(found("f").is_none(), "{scenario}");
            }
        }
    }
}

#[test]
fn http2_that_is_abused() {
    for (scenario, abuse) in hostile2::ABUSES {
        for abused in [1, usize::MAX] {
            let config =
                OriginConfig { files: vec![hostile2::content()], ..OriginConfig::default() };
            let origin = Origin::start(config).unwrap();
            let address = hostile2::abusing(origin.address(), abused, abuse).unwrap();
            let run = Run::new();
            let url = format!("http://{address}/f");
            let said = get(&run, &["--http2-prior-knowledge", &url]);
            let found = std::fs::read(run.folder().join("f")).ok();
            match (said.code, abused) {
                // Where all that was promised came before the abuse, it is there.
                (0, _) => {
                    let bytes = file(&said, "f")["bytes"].as_u64().unwrap();
                    assert!(bytes == hostile2::SIZE || abused > 1 && bytes == 1_000, "{scenario}");
                    assert!(found == Some(hostile2::content().bytes(0..bytes)), "{scenario}");
                }
                (_, 1) => panic!("{scenario}: {}", said.stderr),
                _ => {
                    let refuses = scenario == hostile2::REFUSAL;
                    let kind = if refuses { ErrorKind::Overloaded } else { ErrorKind::ShortBody };
                    assert_fails(scenario, &said, "f", kind);
                    assert!(found.is_none(), "{scenario}");
                }
            }
        }
    }
}

#[test]
fn a_proxy_that_is_silent_is_named() {
    // The kernel takes connections on its behalf.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let proxy = format!("http://me:secret@{address}");
    let hint = format!("no whole answer arrived for 0.4 s through the proxy {address}");
    for (url, name) in
        [("http://h.test/f", "f"), ("https://h.test/f", "f"), ("http://h.test/d/", "")]
    {
        let said = get(&Run::new(), &["--tries", "1", "--proxy", &proxy, "--noproxy", "", url]);
        assert!(said.stderr.contains(&hint), "{url}: {}", said.stderr);
        assert!(!said.stderr.contains("secret"), "{}", said.stderr);
        if !name.is_empty() {
            assert_fails("silence", &said, name, ErrorKind::Timeout);
        }
    }
}

#[test]
fn who_takes_connections_and_speaks_no_tls() {
    // The kernel takes connections on its behalf.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/f", silent.local_addr().unwrap());
    let said = get(&Run::new(), &["--tries", "1", &url]);
    assert_fails("silence", &said, "f", ErrorKind::Timeout);
    let hint = "no whole answer arrived for 0.4 s (if it speaks no TLS there, ask for http://)";
    assert!(said.stderr.contains(hint), "{}", said.stderr);
}
