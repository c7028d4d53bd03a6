//! Short files over few HTTP/1.1 connections on a long path, from servers that bear several requests
//! over each, and from such as do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pelton_algos::policy::Hat;
use pelton_algos::units::BitRate;
use pelton_core::connection::TcpConnector;
use pelton_lab::content::VirtualFile;
use pelton_lab::link::Link;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};
use pelton_lab::shaper::ShapedConnector;

use crate::support::{builder, engine, run, tree};

const FILES: u64 = 120;

fn files() -> Vec<VirtualFile> {
    (0..FILES)
        .map(|number| VirtualFile::new(format!("/{number}"), 3_000 + number, number))
        .collect()
}

/// Fetches all files of a server with this script over three connections, and compares them. Returns
/// what the server was asked.
fn fetch(
    script: impl Fn(&RawRequest, &VirtualFile) -> Reply + Send + Sync + 'static,
) -> Vec<RawRequest> {
    fetch_with(Duration::from_secs(2), script)
}

/// The same where a connection that brings nothing is given so long.
fn fetch_with(
    stall_timeout: Duration,
    script: impl Fn(&RawRequest, &VirtualFile) -> Reply + Send + Sync + 'static,
) -> Vec<RawRequest> {
    let known = files();
    let server = Scripted::start(move |request| {
        let file = known.iter().find(|file| file.path == request.target()).unwrap();
        script(request, file)
    })
    .unwrap();
    let link =
        Link { rate: BitRate::from_mbps(100.0), rtt: Duration::from_millis(40), ..Link::lan() };
    let slow = Arc::new(ShapedConnector::new(link, TcpConnector::default()));
    let mut config = engine();
    config.limits.max_connections_per_origin = 3;
    config.stall_timeout = stall_timeout;
    let client = builder().policy(Hat).engine(config).connector(slow).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls = files().iter().map(|file| server.url(file.path.as_str())).collect::<Vec<_>>();
    let report = run(client.download(urls).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    let there = tree(out.path());
    assert_eq!(there.len() as u64, FILES);
    for file in files() {
        assert!(there[&file.path[1..]] == file.bytes(0..file.size), "{}", file.path);
    }
    server.requests()
}

/// What a server does wrong once.
type Fault = (&'static str, fn() -> Box<Script>);

type Script = dyn Fn(&RawRequest, &VirtualFile) -> Reply + Send + Sync;

fn twice(request: &RawRequest, file: &VirtualFile) -> Reply {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: {}\r\n\r\n",
        file.size,
        file.etag()
    );
    let is_head = request.head.starts_with("HEAD");
    let body = if is_head { Vec::new() } else { file.bytes(0..file.size) };
    Reply::raw([head.as_bytes(), &body, head.as_bytes(), &body].concat())
}

/// Less than is promised, and the next answer right behind it.
fn short(request: &RawRequest, file: &VirtualFile) -> Reply {
    let reply = Reply::status("200 OK").field("Content-Length", file.size);
    if request.head.starts_with("HEAD") {
        reply
    } else {
        reply.body(file.bytes(0..file.size - 100))
    }
}

fn heads(requests: &[RawRequest]) -> usize {
    requests.iter().filter(|request| request.head.starts_with("HEAD")).count()
}

/// The head of the answer, and its body unless the head alone was asked for.
fn honest(request: &RawRequest, file: &VirtualFile) -> Reply {
    let reply =
        Reply::status("200 OK").field("Content-Length", file.size).field("ETag", file.etag());
    if request.head.starts_with("HEAD") { reply } else { reply.body(file.bytes(0..file.size)) }
}

#[test]
fn each_file_is_asked_for_once() {
    let requests = fetch(honest);
    assert!(heads(&requests) > 1, "files wait behind each other");
    assert_eq!((requests.len() - heads(&requests)) as u64, FILES);
}

#[test]
fn answers_that_are_lost_said_twice_or_cut_are_given_to_no_other_file() {
    let faults: [Fault; 3] = [
        ("lost", || Box::new(|_, _| Reply::raw(""))),
        ("twice", || Box::new(twice)),
        ("short", || Box::new(short)),
    ];
    // The first, those that are under way when the order is known, and one among many.
    for (number, (what, fault)) in [0, 2, 3, 20].into_iter().flat_map(|n| faults.map(|f| (n, f))) {
        let bad = fault();
        let requests = fetch(move |request, file| {
            if request.number == number { bad(request, file) } else { honest(request, file) }
        });
        let gets = (requests.len() - heads(&requests)) as u64;
        assert!(gets < 2 * FILES, "{what}: {gets} requests");
    }
}

#[test]
fn connections_that_end_after_an_answer_cost_no_file() {
    let requests = fetch(|request, file| match request.number % 7 {
        3 => honest(request, file).close(),
        5 => Reply::status("200 OK")
            .field("Content-Length", file.size)
            .field("Connection", "close")
            .body(file.bytes(0..file.size))
            .close(),
        _ => honest(request, file),
    });
    // Each end takes what waits behind it along, until it is seen that nothing should wait there.
    assert!(requests.len() as u64 <= 3 * FILES, "{}", requests.len());
}

#[test]
fn answers_in_another_order_are_not_taken_for_each_other() {
    let swapped = AtomicUsize::new(0);
    fetch(move |request, file| {
        // To the request for the file first what its head is, and to that for the head the file.
        let as_if = |method: &str| RawRequest {
            head: format!("{method} {}", request.target()),
            ..request.clone()
        };
        let is_head = request.head.starts_with("HEAD");
        let turn = swapped.load(Ordering::SeqCst);
        if turn % 2 == 1 && is_head {
            swapped.store(turn + 1, Ordering::SeqCst);
            return honest(&as_if("GET"), file);
        }
        if turn == 0 && !is_head {
            swapped.store(turn + 1, Ordering::SeqCst);
            return honest(&as_if("HEAD"), file);
        }
        honest(request, file)
    });
}

#[test]
fn a_server_without_heads_is_asked_one_at_a_time() {
    let requests = fetch(|request, file| {
        if request.head.starts_with("HEAD") {
            return Reply::status("405 Method Not Allowed").field("Content-Length", 0);
        }
        honest(request, file)
    });
    assert_eq!((heads(&requests), requests.len() as u64), (2, FILES + 2));
}

#[test]
fn a_server_that_forgets_what_is_behind_costs_a_moment() {
    // Files are left when the first one is given up: it is tried once more, and not for ever.
    let requests = fetch_with(Duration::from_millis(500), |request, file| {
        if request.head.starts_with("HEAD") { Reply::raw("").hang() } else { honest(request, file) }
    });
    assert_eq!(heads(&requests), 2);
}

#[test]
fn files_behind_a_long_one_are_not_held_up() {
    // The long one is not the first, so that it is asked for behind others or before them.
    let long = VirtualFile::new("/long", 3_000_000, 1);
    let copy = long.clone();
    let server = Scripted::start(move |request| {
        let known = files();
        let file = known.iter().find(|file| file.path == request.target()).unwrap_or(&copy);
        honest(request, file)
    })
    .unwrap();
    for connections in [1, 2] {
        let link =
            Link { rate: BitRate::from_mbps(100.0), rtt: Duration::from_millis(40), ..Link::lan() };
        let slow = Arc::new(ShapedConnector::new(link, TcpConnector::default()));
        let mut config = engine();
        config.limits.max_connections_per_origin = connections;
        let client = builder().policy(Hat).engine(config).connector(slow).build().unwrap();
        let out = tempfile::tempdir().unwrap();
        let mut urls = files().iter().map(|file| server.url(&file.path)).collect::<Vec<_>>();
        urls.insert(37, server.url("/long"));
        let report = run(client.download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert!(tree(out.path())["long"] == long.bytes(0..long.size));
        // None is opened for nothing.
        assert!(report.summary.connections < 12, "{}", report.summary.connections);
    }
}
