//! Servers that abuse HTTP/1.1. Each is tried twice: one that does so for a while, and the file comes
//! all the same; and one that always does, and the failure has its name and exit code. Another file of
//! the run is none the worse. The command is tried in the same way: `crates/cli/tests/command/hostile.rs`.

use std::time::Duration;

use pelton_core::Client;
use pelton_core::engine::EngineConfig;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::hostile::{ABUSES, SIZE, content, honest, other, serve};
use pelton_lab::origin::scripted::{Reply, Scripted};

use crate::support::{builder, engine, file, names, one_stream, run, tree};

/// Retries at once, and has little patience.
fn client() -> Client {
    let config = EngineConfig { stall_timeout: Duration::from_millis(300), ..engine() };
    builder().engine(config).build().unwrap()
}

#[test]
fn what_is_abused_for_a_while_comes_all_the_same() {
    for (name, abuse, _) in ABUSES {
        let server = serve(abuse, 2).unwrap();
        let out = tempfile::tempdir().unwrap();
        let urls = [server.url("/f"), server.url("/other")];
        let report = run(client().download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{name}: {:?}", report.files);
        let found = tree(out.path());
        assert!(found["f"] == content().bytes(0..SIZE), "{name}: other bytes");
        assert!(found["other"] == other().bytes(0..SIZE), "{name}: other bytes");
        assert_eq!(file(&report, "other").restarts, 0, "{name}");
    }
}

#[test]
fn what_is_always_abused_fails_by_its_name_and_alone() {
    for (name, abuse, kind) in ABUSES {
        // A body that breaks off is gone on with from where it broke.
        if name.starts_with("a body") {
            continue;
        }
        let server = serve(abuse, usize::MAX).unwrap();
        let out = tempfile::tempdir().unwrap();
        let urls = [server.url("/f"), server.url("/other")];
        let report = run(client().download(urls).into_dir(out.path()));
        let error = file(&report, "f").error.clone().expect(name);
        assert_eq!(error.kind, kind.name(), "{name}: {}", error.message);
        assert_eq!(report.summary.exit_code, kind.exit_code(), "{name}");
        assert!(error.message.contains(&server.url("/f")), "{name}: {}", error.message);
        assert!(!error.message.contains('\n') && error.message.len() < 500, "{}", error.message);
        assert_eq!(names(out.path()), ["other".to_owned()].into(), "{name}");
    }
}

#[test]
fn machines_that_do_not_agree_on_the_version_give_the_file_in_one_body() {
    // Each request is answered with another tag, as by servers that make tags of their inodes.
    let server = Scripted::start(|request| {
        let version = VirtualFile::new("/f", SIZE, request.number as u64);
        match request.field("range") {
            None if request.number < 3 => Reply::status("200 OK")
                .field("Content-Length", SIZE)
                .field("Accept-Ranges", "bytes")
                .field("ETag", version.etag())
                .body(version.bytes(0..300_000))
                .close(),
            _ => honest(&version, request),
        }
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(one_stream().download([server.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    let requests = server.requests();
    let last = requests.iter().rfind(|request| request.field("range").is_none()).unwrap();
    let version = VirtualFile::new("/f", SIZE, last.number as u64);
    assert!(tree(out.path())["f"] == version.bytes(0..SIZE), "one version and no other");
    assert_eq!(file(&report, "f").restarts, 2);
}

#[test]
fn a_few_interim_responses_are_passed_over() {
    let server = Scripted::start(|_| {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(20);
        Reply::raw(format!("{interim}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"))
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([server.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(tree(out.path())["f"] == b"abc");
}
