//! Promised digests: of lists, of Metalinks with pieces, beside the files, and in answers.

use std::fs;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pelton_core::catalog::{Digest, DigestAlgorithm, FileSpec, Pieces, parse_list};
use pelton_core::digest::Hasher;
use pelton_core::engine::EngineConfig;
use pelton_core::{Client, ErrorKind, Report, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};

use crate::support::{
    builder, client, engine, file, names, one_stream, run, run_with_events, tree,
};

const SIZE: u64 = 10_000_000;
const PIECE: u64 = 1 << 20;

fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

fn bytes() -> Vec<u8> {
    content().bytes(0..SIZE)
}

fn digest(algorithm: DigestAlgorithm, bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(bytes);
    Digest { algorithm, value: hasher.finish() }
}

fn sha256() -> Digest {
    digest(DigestAlgorithm::Sha256, &bytes())
}

fn hex(digest: &Digest) -> String {
    digest.to_string().split_once('=').unwrap().1.to_owned()
}

fn pieces() -> Pieces {
    let algorithm = DigestAlgorithm::Sha1;
    let bytes = bytes();
    let digests = bytes.chunks(PIECE as usize).map(|piece| digest(algorithm, piece).value);
    Pieces { algorithm, length: NonZeroU64::new(PIECE).unwrap(), digests: digests.collect() }
}

/// Answers as a good server does, with `bytes` and these fields.
fn answer(request: &RawRequest, bytes: &[u8], fields: &[(&str, String)]) -> Reply {
    let range = request.field("range").map(|field| {
        let (first, last) = field.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (first.parse::<usize>().unwrap(), last.parse::<usize>().unwrap())
    });
    let (first, last) = range.unwrap_or((0, bytes.len() - 1));
    let reply = match range {
        None => Reply::status("200 OK").field("Accept-Ranges", "bytes"),
        Some(_) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {first}-{last}/{}", bytes.len())),
    };
    let reply = reply.field("Content-Length", last - first + 1).field("ETag", "\"1\"");
    let reply = fields.iter().fold(reply, |reply, (name, value)| reply.field(name, value));
    if request.head.starts_with("HEAD") { reply } else { reply.body(&bytes[first..=last]) }
}

fn flip(bytes: &mut [u8], at: &[u64]) {
    for at in at {
        bytes[*at as usize] ^= 1;
    }
}

/// Serves the file with its bytes at `wrong` flipped, as many times as the closure says.
fn corrupt(wrong: &[u64], is_wrong: impl Fn(usize) -> bool + Send + Sync + 'static) -> Scripted {
    let good = bytes();
    let mut bad = good.clone();
    flip(&mut bad, wrong);
    Scripted::start(move |request| {
        answer(request, if is_wrong(request.number) { &bad } else { &good }, &[])
    })
    .unwrap()
}

fn spec(server: &Scripted) -> FileSpec {
    FileSpec::from_url(server.url("/f").parse().unwrap()).unwrap()
}

fn verifying() -> Client {
    builder().engine(EngineConfig { verify: true, ..engine() }).build().unwrap()
}

/// Body bytes that were asked for.
fn asked(server: &Scripted) -> u64 {
    server.requests().iter().map(asked_by).sum()
}

fn asked_by(request: &RawRequest) -> u64 {
    let Some(range) = request.field("range") else { return SIZE };
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    last.parse::<u64>().unwrap() + 1 - first.parse::<u64>().unwrap()
}

#[test]
fn wrong_bytes_come_again_from_the_next_mirror() {
    let (bad, good) = (corrupt(&[5_000_000], |_| true), corrupt(&[], |_| false));
    let mut spec = spec(&bad);
    spec.digest = Some(sha256());
    spec.mirrors = vec![good.url("/f").parse().unwrap()];
    let out = tempfile::tempdir().unwrap();
    let (report, events) = run_with_events(client().download([spec]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(tree(out.path())["f"] == bytes());
    assert_eq!(file(&report, "f").url, good.url("/f"));
    let told = events.iter().find_map(|event| match event {
        RunEvent::Restart(restart) => Some(restart.clone()),
        _ => None,
    });
    let told = told.expect("it is told");
    assert_eq!(told.bytes_lost, SIZE);
    assert!(told.reason.contains("the digest is sha-256="), "{}", told.reason);
}

#[test]
fn wrong_bytes_are_those_of_the_place_that_gave_them() {
    let missing = Scripted::start(|_| Reply::status("404 Not Found").field("Content-Length", 0));
    let (missing, bad) = (missing.unwrap(), corrupt(&[17], |_| true));
    let mut spec = spec(&missing);
    spec.digest = Some(sha256());
    spec.mirrors = vec![bad.url("/f").parse().unwrap()];
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([spec]).into_dir(out.path()));
    let error = file(&report, "f").error.as_ref().unwrap();
    let expected = format!("{}: the digest is", bad.url("/f"));
    assert!(error.message.starts_with(&expected), "{}", error.message);
}

#[test]
fn wrong_bytes_without_a_mirror_come_once_more() {
    let passing = corrupt(&[17], |number| number == 0);
    let mut spec = spec(&passing);
    spec.digest = Some(sha256());
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([spec]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(tree(out.path())["f"] == bytes());

    let lasting = corrupt(&[17], |_| true);
    let mut spec = self::spec(&lasting);
    spec.digest = Some(sha256());
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([spec]).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::Checksum.exit_code());
    assert!(names(out.path()).is_empty(), "nothing is kept");
    let from_start = |r: &&RawRequest| r.field("range").is_none_or(|r| r.starts_with("bytes=0-"));
    assert_eq!(lasting.requests().iter().filter(from_start).count(), 2);
}

#[test]
fn a_bad_piece_alone_is_fetched_again() {
    for (with_digest, with_mirror) in [(true, true), (false, true), (true, false), (false, false)] {
        let wrong = [100, 3 * PIECE + 5, SIZE - 1];
        let bad = corrupt(&wrong, |_| true);
        let good = corrupt(&[], |_| false);
        // Without a mirror the same place gives the right bytes once each of them was wrong.
        let given = AtomicU64::new(0);
        let (mended, mut flipped) = (bytes(), bytes());
        flip(&mut flipped, &wrong);
        let alone = Scripted::start(move |request| {
            let before = given.fetch_add(asked_by(request), Ordering::Relaxed);
            answer(request, if before < SIZE { &flipped } else { &mended }, &[])
        })
        .unwrap();
        let mut spec = spec(if with_mirror { &bad } else { &alone });
        spec.size = Some(SIZE);
        spec.pieces = Some(pieces());
        spec.digest = with_digest.then(sha256);
        spec.mirrors = if with_mirror { vec![good.url("/f").parse().unwrap()] } else { Vec::new() };
        let client = one_stream();
        let out = tempfile::tempdir().unwrap();
        let report = run(client.download([spec.clone()]).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert!(tree(out.path())["f"] == bytes());
        let last = SIZE % PIECE;
        if with_mirror {
            assert_eq!(asked(&bad), SIZE);
            assert_eq!(asked(&good), 2 * PIECE + last);
        } else {
            assert_eq!(asked(&alone), SIZE + 2 * PIECE + last);
        }
        // What is there is known by its pieces alone.
        let report = run(client.download([spec]).into_dir(out.path()));
        assert!(file(&report, "f").already_there, "{:?}", report.files);
    }
}

#[test]
fn a_piece_that_is_wrong_everywhere_costs_a_rerun_no_other() {
    let wrong = [PIECE + 7];
    for with_digest in [false, true] {
        let is_mended = Arc::new(AtomicBool::new(false));
        let (good, mended) = (bytes(), Arc::clone(&is_mended));
        let mut flipped = bytes();
        flip(&mut flipped, &wrong);
        let server = Scripted::start(move |request| {
            answer(request, if mended.load(Ordering::Relaxed) { &good } else { &flipped }, &[])
        })
        .unwrap();
        let mut spec = spec(&server);
        spec.pieces = Some(pieces());
        spec.digest = with_digest.then(sha256);
        let out = tempfile::tempdir().unwrap();
        let get = || run(one_stream().download([spec.clone()]).into_dir(out.path()));
        let report = get();
        assert_eq!(report.summary.exit_code, ErrorKind::Checksum.exit_code());
        let message = &file(&report, "f").error.as_ref().unwrap().message;
        let name = format!("the piece of bytes {PIECE} to {}", 2 * PIECE - 1);
        assert!(message.contains(&name) && !message.contains("not kept"), "{message}");
        is_mended.store(true, Ordering::Relaxed);
        let before = asked(&server);
        let report = get();
        assert!(report.is_complete(), "{:?}", report.files);
        assert_eq!(asked(&server) - before, PIECE, "that piece alone");
        assert!(tree(out.path())["f"] == bytes());
    }
    // Nothing tells where it is wrong.
    let server = corrupt(&wrong, |_| true);
    let mut spec = spec(&server);
    spec.digest = Some(sha256());
    let out = tempfile::tempdir().unwrap();
    let report = run(one_stream().download([spec]).into_dir(out.path()));
    let message = &file(&report, "f").error.as_ref().unwrap().message;
    assert!(message.contains("the file is not kept"), "{message}");
    assert!(names(out.path()).is_empty());
}

#[test]
fn a_metalink_with_mirrors_and_pieces() {
    let dead = corrupt(&[], |_| false);
    let dead_url = dead.url("/f");
    drop(dead);
    let (bad, good) = (corrupt(&[2 * PIECE], |_| true), corrupt(&[], |_| false));
    let hashes = pieces().digests.into_iter().map(|value| {
        let digest = Digest { algorithm: DigestAlgorithm::Sha1, value };
        format!("<hash>{}</hash>", hex(&digest))
    });
    let hashes = hashes.collect::<Vec<_>>().concat();
    let text = format!(
        "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">
         <file name=\"set/image\"><size>{SIZE}</size><hash type=\"sha-256\">{}</hash>
         <pieces length=\"{PIECE}\" type=\"sha-1\">{hashes}</pieces>
         <url priority=\"3\">{}</url><url priority=\"1\">{dead_url}</url><url priority=\"2\">{}</url>
         </file><file name=\"other\"><url>{}</url></file></metalink>",
        hex(&sha256()),
        good.url("/f"),
        bad.url("/f"),
        good.url("/other"),
    );
    let out = tempfile::tempdir().unwrap();
    let list = parse_list(&text, None).unwrap();
    let report = run(one_stream().download(list).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(tree(out.path())["set/image"] == bytes());
    assert_eq!(names(out.path()), ["other".to_owned(), "set/image".to_owned()].into());
    assert_eq!(asked(&bad), SIZE);
    let of_image = good.requests().iter().filter(|r| r.target() == "/f").count();
    assert!(of_image >= 1, "the bad piece came from the third place");
}

#[test]
fn digests_in_answers_count_with_verify() {
    let sha = BASE64_STANDARD.encode(sha256().value);
    let md5 = BASE64_STANDARD.encode(digest(DigestAlgorithm::Md5, &bytes()).value);
    for (name, right) in [
        ("Repr-Digest", format!("sha-256=:{sha}:")),
        ("Digest", format!("SHA-256={sha}")),
        ("Content-MD5", md5),
    ] {
        let wrong = match name {
            "Content-MD5" => BASE64_STANDARD.encode([0; 16]),
            _ => right.replace(&sha, &BASE64_STANDARD.encode([0; 32])),
        };
        for (value, verify, ok) in
            [(&right, true, true), (&wrong, true, false), (&wrong, false, true)]
        {
            let (bytes, fields) = (bytes(), vec![(name, value.clone())]);
            let server = Scripted::start(move |request| match request.target() {
                "/f" => answer(request, &bytes, &fields),
                _ => Reply::status("404 Not Found").field("Content-Length", 0),
            })
            .unwrap();
            let client = if verify { verifying() } else { client() };
            let out = tempfile::tempdir().unwrap();
            let report = run(client.download([server.url("/f")]).into_dir(out.path()));
            assert_eq!(report.is_complete(), ok, "{name}: {value}");
            assert_eq!(file(&report, "f").digest.is_some(), verify && ok, "{name}");
            if !ok {
                assert_eq!(report.summary.exit_code, ErrorKind::Checksum.exit_code());
            }
            let wants = server.requests().iter().any(|r| r.field("want-repr-digest").is_some());
            assert_eq!(wants, verify);
        }
    }
}

#[test]
fn digests_beside_files_count_with_verify() {
    for (sums, alone, ok) in [
        (Some(hex(&sha256())), None, true),
        (None, Some(hex(&sha256())), true),
        (Some("0".repeat(64)), None, false),
        (None, Some(format!("{}  f\n", "0".repeat(64))), false),
        (None, None, true),
    ] {
        let bytes = bytes();
        let has_digest = sums.is_some() || alone.is_some();
        let server = Scripted::start(move |request| {
            let text = match request.target() {
                "/d/f" => return answer(request, &bytes, &[]),
                "/d/SHA256SUMS" => sums.as_ref().map(|hex| format!("{hex} *f\n{hex}  g\n")),
                "/d/f.sha256" => alone.clone(),
                other => panic!("{other}"),
            };
            match text {
                Some(text) => {
                    Reply::status("200 OK").field("Content-Length", text.len()).body(text)
                }
                None => Reply::status("404 Not Found").field("Content-Length", 0),
            }
        })
        .unwrap();
        let out = tempfile::tempdir().unwrap();
        let report = run(verifying().download([server.url("/d/f")]).into_dir(out.path()));
        assert_eq!(report.is_complete(), ok, "{:?}", report.files);
        assert_eq!(file(&report, "f").digest.is_some(), has_digest && ok);
        assert_eq!(names(out.path()).contains("f"), ok);
    }
}

/// Downloads `/f` with `--verify` from a server that answers with `beside` where digests may lie.
fn run_beside(beside: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Report, Vec<RunEvent>) {
    let bytes = bytes();
    let server = Scripted::start(move |request| match request.target() {
        "/f" => answer(request, &bytes, &[]),
        other => beside(other),
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    run_with_events(verifying().download([server.url("/f")]).into_dir(out.path()))
}

fn warnings(events: &[RunEvent]) -> Vec<&str> {
    let reasons = events.iter().filter_map(|event| match event {
        RunEvent::Warning(warning) => Some(warning.reason.as_str()),
        _ => None,
    });
    reasons.collect()
}

#[test]
fn what_a_server_compressed_unasked_is_stored_as_it_came_and_told_once() {
    let server = Scripted::start(|_| {
        let reply = Reply::status("200 OK").field("Content-Encoding", "gzip");
        reply.field("Content-Length", 4).body("gzip")
    })
    .unwrap();
    for (paths, told) in [(["/a", "/b"], 1), (["/a.tar.gz", "/b.GZ"], 0)] {
        let out = tempfile::tempdir().unwrap();
        let urls = paths.map(|path| server.url(path));
        let (report, events) = run_with_events(client().download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        let warnings = warnings(&events);
        assert_eq!(warnings.len(), told, "{warnings:?}");
        assert!(warnings.iter().all(|reason| reason.contains("stored as it came")), "{warnings:?}");
        assert!(paths.iter().all(|path| fs::read(out.path().join(&path[1..])).unwrap() == b"gzip"));
    }
}

#[test]
fn what_is_no_list_of_digests_is_told_and_the_file_is_judged_without_it() {
    const PAGE: &str = "<!doctype html><title>Welcome</title>";
    for (content_type, body, told) in [
        ("text/html", PAGE, "/SHA256SUMS: a page for people and no list of digests (as at 1 more)"),
        (
            "text/plain",
            PAGE,
            "/SHA256SUMS: a page for people and no list of digests (as at 1 more)",
        ),
        ("text/plain", "oops", "/SHA256SUMS: no usable digest"),
    ] {
        let (report, events) = run_beside(move |_| {
            let reply = Reply::status("200 OK").field("Content-Type", content_type);
            reply.field("Content-Length", body.len()).body(body)
        });
        assert!(report.is_complete(), "{:?}", report.files);
        assert_eq!(report.files.len(), 1, "the file and no other: {:?}", report.files);
        assert_eq!(file(&report, "f").digest, None);
        let warnings = warnings(&events);
        assert!(warnings[0].contains(told), "{warnings:?}");
    }
}

#[test]
fn a_page_in_the_place_of_the_list_does_not_hide_what_lies_beside_the_file() {
    for right in [true, false] {
        let (report, events) = run_beside(move |target| {
            let reply = Reply::status("200 OK");
            if target == "/SHA256SUMS" {
                return reply
                    .field("Content-Type", "text/html")
                    .field("Content-Length", 3)
                    .body("<p>");
            }
            let hex = if right { hex(&sha256()) } else { "0".repeat(64) };
            reply.field("Content-Length", hex.len()).body(hex)
        });
        assert_eq!(report.is_complete(), right, "{:?}", report.files);
        assert_eq!(report.files.len(), 1);
        assert_eq!(warnings(&events).len(), 1);
    }
}

#[test]
fn a_list_of_digests_that_the_server_fails_to_give_is_a_failure() {
    let (report, _) = run_beside(|target| match target {
        "/SHA256SUMS" => Reply::status("500 Internal Server Error").field("Content-Length", 0),
        _ => Reply::status("404 Not Found").field("Content-Length", 0),
    });
    assert!(file(&report, "f").ok, "the file is no worse");
    assert_eq!(report.summary.exit_code, ErrorKind::ServerError.exit_code());
    let failed = report.files.iter().find(|file| !file.ok).unwrap();
    assert!(failed.url.ends_with("/SHA256SUMS"));
}

#[test]
fn a_part_of_an_earlier_run_is_hashed_too() {
    let answered = AtomicUsize::new(0);
    let is_back = Arc::new(AtomicBool::new(false));
    let is_there = Arc::clone(&is_back);
    let bytes = bytes();
    let server = Scripted::start(move |request| match answered.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::status("200 OK")
            .field("Accept-Ranges", "bytes")
            .field("ETag", "\"1\"")
            .field("Content-Length", SIZE)
            .body(&bytes[..6_000_000])
            .close(),
        _ if !is_there.load(Ordering::Relaxed) => {
            Reply::status("404 Not Found").field("Content-Length", 0)
        }
        _ => answer(request, &bytes, &[]),
    })
    .unwrap();
    let mut spec = spec(&server);
    spec.digest = Some(sha256());
    let out = tempfile::tempdir().unwrap();
    let client = one_stream();
    let first = run(client.download([spec.clone()]).into_dir(out.path()));
    assert_eq!(first.summary.exit_code, ErrorKind::NotFound.exit_code());
    is_back.store(true, Ordering::Relaxed);
    let second = run(client.download([spec]).into_dir(out.path()));
    assert!(second.is_complete(), "{:?}", second.files);
    assert_eq!(file(&second, "f").resumed_from, 6_000_000);
    assert!(fs::read(out.path().join("f")).unwrap() == self::bytes());
}

#[test]
fn what_lies_beside_a_file_is_asked_for_with_its_headers() {
    let bytes = bytes();
    let hex = hex(&sha256());
    let server = Scripted::start(move |request| match (request.target(), request.field("x-key")) {
        (_, None) => Reply::status("403 Forbidden").field("Content-Length", 0),
        ("/d/f", _) => answer(request, &bytes, &[]),
        ("/d/f.sha256", _) => {
            Reply::status("200 OK").field("Content-Length", hex.len()).body(&*hex)
        }
        _ => Reply::status("404 Not Found").field("Content-Length", 0),
    })
    .unwrap();
    let mut spec = FileSpec::from_url(server.url("/d/f").parse().unwrap()).unwrap();
    spec.headers = vec![("X-Key".into(), "open".into())];
    let out = tempfile::tempdir().unwrap();
    let report = run(verifying().download([spec]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert_eq!(file(&report, "f").digest, Some(sha256().to_string()));
    assert!(server.requests().iter().all(|request| request.field("x-key") == Some("open")));
}
