//! Runs of this process that write into a directory. One that was cancelled, or dropped, still keeps what a later run goes
//! on from when its caller has long turned to that.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// A cancelled run is waited for no longer: what it has not kept by then fails by itself.
const PATIENCE: Duration = Duration::from_secs(30);

static RUNS: Mutex<Vec<Run>> = Mutex::new(Vec::new());

/// Whether a run was cancelled, as its caller knows at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct Run {
    directory: PathBuf,
    cancelled: Cancelled,
    /// Closed when it is over.
    over: watch::Receiver<()>,
}

/// A run is in its directory as long as this is there.
pub(crate) struct Occupied {
    _over: watch::Sender<()>,
}

impl Occupied {
    /// A run enters `directory`, once those have left it that were cancelled.
    pub(crate) async fn enter(directory: &Path, cancelled: Cancelled) -> Self {
        let leaving = async {
            while let Some(mut over) = leaving(directory) {
                // It fails when the other side is gone.
                while over.changed().await.is_ok() {}
            }
        };
        // Whoever does not leave in time is met file by file.
        let _ = tokio::time::timeout(PATIENCE, leaving).await;
        let (sender, over) = watch::channel(());
        let directory = directory.to_owned();
        runs(|runs| runs.push(Run { directory, cancelled, over }));
        Self { _over: sender }
    }
}

/// The end of a cancelled run that is still in `directory`, below it or above it.
fn leaving(directory: &Path) -> Option<watch::Receiver<()>> {
    // Where it is not there nobody is in it.
    let directory = directory.canonicalize().ok()?;
    let is_in = |run: &&Run| {
        run.cancelled.is_set()
            && run
                .directory
                .canonicalize()
                .is_ok_and(|other| other.starts_with(&directory) || directory.starts_with(&other))
    };
    runs(|runs| runs.iter().find(is_in).map(|run| run.over.clone()))
}

fn runs<T>(with: impl FnOnce(&mut Vec<Run>) -> T) -> T {
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    runs.retain(|run| run.over.has_changed().is_ok());
    with(&mut runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    }

    #[test]
    fn who_was_cancelled_is_waited_for_and_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        runtime().block_on(async {
            let cancelled = Cancelled::default();
            let first = Occupied::enter(path, cancelled.clone()).await;
            let beside = Occupied::enter(path, Cancelled::default()).await;
            cancelled.set();
            let below = path.join("below");
            let elsewhere = tempfile::tempdir().unwrap();
            drop(Occupied::enter(elsewhere.path(), Cancelled::default()).await);
            drop(Occupied::enter(&below, Cancelled::default()).await);
            std::fs::create_dir(&below).unwrap();
            let (below, path) = (Occupied::enter(&below, Cancelled::default()), path.to_owned());
            let mut next = Box::pin(below);
            let mut further = Box::pin(Occupied::enter(&path, Cancelled::default()));
            tokio::select! {
                biased;
                _ = &mut next => panic!("the first one is there"),
                _ = &mut further => panic!("the first one is there"),
                () = tokio::task::yield_now() => drop(first),
            }
            drop((next.await, further.await, beside));
        });
    }

    #[test]
    fn who_never_leaves_is_not_waited_for_forever() {
        let directory = tempfile::tempdir().unwrap();
        runtime().block_on(async {
            let cancelled = Cancelled::default();
            let _first = Occupied::enter(directory.path(), cancelled.clone()).await;
            cancelled.set();
            let before = tokio::time::Instant::now();
            drop(Occupied::enter(directory.path(), Cancelled::default()).await);
            assert_eq!(before.elapsed(), PATIENCE);
        });
    }
}
