//! What is there already, and what can't be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use pelton_core::catalog::{Digest, DigestAlgorithm, FileSpec};
use pelton_core::engine::{EngineConfig, Opened, Resumable, Validator};
use pelton_core::sink::{Allocation, DirectoryOptions, DirectorySink, Sink};
use pelton_core::{Client, ErrorKind, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig};
use pelton_lab::sets;

use crate::support::servers::{Nginx, Python};
use crate::support::{
    assert_holds, builder, by_last_part, by_path, client, engine, file, names, policies,
    recursively, report_of, run, tree,
};

fn wanted() -> VirtualFile {
    VirtualFile::new("/f", 300_000, 1)
}

fn start() -> Origin {
    Origin::start(OriginConfig { files: vec![wanted()], ..OriginConfig::default() }).unwrap()
}

fn overwriting() -> Client {
    builder().engine(EngineConfig { overwrite: true, ..engine() }).build().unwrap()
}

fn spec(origin: &Origin) -> FileSpec {
    FileSpec::from_url(origin.url("/f").parse().unwrap()).unwrap()
}

fn digest_of(file: &VirtualFile) -> Digest {
    Digest { algorithm: DigestAlgorithm::Sha256, value: file.sha256().to_vec() }
}

/// Puts a file under the final name, as another program might.
fn place(directory: &Path, content: &[u8], modified: SystemTime) -> PathBuf {
    let path = directory.join("f");
    fs::write(&path, content).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    path
}

#[test]
fn a_second_run_fetches_nothing() {
    let files = sets::demo_mixed(1);
    let Some(nginx) = Nginx::start(&files) else { return };
    let out = tempfile::tempdir().unwrap();
    let client = client();
    let again = || {
        let download = client.download([nginx.http1()]).walk(recursively());
        run(download.into_dir(out.path()))
    };
    assert!(again().is_complete());
    let fetched = nginx.access_log().lines().filter(|line| line.contains(" GET ")).count();
    let report = again();
    assert!(report.is_complete());
    assert!(report.files.iter().all(|file| file.ok && file.already_there));
    assert_eq!(report.summary.bytes, 0);
    assert_eq!(report.summary.files_done, files.len() as u64);
    let listings = 4;
    let now = nginx.access_log().lines().filter(|line| line.contains(" GET ")).count();
    assert_eq!(now, fetched + listings);
    assert_holds(out.path(), &files, by_path);
}

#[test]
fn a_directory_may_be_named_without_its_slash() {
    let files = sets::demo_mixed(1);
    let Some(nginx) = Nginx::start(&files) else { return };
    let out = tempfile::tempdir().unwrap();
    let urls = ["image", by_path(&files[0])].map(|path| format!("{}{path}", nginx.http1()));
    let download = client().download(urls).walk(recursively()).into_dir(out.path());
    assert!(run(download).is_complete());
    let named: Vec<_> = files
        .iter()
        .filter(|file| file.path.starts_with("/image/"))
        .chain([&files[0]])
        .cloned()
        .collect();
    assert_holds(out.path(), &named, by_last_part);
}

#[test]
fn what_is_there_and_the_servers_is_kept() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let content = wanted().bytes(0..wanted().size);
    // File systems have finer times than HTTP.
    place(out.path(), &content, wanted().modified() + Duration::from_millis(300));
    let report = run(client().download([origin.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete());
    assert!(file(&report, "f").already_there);
    assert_eq!(file(&report, "f").bytes, wanted().size);
    assert_eq!(origin.bytes_sent(), 0);
}

#[test]
fn what_is_there_and_differs_is_kept_and_said() {
    let right = wanted().bytes(0..wanted().size);
    let day = Duration::from_secs(86_400);
    let modified = wanted().modified();
    for (what, content, modified) in [
        ("shorter", &right[1..], modified),
        ("older", &right[..], modified - day),
        ("newer", &right[..], modified + day),
        ("newer and shorter", b"mine".as_slice(), modified + day),
        ("empty", b"".as_slice(), modified),
    ] {
        let files = [wanted()];
        let origin = start();
        let nginx = Nginx::start(&files).map(|nginx| (nginx.http1(), Some(nginx)));
        let python = Python::start(&files).map(|python| (python.url(), Some(python)));
        let urls = [
            Some(origin.url("/f")),
            nginx.as_ref().map(|(url, _)| format!("{url}f")),
            python.as_ref().map(|(url, _)| format!("{url}f")),
        ];
        for url in urls.into_iter().flatten() {
            let out = tempfile::tempdir().unwrap();
            let path = place(out.path(), content, modified);
            let report = run(client().download([url.as_str()]).into_dir(out.path()));
            let error = file(&report, "f").error.clone().expect("it is no success");
            assert_eq!(error.kind, "exists", "{what} {url}: {}", error.message);
            assert_eq!(report.summary.exit_code, ErrorKind::Exists.exit_code());
            assert!(error.message.contains("`overwrite`"), "{}", error.message);
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
            assert_eq!(names(out.path()).len(), 1);

            let report = run(overwriting().download([url.as_str()]).into_dir(out.path()));
            assert!(report.is_complete(), "{what} {url}");
            assert_holds(out.path(), &files, by_last_part);
        }
    }
}

#[test]
fn a_size_alone_does_not_tell_that_a_file_need_not_be_replaced() {
    let right = wanted().bytes(0..wanted().size);
    let server = Scripted::start({
        let right = right.clone();
        move |_| Reply::status("200 OK").field("Content-Length", right.len()).body(right.clone())
    })
    .unwrap();
    for (client, expected) in [(client(), vec![0; right.len()]), (overwriting(), right.clone())] {
        let out = tempfile::tempdir().unwrap();
        let path = place(out.path(), &vec![0; right.len()], wanted().modified());
        assert!(run(client.download([server.url("/f")]).into_dir(out.path())).is_complete());
        assert!(fs::read(path).unwrap() == expected);
    }
    // Nor that it is the one whose digest is wanted.
    let mut spec = FileSpec::from_url(server.url("/f").parse().unwrap()).unwrap();
    spec.digest = Some(digest_of(&wanted()));
    let out = tempfile::tempdir().unwrap();
    let path = place(out.path(), &vec![0; right.len()], wanted().modified());
    let report = run(client().download([spec]).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::Exists.exit_code());
    assert!(fs::read(path).unwrap() != right);
}

#[cfg(target_os = "linux")]
#[test]
fn where_no_file_can_be_made_none_is_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let out = tempfile::tempdir().unwrap();
    fs::set_permissions(out.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(out.path().join("mine"), "").is_ok() {
        // Nothing is forbidden to a superuser.
        return;
    }
    let origin = start();
    let report = run(client().download([origin.url("/f")]).into_dir(out.path()));
    let message = &file(&report, "f").error.as_ref().unwrap().message;
    assert!(message.contains("can't be written to"), "{message}");
    assert_eq!(origin.requests(), 0);
}

#[test]
fn bytes_tell_where_the_server_tells_neither_size_nor_date() {
    let right = wanted().bytes(0..wanted().size);
    let server = Scripted::start({
        let right = right.clone();
        move |_| Reply::status("200 OK").field("ETag", "\"1\"").body(right.clone()).close()
    })
    .unwrap();
    let mut other = right.clone();
    other[100_000] ^= 1;
    for (there, is_same) in
        [(&right[..], true), (&other[..], false), (&right[1..], false), (b"".as_slice(), false)]
    {
        let out = tempfile::tempdir().unwrap();
        let path = place(out.path(), there, wanted().modified());
        let report = run(client().download([server.url("/f")]).into_dir(out.path()));
        assert_eq!(report.is_complete(), is_same, "{:?}", report.files);
        assert_eq!(fs::read(&path).unwrap(), there);
        assert_eq!(names(out.path()).len(), 1);
        if !is_same {
            assert_eq!(report.summary.exit_code, ErrorKind::Exists.exit_code());
            let message = &file(&report, "f").error.as_ref().unwrap().message;
            assert!(message.contains("exists with other bytes"), "{message}");
            assert!(
                run(overwriting().download([server.url("/f")]).into_dir(out.path())).is_complete()
            );
            assert_eq!(fs::read(&path).unwrap(), right);
        }
    }
}

#[test]
fn a_digest_tells_what_is_there() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let mut spec = spec(&origin);
    spec.digest = Some(digest_of(&wanted()));
    let report = run(client().download([spec.clone()]).into_dir(out.path()));
    assert!(report.is_complete());
    let hex = digest_of(&wanted()).to_string();
    assert_eq!(file(&report, "f").digest.as_deref(), Some(hex.as_str()));
    let sent = origin.requests();

    // The digest decides, not the date; the server need not be asked.
    place(out.path(), &wanted().bytes(0..wanted().size), SystemTime::now());
    let report = run(client().download([spec.clone()]).into_dir(out.path()));
    assert!(report.is_complete() && file(&report, "f").already_there);
    assert_eq!(origin.requests(), sent);

    // Another content of the same size and date.
    let other = VirtualFile::new("/f", wanted().size, 99);
    place(out.path(), &other.bytes(0..other.size), wanted().modified());
    let report = run(client().download([spec.clone()]).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::Exists.exit_code());
    let message = &file(&report, "f").error.as_ref().unwrap().message;
    assert!(message.contains("f exists with another digest than the one that is"), "{message}");
    let report = run(overwriting().download([spec]).into_dir(out.path()));
    assert!(report.is_complete());
    assert_holds(out.path(), &[wanted()], by_last_part);
}

#[test]
fn overwriting_keeps_the_old_file_until_the_new_one_is_whole() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let path = place(out.path(), b"old", SystemTime::now());
    let mut spec = spec(&origin);
    spec.digest = Some(digest_of(&VirtualFile::new("/f", 1, 1)));
    let report = run(overwriting().download([spec]).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::Checksum.exit_code());
    assert_eq!(fs::read(path).unwrap(), b"old");
    assert_eq!(names(out.path()).len(), 1);
}

#[test]
fn a_server_that_refuses_head_is_asked_with_get() {
    let origin = Scripted::start(|request| {
        let file = wanted();
        if request.head.starts_with("HEAD") {
            return Reply::status("405 Method Not Allowed").field("Content-Length", 0);
        }
        Reply::status("200 OK")
            .field("Content-Length", file.size)
            .field("Last-Modified", httpdate::fmt_http_date(file.modified()))
            .body(file.bytes(0..file.size))
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    place(out.path(), &wanted().bytes(0..wanted().size), wanted().modified());
    let report = run(client().download([origin.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete() && file(&report, "f").already_there, "{:?}", report.files);
}

#[test]
fn every_way_to_set_space_aside() {
    let files = sets::demo_mixed(2);
    for allocation in [Allocation::None, Allocation::Truncate, Allocation::Reserve] {
        for hide_length in [false, true] {
            let origin = Origin::start(OriginConfig {
                files: files.clone(),
                behaviour: OriginBehaviour { hide_length, ..OriginBehaviour::default() },
                ..OriginConfig::default()
            })
            .unwrap();
            let out = tempfile::tempdir().unwrap();
            let download = client().download([origin.url("/")]).walk(recursively());
            let report = run(download.allocation(allocation).fsync(true).into_dir(out.path()));
            assert!(report.is_complete());
            assert_holds(out.path(), &files, by_path);
        }
    }
}

#[test]
fn the_longest_names() {
    let name = format!("{}ä.bin", "n".repeat(249));
    let files = [VirtualFile::new(format!("/{name}"), 100_000, 1)];
    assert_eq!(name.len(), 255);
    let origin =
        Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() }).unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([origin.url("/")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert_holds(out.path(), &files, by_last_part);
}

/// A small file system of its own.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// Nothing where this user may not mount.
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "pelton-test"])
            .arg(directory.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: no tmpfs can be mounted by this user");
        }
        mounted.then(|| Self(directory))
    }

    fn grow(&self, size: &str) {
        let mut remount = Command::new("mount");
        remount.args(["-o", &format!("remount,size={size}")]).arg(self.0.path());
        assert!(remount.status().unwrap().success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk() {
    let files = [VirtualFile::new("/fits", 100_000, 1), VirtualFile::new("/large", 3_000_000, 2)];
    for allocation in [Allocation::None, Allocation::Reserve] {
        for (policy, builder) in policies() {
            let Some(disk) = Tmpfs::mount("1m") else { return };
            let origin =
                Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() })
                    .unwrap();
            let urls = files.iter().map(|file| origin.url(&file.path));
            let client = builder.build().unwrap();
            let out = disk.0.path().join("out");
            let report = run(client.download(urls).allocation(allocation).into_dir(&out));
            let error = file(&report, "large").error.clone().unwrap();
            assert_eq!(error.kind, "disk_full", "{policy}: {}", error.message);
            assert!(error.message.contains(out.to_str().unwrap()), "{}", error.message);
            assert!(!error.message.contains('\n'));
            assert_eq!(report.summary.exit_code, ErrorKind::DiskFull.exit_code());
            assert!(!names(&out).contains("large"), "{policy}");
            if allocation == Allocation::Reserve {
                assert_eq!(tree(&out).keys().collect::<Vec<_>>(), ["fits"], "{policy}");
            }
            // What is left of it must not keep a rerun with more room from its end.
            disk.grow("8m");
            let urls = files.iter().map(|file| origin.url(&file.path));
            let report = run(client.download(urls).into_dir(&out));
            assert!(report.is_complete(), "{policy}: {:?}", report.files);
            let is_kept = file(&report, "large").resumed_from > 0;
            assert_eq!(is_kept, allocation == Allocation::None, "{policy}");
            assert_holds(&out, &files, by_last_part);
        }
    }
}

#[test]
fn what_fills_a_disk_leaves_room_to_tell_that_it_is_there() {
    let Some(disk) = Tmpfs::mount("1m") else { return };
    let spec = FileSpec::from_url("http://h/large".parse().unwrap()).unwrap();
    let open = || DirectorySink::new(disk.0.path(), DirectoryOptions::default()).open(&spec);
    let (opened, mut output) = open();
    assert_eq!(opened, Opened::Fresh);
    output.set_size(3_000_000).unwrap();
    let blocks = (0..).map(|block| block * 4096);
    let end = blocks.take_while(|at| output.write_at(*at, &[1; 4096]).is_ok()).last().unwrap();
    let validator = Validator { etag: Some("\"v1\"".into()), ..Validator::default() };
    let done = vec![0..500_000, 600_000..end];
    output.abandon(Some(&Resumable { size: 3_000_000, validator, done }));
    let (opened, _output) = open();
    let Opened::Part(part) = opened else { panic!("{opened:?}") };
    assert_eq!(part.done[0], 0..500_000);
    assert!(part.done[1].start == 600_000 && part.done[1].end > end - 100_000, "{part:?}");
}

#[test]
fn a_full_disk_that_gets_space() {
    let files = [VirtualFile::new("/a", 900_000, 1), VirtualFile::new("/b", 3_000_000, 2)];
    for (policy, builder) in policies() {
        let Some(disk) = Tmpfs::mount("1m") else { return };
        let origin =
            Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() })
                .unwrap();
        let urls = files.iter().map(|file| origin.url(&file.path));
        let patient = EngineConfig { disk_patience: Duration::from_secs(60), ..engine() };
        let client = builder.engine(patient).build().unwrap();
        let mut job = client.download(urls).into_dir(disk.0.path()).start().unwrap();
        let mut events = job.events();
        let waiting = loop {
            match events.blocking_next().unwrap() {
                RunEvent::Waiting(waiting) => break waiting,
                RunEvent::Summary(summary) => panic!("{policy}: {summary:?}"),
                _ => {}
            }
        };
        assert!(waiting.reason.contains(disk.0.path().to_str().unwrap()), "{}", waiting.reason);
        assert!(waiting.bytes_free.unwrap() < waiting.bytes_needed, "{waiting:?}");
        disk.grow("8m");
        let report = report_of(job).map_err(|error| error.message()).unwrap();
        assert!(report.is_complete(), "{policy}: {:?}", report.files);
        assert_eq!(report.summary.retries, 0, "{policy}");
        assert_holds(disk.0.path(), &files, by_last_part);
    }
}

#[test]
fn space_that_can_not_be_reserved_is_told_by_the_size_of_the_file() {
    let Some(disk) = Tmpfs::mount("1m") else { return };
    let large = VirtualFile::new("/large", 3_000_000, 2);
    let origin =
        Origin::start(OriginConfig { files: vec![large], ..OriginConfig::default() }).unwrap();
    let patient = EngineConfig { disk_patience: Duration::from_secs(60), ..engine() };
    let client = builder().engine(patient).build().unwrap();
    let download = client.download([origin.url("/large")]).allocation(Allocation::Reserve);
    let mut job = download.into_dir(disk.0.path()).start().unwrap();
    let mut events = job.events();
    let waiting = loop {
        match events.blocking_next().unwrap() {
            RunEvent::Waiting(waiting) => break waiting,
            RunEvent::Summary(summary) => panic!("{summary:?}"),
            _ => {}
        }
    };
    assert_eq!(waiting.bytes_needed, 3_000_000, "{}", waiting.reason);
    job.cancel();
    report_of(job).unwrap();
}

/// Puts something at `path` that is no regular file.
#[cfg(unix)]
type Irregular = (&'static str, fn(&Path));

#[cfg(unix)]
const IRREGULAR: [Irregular; 4] = [
    ("a pipe", |path| {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }),
    ("a directory", |path| fs::create_dir(path).unwrap()),
    ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ("a link", |path| std::os::unix::fs::symlink("victim", path).unwrap()),
];

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_holds_up_its_own_file_alone() {
    let files = [VirtualFile::new("/f", 50_000, 1), VirtualFile::new("/g", 50_000, 2)];
    let origin =
        Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() }).unwrap();
    for (what, put) in IRREGULAR {
        for name in ["f.part", "f.part.state"] {
            for client in [client(), overwriting()] {
                let out = tempfile::tempdir().unwrap();
                fs::write(out.path().join("victim"), "untouched").unwrap();
                put(&out.path().join(name));
                let urls = files.iter().map(|file| origin.url(&file.path));
                let report = run(client.download(urls).into_dir(out.path()));
                let error = file(&report, "f").error.clone().unwrap();
                assert_eq!(error.kind, "exists", "{what} {name}: {}", error.message);
                let said = format!("{name}: something that is no regular file has this name");
                assert!(error.message.contains(&said), "{what}: {}", error.message);
                assert!(file(&report, "g").ok, "{what} {name}");
                assert_eq!(fs::read(out.path().join("victim")).unwrap(), b"untouched");
            }
        }
    }
}

/// After a run has looked.
#[cfg(unix)]
#[test]
fn what_comes_to_be_no_regular_file_is_not_written_to() {
    use pelton_core::sink::{DirectoryOptions, DirectorySink, Sink};
    for (what, put) in IRREGULAR {
        for name in ["f.part", "f.part.state"] {
            let out = tempfile::tempdir().unwrap();
            fs::write(out.path().join("victim"), "untouched").unwrap();
            let spec = FileSpec::from_url("http://h/f".parse().unwrap()).unwrap();
            let mut sink = DirectorySink::new(out.path(), DirectoryOptions::default());
            let (_, mut output) = sink.open(&spec);
            put(&out.path().join(name));
            let error = output.write_at(0, b"bytes").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "{what} {name}: {error}");
            let message = error.message();
            assert!(message.contains("something that is no regular file"), "{what}: {message}");
            assert_eq!(fs::read(out.path().join("victim")).unwrap(), b"untouched");
        }
    }
}

#[test]
fn a_directory_that_is_removed_during_a_run_is_made_again() {
    use pelton_core::sink::{DirectoryOptions, DirectorySink, Sink};
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut sink = DirectorySink::new(&out, DirectoryOptions::default());
    for name in ["e", "f"] {
        let spec = FileSpec::from_url(format!("http://h/{name}").parse().unwrap()).unwrap();
        let (_, mut output) = sink.open(&spec);
        output.write_at(0, b"bytes").unwrap();
        output.finish(None, None).unwrap();
        assert_eq!(fs::read(out.join(name)).unwrap(), b"bytes");
        fs::remove_dir_all(&out).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_in_a_circle_are_named_with_what_to_do() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("f", out.path().join("f")).unwrap();
    std::os::unix::fs::symlink("around", out.path().join("around")).unwrap();
    for directory in [out.path().to_owned(), out.path().join("around/below")] {
        let report = run(client().download([origin.url("/f")]).into_dir(&directory));
        let error = file(&report, "f").error.clone().unwrap();
        assert_eq!(error.kind, "file_io", "{}", error.message);
        let advice = "symbolic links lead in a circle there; remove one of them";
        assert!(error.message.contains(advice), "{}", error.message);
    }
}
