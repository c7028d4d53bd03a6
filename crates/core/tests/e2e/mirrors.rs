//! Files that are at several places.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use pelton_core::catalog::{FileSpec, parse_list};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginConfig};

use crate::support::{client, file, run, tree};

fn wanted() -> VirtualFile {
    VirtualFile::new("/f", 400_000, 3)
}

fn holding(files: Vec<VirtualFile>) -> Origin {
    Origin::start(OriginConfig { files, ..OriginConfig::default() }).unwrap()
}

/// A host that nobody listens at.
fn dead() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    format!("http://{free}/f")
}

#[test]
fn a_list_with_mirrors_is_had_from_whoever_has_it() {
    let (missing, there) = (holding(Vec::new()), holding(vec![wanted()]));
    let (missing, third) = (missing.url("/f"), there.url("/f"));
    let list = format!("{missing}\t{}\t{third}\n", dead());
    let out = tempfile::tempdir().unwrap();
    let files = parse_list(&list, None).unwrap();
    let report = run(client().download(files).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert_eq!(file(&report, "f").url, third);
    assert!(tree(out.path())["f"] == wanted().bytes(0..wanted().size));

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let files = parse_list(&list, None).unwrap();
    let catalog = runtime.block_on(client().download(files).catalog()).unwrap();
    assert_eq!(catalog.files[0].size_hint, Some(wanted().size));

    let list = format!("{missing}\t{missing}?again\n");
    let files = parse_list(&list, None).unwrap();
    let report = run(client().download(files).into_dir(out.path().join("none")));
    assert_eq!(report.summary.exit_code, 3);
    let error = file(&report, "f").error.as_ref().unwrap();
    assert!(error.message.contains("?again: HTTP 404"), "{}", error.message);
    assert!(error.message.ends_with("(the last of its 2 places)"), "{}", error.message);
}

/// Serves the first bytes of the file with `etag`, and then has it no more.
fn loses_it(etag: &'static str, sent: usize) -> Scripted {
    let requests = AtomicUsize::new(0);
    Scripted::start(move |_| {
        if requests.fetch_add(1, Ordering::Relaxed) > 0 {
            return Reply::status("404 Not Found").field("Content-Length", 0);
        }
        let bytes = wanted().bytes(0..wanted().size);
        let etag = if etag.is_empty() { wanted().etag() } else { etag.to_owned() };
        Reply::status("200 OK")
            .field("Content-Length", bytes.len())
            .field("Accept-Ranges", "bytes")
            .field("ETag", etag)
            .body(&bytes[..sent])
            .close()
    })
    .unwrap()
}

#[test]
fn a_mirror_brings_the_rest_of_the_same_version_and_all_of_another() {
    const SENT: u64 = 150_000;
    for etag in ["", "\"other\""] {
        let (first, second) = (loses_it(etag, SENT as usize), holding(vec![wanted()]));
        let mut spec = FileSpec::from_url(first.url("/f").parse().unwrap()).unwrap();
        spec.mirrors = vec![second.url("/f").parse().unwrap()];
        let out = tempfile::tempdir().unwrap();
        let mut engine = crate::support::engine();
        engine.limits.max_streams_per_file = Some(1);
        let client = crate::support::builder().engine(engine).build().unwrap();
        let report = run(client.download([spec]).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert!(tree(out.path())["f"] == wanted().bytes(0..wanted().size), "{etag}");
        let whole = second.log().iter().filter(|request| request.status == 200).count();
        assert_eq!(whole, usize::from(!etag.is_empty()), "{etag}");
    }
}
