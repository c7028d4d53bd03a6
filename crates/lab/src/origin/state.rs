//! What all connections of an origin share.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::{LogEntry, OriginBehaviour, Storm};
use crate::content::VirtualFile;

/// A behaviour, and how often it has played its storm.
pub(super) struct Rules {
    pub(super) behaviour: OriginBehaviour,
    stormed: AtomicU64,
}

impl Rules {
    pub(super) fn new(behaviour: OriginBehaviour) -> Self {
        Self { behaviour, stormed: AtomicU64::new(0) }
    }

    /// The storm that this request runs into, if any.
    pub(super) fn next_of_storm(&self) -> Option<&Storm> {
        let storm = self.behaviour.storm.as_ref()?;
        (self.stormed.fetch_add(1, Ordering::Relaxed) < storm.requests).then_some(storm)
    }
}

/// Connections as counted by the accept loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Connections {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) open: u64,
    pub(super) peak: u64,
}

pub(super) struct State {
    files: RwLock<BTreeMap<String, VirtualFile>>,
    for_all: Rules,
    by_path: HashMap<String, Rules>,
    log: Mutex<Vec<LogEntry>>,
    connections: Mutex<Connections>,
    sent: Arc<AtomicU64>,
}

impl State {
    pub(super) fn new(
        files: Vec<VirtualFile>,
        for_all: OriginBehaviour,
        by_path: Vec<(String, OriginBehaviour)>,
    ) -> Self {
        let by_path = by_path.into_iter().map(|(path, rules)| (path, Rules::new(rules))).collect();
        Self {
            files: RwLock::new(files.into_iter().map(|file| (file.path.clone(), file)).collect()),
            for_all: Rules::new(for_all),
            by_path,
            log: Mutex::default(),
            connections: Mutex::default(),
            sent: Arc::default(),
        }
    }

    pub(super) fn rules(&self, path: &str) -> &Rules {
        self.by_path.get(path).unwrap_or(&self.for_all)
    }

    pub(super) fn files(&self) -> RwLockReadGuard<'_, BTreeMap<String, VirtualFile>> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, file: VirtualFile) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).insert(file.path.clone(), file);
    }

    pub(super) fn log(&self, entry: LogEntry) {
        self.entries().push(entry);
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, Vec<LogEntry>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.sent)
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Counts a connection as open until the result is dropped; nothing when `max` are open.
    pub(super) fn open(self: &Arc<Self>, max: Option<u64>) -> Option<OpenConnection> {
        let mut connections = self.connections();
        if max.is_some_and(|max| connections.open >= max) {
            connections.refused += 1;
            return None;
        }
        connections.accepted += 1;
        connections.open += 1;
        connections.peak = connections.peak.max(connections.open);
        Some(OpenConnection(Arc::clone(self)))
    }
}

/// A connection that is counted as open.
pub(super) struct OpenConnection(Arc<State>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections().open -= 1;
    }
}
