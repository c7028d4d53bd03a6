//! The names of clients and their command lines.

use pelton_power::Radio;

use super::*;
use crate::bench::Workspace;
use crate::content::VirtualFile;

fn names(list: &str) -> Vec<String> {
    Client::parse_list(list).unwrap().into_iter().map(|client| client.name).collect()
}

#[test]
fn a_list_has_names_triples_and_all() {
    assert_eq!(names("curl,fixed:1,2,8,wget"), ["curl", "fixed:1,2,8", "wget"]);
    assert_eq!(names("all").len(), 9 + PEERS.len());
    for wrong in ["curlx", "pelton-fast", "fixed:1,2", "fixed:0,1,1", "axel-tls", "", "lftp-h2"] {
        let error = Client::parse_list(wrong).unwrap_err().to_string();
        assert!(error.starts_with("there is no client"), "{wrong}");
        assert!(error.contains("pelton-eht-h2, curl, "), "{error}");
    }
}

#[test]
fn command_lines() {
    let base = tempfile::tempdir().unwrap();
    let workspace = Workspace::create(base.path()).unwrap();
    let set = workspace.prepare("set", vec![VirtualFile::new("/a/one.txt", 1, 1)]).unwrap();
    let task = Task {
        set: &set,
        server: "10.77.0.1",
        out: Path::new("/out"),
        inputs: base.path(),
        authority: Path::new("/ca.pem"),
        radio: Radio::Lte,
        programs: &Programs { pelton: "/bin/pelton".into(), reqwest: "/bin/loop".into() },
    };
    let inputs = base.path().display().to_string();
    let line = |name: &str| {
        let client = &Client::parse_list(name).unwrap()[0];
        client.command(&task).unwrap().join(" ").replace(&inputs, "")
    };
    assert_eq!(
        line("fixed:8,1,4"),
        "/bin/pelton get -q --policy fixed -j 4 -s 1 --pipelining 8 -x 4 --max-total-connections 4 -i /urls.txt -d /out --http2 --cacert /ca.pem --power-meter model --radio lte --report /report.json"
    );
    assert_eq!(
        line("fixed:1,2,4"),
        "/bin/pelton get -q --policy fixed -j 4 -s 2 --pipelining 1 -x 8 --max-total-connections 8 -i /urls.txt -d /out --power-meter model --radio lte --report /report.json"
    );
    assert_eq!(
        line("curl-parallel-tls"),
        "curl -sS --fail -K /curl.txt --parallel --http1.1 --cacert /ca.pem"
    );
    let config = fs::read_to_string(base.path().join("curl.txt")).unwrap();
    assert_eq!(config, "url = \"https://10.77.0.1/a/one.txt\"\noutput = \"/out/one.txt\"\n");
    assert_eq!(line("wget"), "wget -q -nd -P /out -i /urls.txt");
    assert_eq!(line("curl-six"), "curl -sS --fail -K /curl.txt --parallel --parallel-max 6");
    assert_eq!(
        line("reqwest-parallel-h2"),
        "/bin/loop -j 16 -i /urls.txt -d /out --http2 --cacert /ca.pem"
    );
    let client = &Client::parse_list("pelton-hat").unwrap()[0];
    let shown = task.shown(&client.command(&task).unwrap()).join(" ");
    assert!(shown.starts_with("pelton get -q --policy hat -i WORK/urls.txt"), "{shown}");
}

#[test]
fn the_sweep_stays_within_64_connections() {
    let sweep: Vec<String> = Client::sweep().into_iter().map(|client| client.name).collect();
    assert!(sweep.contains(&"fixed:1,2,32".to_owned()));
    assert!(sweep.contains(&"fixed:8,1,32".to_owned()));
    assert!(!sweep.contains(&"fixed:1,4,32".to_owned()));
    assert_eq!(sweep.len(), 27);
}

#[test]
fn estimates_follow_what_a_client_does_at_once() {
    let seconds = |name: &str| {
        let client = &Client::parse_list(name).unwrap()[0];
        let (floor, rtt) = (Duration::from_secs(1), Duration::from_millis(100));
        client.estimate(floor, rtt, 100).as_secs_f64()
    };
    assert!(seconds("curl") > 11.0 && seconds("axel") > seconds("wget"));
    assert!(seconds("curl-parallel") < 2.0 && seconds("reqwest-parallel") < seconds("aria2"));
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let programs = Programs { pelton: "/none/pelton".into(), reqwest: "/none/loop".into() };
    for (name, remedy) in [
        ("aria2-tuned", "install the Debian package aria2"),
        ("reqwest", "build it with `cargo build --release -p pelton-lab --example reqwest_loop`"),
        ("pelton-eht", "build it with `cargo build --release -p pelton-cli`, or say where"),
    ] {
        let client = &Client::parse_list(name).unwrap()[0];
        assert!(client.program(&programs).1.starts_with(remedy), "{name}");
    }
    assert!(Client::parse_list("reqwest").unwrap()[0].version(&programs).is_err());
}
