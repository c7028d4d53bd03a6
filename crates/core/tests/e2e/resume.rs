//! Runs that stop before their end, and runs that go on where one stopped.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::connection::TcpConnector;
use pelton_core::events::Progress;
use pelton_core::sink::Allocation;
use pelton_core::{Client, ErrorKind, Events, Job, Report, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig};
use pelton_lab::shaper::ShapedConnector;

use crate::support::{
    assert_holds, builder, by_last_part, client, engine, file, four_by_four, names, policies,
    report_of, run,
};

const LARGE: u64 = 4_000_000;

fn large() -> VirtualFile {
    VirtualFile::new("/large", LARGE, 1)
}

/// Small files and one that takes eight seconds over [`slow_link`].
fn files() -> Vec<VirtualFile> {
    let small = (0..10).map(|i| VirtualFile::new(format!("/small-{i}"), 5_000 + i, i + 10));
    small.chain([large()]).collect()
}

fn start(files: &[VirtualFile]) -> Origin {
    Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() }).unwrap()
}

fn urls(origin: &Origin, files: &[VirtualFile]) -> Vec<String> {
    files.iter().map(|file| origin.url(&file.path)).collect()
}

/// 4 Mbit/s: slow enough to stop a run while it is under way.
fn slow_link() -> Arc<ShapedConnector<TcpConnector>> {
    let link = Link { rate: BitRate::from_mbps(4.0), rtt: Duration::from_millis(4), ..Link::lan() };
    Arc::new(ShapedConnector::new(link, TcpConnector::default()))
}

fn slow_client() -> Client {
    builder().policy(four_by_four()).connector(slow_link()).build().unwrap()
}

/// The next progress event that `holds`.
fn wait_for(events: &mut Events, mut holds: impl FnMut(&Progress) -> bool) -> Progress {
    loop {
        match events.blocking_next() {
            Some(RunEvent::Progress(progress)) if holds(&progress) => return progress,
            Some(RunEvent::Summary(summary)) => panic!("over too early: {summary:?}"),
            Some(_) => {}
            None => panic!("no more events"),
        }
    }
}

/// Starts a run, stops it while the large file is under way, and returns its report.
fn stop_midway(client: &Client, urls: Vec<String>, out: &Path, stop: impl Fn(&Job)) -> Report {
    let mut job = client.download(urls).into_dir(out).start().unwrap();
    let mut events = job.events();
    wait_for(&mut events, |progress| progress.bytes > 600_000);
    stop(&job);
    report_of(job).unwrap()
}

fn fetches(origin: &Origin, path: &str) -> usize {
    origin.log().iter().filter(|entry| entry.method == Method::GET && entry.path == path).count()
}

#[test]
fn a_cancelled_run_is_continued() {
    for (policy, builder) in policies() {
        let files = files();
        let origin = start(&files);
        let out = tempfile::tempdir().unwrap();
        let slow = builder.connector(slow_link()).build().unwrap();
        let first = stop_midway(&slow, urls(&origin, &files), out.path(), Job::cancel);
        assert_eq!(first.summary.exit_code, ErrorKind::Cancelled.exit_code(), "{policy}");
        let stopped = file(&first, "large");
        assert_eq!(stopped.error.as_ref().unwrap().kind, "cancelled");
        assert!(stopped.bytes > 0 && stopped.bytes < LARGE);
        assert!(!names(out.path()).contains("large"));
        assert!(first.summary.files_done > 0, "{policy}");

        let asked_before: Vec<usize> = files.iter().map(|f| fetches(&origin, &f.path)).collect();
        let second = run(client().download(urls(&origin, &files)).into_dir(out.path()));
        assert!(second.is_complete(), "{policy}: {:?}", second.files);
        let continued = file(&second, "large");
        assert_eq!(continued.resumed_from, stopped.bytes, "{policy}");
        for (wanted, asked_before) in files.iter().zip(asked_before) {
            let complete = first.files.iter().any(|f| f.ok && f.name == by_last_part(wanted));
            let again = file(&second, by_last_part(wanted));
            assert_eq!(again.already_there, complete, "{policy}");
            if complete {
                assert_eq!(fetches(&origin, &wanted.path), asked_before, "{policy}");
            }
        }
        let missing: u64 = second.files.iter().filter(|f| !f.already_there).map(|f| f.bytes).sum();
        assert_eq!(second.summary.bytes, missing - stopped.bytes, "{policy}: no byte twice");
        assert_holds(out.path(), &files, by_last_part);
    }
}

#[test]
fn a_run_cancelled_twice_is_continued() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let urls = urls(&origin, &[large()]);
    let first = stop_midway(&slow_client(), urls.clone(), out.path(), Job::cancel);
    let second = stop_midway(&slow_client(), urls.clone(), out.path(), Job::cancel);
    assert_eq!(file(&second, "large").resumed_from, file(&first, "large").bytes);
    assert!(file(&second, "large").bytes > file(&first, "large").bytes);
    let third = run(client().download(urls).into_dir(out.path()));
    assert_eq!(file(&third, "large").resumed_from, file(&second, "large").bytes);
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn a_part_of_another_version_is_not_continued() {
    for new in [VirtualFile::new("/large", LARGE, 2), VirtualFile::new("/large", 50_000, 3)] {
        let origin = start(&[large()]);
        let out = tempfile::tempdir().unwrap();
        let urls = urls(&origin, &[large()]);
        stop_midway(&slow_client(), urls.clone(), out.path(), Job::cancel);
        origin.put(new.clone());
        let report = run(client().download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert_holds(out.path(), &[new], by_last_part);
    }
}

#[test]
fn a_part_whose_state_is_torn_or_empty_starts_anew() {
    for spoil in [
        (|path: &Path| fs::write(path, b"").unwrap()) as fn(&Path),
        |path| fs::File::options().write(true).open(path).unwrap().set_len(30).unwrap(),
        |path| fs::write(path.with_extension(""), b"short").unwrap(),
    ] {
        let origin = start(&[large()]);
        let out = tempfile::tempdir().unwrap();
        let urls = urls(&origin, &[large()]);
        stop_midway(&slow_client(), urls.clone(), out.path(), Job::cancel);
        assert_eq!(names(out.path()).len(), 2, "a part and its state");
        spoil(&out.path().join("large.part.state"));
        let report = run(client().download(urls).into_dir(out.path()));
        assert_eq!(file(&report, "large").resumed_from, 0);
        assert_eq!(file(&report, "large").restarts, 1, "what is thrown away is told");
        assert_holds(out.path(), &[large()], by_last_part);
    }
}

#[test]
fn a_part_that_became_longer_than_the_file_is_cut() {
    let size = 1_000_000;
    let wanted = [VirtualFile::new("/large", size, 1)];
    let one_by_one = Fixed::new(FixedConfig { concurrency: 1, parallelism: 1, pipelining: 1 });
    for allocation in [Allocation::None, Allocation::Truncate, Allocation::Reserve] {
        for builder in [builder().policy(one_by_one), builder().policy(four_by_four())] {
            let origin = start(&wanted);
            let out = tempfile::tempdir().unwrap();
            let (urls, client) = (urls(&origin, &wanted), builder.build().unwrap());
            stop_midway(&slow_client(), urls.clone(), out.path(), Job::cancel);
            let part = out.path().join("large.part");
            let mut part = fs::File::options().append(true).open(part).unwrap();
            part.write_all(&vec![b'x'; 2 * size as usize]).unwrap();
            let report = run(client.download(urls).allocation(allocation).into_dir(out.path()));
            assert!(report.is_complete(), "{:?}", report.files);
            assert!(file(&report, "large").resumed_from > 0);
            assert_holds(out.path(), &wanted, by_last_part);
        }
    }
}

#[test]
fn nothing_is_left_or_taken_up_without_resuming() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let urls = urls(&origin, &[large()]);
    stop_midway(&slow_client(), urls.clone(), out.path(), Job::cancel);
    let download = client().download(urls.clone()).resume(false);
    let report = run(download.into_dir(out.path()));
    assert_eq!(file(&report, "large").resumed_from, 0);
    assert_holds(out.path(), &[large()], by_last_part);

    let out = tempfile::tempdir().unwrap();
    let download = slow_client().download(urls).resume(false);
    let mut job = download.into_dir(out.path()).start().unwrap();
    wait_for(&mut job.events(), |progress| progress.bytes > 100_000);
    job.cancel();
    report_of(job).unwrap();
    assert!(names(out.path()).is_empty());
}

#[test]
fn a_dropped_job_is_cancelled() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let urls = urls(&origin, &[large()]);
    let mut job = slow_client().download(urls.clone()).into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    wait_for(&mut events, |progress| progress.bytes > 100_000);
    drop(job);
    let told: Vec<RunEvent> = std::iter::from_fn(|| events.blocking_next()).collect();
    let Some(RunEvent::Summary(summary)) = told.last() else { panic!("{told:?}") };
    assert_eq!(summary.exit_code, ErrorKind::Cancelled.exit_code());
    let report = run(client().download(urls).into_dir(out.path()));
    assert!(file(&report, "large").resumed_from > 0);
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn a_run_that_follows_a_dropped_one_at_once_goes_on_from_what_it_keeps() {
    let origin = start(&files());
    let urls = urls(&origin, &files());
    for bytes in [0, 20_000, 100_000] {
        let out = tempfile::tempdir().unwrap();
        let mut job = slow_client().download(urls.clone()).into_dir(out.path()).start().unwrap();
        wait_for(&mut job.events(), |progress| progress.bytes > bytes);
        drop(job);
        let report = run(client().download(urls.clone()).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.failed);
        assert_holds(out.path(), &files(), by_last_part);
    }
}

#[test]
fn a_run_cancelled_before_it_begins() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let job = client().download(urls(&origin, &[large()])).into_dir(out.path()).start().unwrap();
    job.cancel();
    if let Ok(report) = report_of(job) {
        assert_eq!(report.summary.exit_code, ErrorKind::Cancelled.exit_code());
    }
    assert!(!names(out.path()).contains("large"));
}

#[test]
fn pausing_stops_the_bytes_and_resuming_brings_the_rest() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let link = Link { rate: BitRate::from_mbps(16.0), ..*slow_link().link() };
    let connector = Arc::new(ShapedConnector::new(link, TcpConnector::default()));
    let client = builder().policy(four_by_four()).connector(connector).build().unwrap();
    let download = client.download(urls(&origin, &[large()]));
    let mut job = download.into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    wait_for(&mut events, |progress| progress.bytes > 0);
    job.pause();
    let still = |progress: &Progress| progress.clusters.iter().all(|c| c.active_streams == 0);
    let paused = wait_for(&mut events, still);
    let later = wait_for(&mut events, |_| true);
    assert_eq!(paused.bytes, later.bytes);
    assert!(still(&later) && later.bytes < LARGE);
    job.resume();
    let report = report_of(job).unwrap();
    assert!(report.is_complete());
    assert_eq!(report.summary.bytes, LARGE, "no byte twice");
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn a_run_that_is_paused_while_its_list_is_read_asks_for_no_file() {
    let short = VirtualFile::new("/short", 50_000, 1);
    let origin = start(std::slice::from_ref(&short));
    let out = tempfile::tempdir().unwrap();
    let download = slow_client().download([origin.url("/")]);
    let mut job = download.into_dir(out.path()).start().unwrap();
    job.pause();
    let mut events = job.events();
    wait_for(&mut events, |progress| progress.files == 1);
    assert_eq!(wait_for(&mut events, |_| true).bytes, 0);
    assert_eq!(fetches(&origin, "/short"), 0);
    job.resume();
    assert!(report_of(job).unwrap().is_complete());
    assert_holds(out.path(), &[short], by_last_part);
}

#[test]
fn a_file_that_changes_while_paused_comes_in_its_new_version() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let link = Link { rate: BitRate::from_mbps(16.0), ..*slow_link().link() };
    let connector = Arc::new(ShapedConnector::new(link, TcpConnector::default()));
    let client = builder().policy(four_by_four()).connector(connector).build().unwrap();
    let download = client.download(urls(&origin, &[large()]));
    let mut job = download.into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    wait_for(&mut events, |progress| progress.bytes > 0);
    job.pause();
    wait_for(&mut events, |progress| progress.clusters.iter().all(|c| c.active_streams == 0));
    let new = VirtualFile::new("/large", 1_500_000, 2);
    origin.put(new.clone());
    job.resume();
    let report = report_of(job).unwrap();
    assert!(report.is_complete(), "{:?}", report.files);
    assert_eq!(file(&report, "large").bytes, new.size);
    assert_holds(out.path(), &[new], by_last_part);
}

#[test]
fn ceilings_change_while_a_run_is_under_way() {
    let rate_per_connection = Some(BitRate::from_mbps(8.0));
    let origin = Origin::start(OriginConfig {
        files: vec![large()],
        behaviour: OriginBehaviour { rate_per_connection, ..OriginBehaviour::default() },
        ..OriginConfig::default()
    })
    .unwrap();
    let mut config = engine();
    config.limits.max_connections_per_origin = 1;
    let client = builder().policy(four_by_four()).engine(config).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let download = client.download(urls(&origin, &[large()]));
    let mut job = download.into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    wait_for(&mut events, |progress| progress.bytes > 0);
    assert_eq!(origin.peak_connections(), 1);
    config.limits.max_connections_per_origin = 3;
    config.limits.split_floor = Some(Bytes::kib(64));
    job.set_limits(config.limits);
    let report = report_of(job).unwrap();
    assert!(report.is_complete());
    assert!(origin.peak_connections() > 1);
    let told = std::iter::from_fn(|| events.blocking_next());
    let connections = told.filter_map(|event| match event {
        RunEvent::Progress(progress) => Some(progress.connections),
        _ => None,
    });
    assert!(connections.max().is_none_or(|most| most <= 3));
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn two_runs_in_one_directory_do_no_harm() {
    let origin = start(&[large()]);
    let out = tempfile::tempdir().unwrap();
    let urls = urls(&origin, &[large()]);
    let link = Link { rate: BitRate::from_mbps(16.0), ..*slow_link().link() };
    let connector = Arc::new(ShapedConnector::new(link, TcpConnector::default()));
    let slow = builder().connector(connector).build().unwrap();
    let mut first = slow.download(urls.clone()).into_dir(out.path()).start().unwrap();
    let mut events = first.events();
    wait_for(&mut events, |progress| progress.bytes > 0);
    let second = run(client().download(urls.clone()).into_dir(out.path()));
    let error = file(&second, "large").error.clone().unwrap();
    assert_eq!(error.kind, "file_io");
    assert!(error.message.contains("another run"), "{}", error.message);
    assert!(report_of(first).unwrap().is_complete());
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn many_runs_at_once_leave_whole_files() {
    let files = files();
    let origin = start(&files);
    let out = tempfile::tempdir().unwrap();
    let jobs: Vec<Job> = (0..4)
        .map(|_| client().download(urls(&origin, &files)).into_dir(out.path()).start().unwrap())
        .collect();
    for job in jobs {
        let report = report_of(job).unwrap();
        for file in report.files.iter().filter_map(|file| file.error.as_ref()) {
            assert!(file.message.contains("another run"), "{}", file.message);
        }
    }
    run(client().download(urls(&origin, &files)).into_dir(out.path()));
    assert_holds(out.path(), &files, by_last_part);
}

#[test]
fn a_part_of_another_program_is_kept_unless_overwritten() {
    let file = VirtualFile::new("/f", 50_000, 1);
    let origin =
        Origin::start(OriginConfig { files: vec![file.clone()], ..OriginConfig::default() })
            .unwrap();
    let out = tempfile::tempdir().unwrap();
    let part = out.path().join("f.part");
    let state = out.path().join("f.part.state");
    std::fs::write(&part, "somebody else's").unwrap();
    for (resume, beside) in [(true, None), (false, None), (true, Some("his, too"))] {
        if let Some(beside) = beside {
            std::fs::write(&state, beside).unwrap();
        }
        let download = client().download([origin.url("/f")]).into_dir(out.path());
        let report = run(download.resume(resume));
        assert_eq!(report.summary.exit_code, 13);
        let message = &report.files[0].error.as_ref().unwrap().message;
        assert!(message.contains("f.part: another program's"), "{message}");
        assert_eq!(std::fs::read(&part).unwrap(), b"somebody else's");
    }
    assert_eq!(origin.requests(), 0);
    let mut engine = engine();
    engine.overwrite = true;
    let client = builder().engine(engine).build().unwrap();
    assert!(run(client.download([origin.url("/f")]).into_dir(out.path())).is_complete());
    assert_eq!(names(out.path()), ["f".to_owned()].into());

    // What a run of pelton's own left when it was killed is told from that.
    std::fs::remove_file(out.path().join("f")).unwrap();
    std::fs::write(&part, "half").unwrap();
    std::fs::write(out.path().join("f.part.state"), "").unwrap();
    assert!(
        run(crate::support::client().download([origin.url("/f")]).into_dir(out.path()))
            .is_complete()
    );
    assert_eq!(crate::support::tree(out.path())["f"], file.bytes(0..file.size));
}

#[test]
fn a_run_that_was_killed_behind_the_last_rename_leaves_nothing_for_long() {
    let file = VirtualFile::new("/f", 100_000, 1);
    let origin =
        Origin::start(OriginConfig { files: vec![file.clone()], ..OriginConfig::default() })
            .unwrap();
    let out = tempfile::tempdir().unwrap();
    let get = || run(client().download([origin.url("/f")]).into_dir(out.path()));
    assert!(get().is_complete());
    fs::write(out.path().join("f.part.state"), "what was said of the part").unwrap();
    assert!(get().is_complete());
    assert_eq!(names(out.path()), ["f".to_owned()].into());
    // Beside a part it is that of a run under way.
    fs::write(out.path().join("f.part"), "").unwrap();
    fs::write(out.path().join("f.part.state"), "").unwrap();
    assert!(get().is_complete());
    assert!(out.path().join("f.part.state").exists());
}
