//! Files that wait: a queue per size class and origin, so that an origin that has to be left alone
//! holds nobody else up.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use pelton_algos::cluster::SizeClass;
use pelton_algos::sizes::GroupId;
use pelton_algos::units::Bytes;

use super::OriginId;
use super::event::FileId;

/// Files of each group that come first, to learn their sizes.
const SAMPLES: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    queues: BTreeMap<(SizeClass, OriginId), Queue>,
    counts: [Count; 3],
    /// Files of each group that came first.
    samples: HashMap<(OriginId, GroupId), u32>,
}

/// Files of one class and origin, in the list's order but for samples, which come before others, and those that were
/// refused, by how often.
#[derive(Debug, Default)]
struct Queue {
    samples: VecDeque<FileId>,
    others: VecDeque<FileId>,
    refused: BTreeSet<(u32, FileId)>,
}

impl Queue {
    fn len(&self) -> usize {
        self.samples.len() + self.others.len() + self.refused.len()
    }

    fn all(self) -> impl Iterator<Item = FileId> {
        let refused = self.refused.into_iter().map(|(_, file)| file);
        self.samples.into_iter().chain(self.others).chain(refused)
    }

    fn pop(&mut self, refused_first: bool) -> Option<FileId> {
        let mut pop_refused = || self.refused.pop_last().map(|(_, file)| file);
        let refused = refused_first.then(&mut pop_refused).flatten();
        refused
            .or_else(|| self.samples.pop_front())
            .or_else(|| self.others.pop_front())
            .or_else(pop_refused)
    }
}

/// Files and bytes of one class that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Waiting {
    /// Adds a file of which `bytes` are still to come, and which was refused so many times. The first few of each `guessed`
    /// group, in which nobody has seen a size yet, come before all others.
    pub(super) fn push(
        &mut self,
        (class, origin): (SizeClass, OriginId),
        file: FileId,
        bytes: u64,
        guessed: Option<GroupId>,
        refused: u32,
    ) {
        let queue = self.queues.entry((class, origin)).or_default();
        let samples = guessed.map(|group| self.samples.entry((origin, group)).or_default());
        match samples {
            _ if refused > 0 => drop(queue.refused.insert((refused, file))),
            Some(samples) if *samples < SAMPLES => {
                *samples += 1;
                queue.samples.push_back(file);
            }
            _ => queue.others.push_back(file),
        }
        let count = &mut self.counts[class as usize];
        count.files += 1;
        count.bytes += bytes;
    }

    /// Origins with waiting files of `class`.
    pub(super) fn origins(&self, class: SizeClass) -> impl Iterator<Item = OriginId> + '_ {
        let range = (class, OriginId(0))..=(class, OriginId(u32::MAX));
        self.queues
            .range(range)
            .filter(|(_, queue)| queue.len() > 0)
            .map(|((_, origin), _)| *origin)
    }

    /// The next file of `class` and `origin`: one that was refused or another one. `bytes_of` tells what
    /// [`push`](Self::push) was told.
    pub(super) fn pop(
        &mut self,
        class: SizeClass,
        origin: OriginId,
        refused_first: bool,
        bytes_of: impl Fn(FileId) -> u64,
    ) -> Option<FileId> {
        let file = self.queues.get_mut(&(class, origin))?.pop(refused_first)?;
        let count = &mut self.counts[class as usize];
        count.files -= 1;
        count.bytes = count.bytes.saturating_sub(bytes_of(file));
        Some(file)
    }

    /// Takes out every file of `origin`.
    pub(super) fn drain_origin(
        &mut self,
        origin: OriginId,
        bytes_of: impl Fn(FileId) -> u64,
    ) -> Vec<FileId> {
        let mut files = Vec::new();
        for class in SizeClass::ALL {
            files.extend(std::iter::from_fn(|| self.pop(class, origin, false, &bytes_of)));
        }
        files
    }

    /// Takes out every file: to cluster them anew, or to give them up.
    pub(super) fn drain(&mut self) -> Vec<FileId> {
        self.counts = Default::default();
        self.samples.clear();
        let mut files: Vec<FileId> =
            std::mem::take(&mut self.queues).into_values().flat_map(Queue::all).collect();
        files.sort_unstable();
        files
    }

    pub(super) fn count(&self, class: SizeClass) -> Count {
        self.counts[class as usize]
    }

    pub(super) fn of_origin(&self, origin: OriginId) -> usize {
        SizeClass::ALL
            .iter()
            .filter_map(|class| self.queues.get(&(*class, origin)))
            .map(Queue::len)
            .sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.files == 0)
    }

    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.counts.iter().map(|count| count.bytes).sum())
    }
}
