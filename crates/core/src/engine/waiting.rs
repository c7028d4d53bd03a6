//! Files that wait: a queue per size class and origin, so that an origin that has to be left alone
//! holds nobody else up.

use std::collections::{BTreeMap, HashMap, VecDeque};

use pelton_algos::cluster::SizeClass;
use pelton_algos::units::Bytes;

use super::OriginId;
use super::event::FileId;
use super::file::Entry;

/// Files of each group that come first, to learn their sizes.
const SAMPLES: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    queues: BTreeMap<(SizeClass, OriginId), VecDeque<FileId>>,
    counts: [Count; 3],
}

/// Files and bytes of one class that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Waiting {
    pub(super) fn push(&mut self, class: SizeClass, origin: OriginId, file: FileId, bytes: u64) {
        self.queues.entry((class, origin)).or_default().push_back(file);
        let count = &mut self.counts[class as usize];
        count.files += 1;
        count.bytes += bytes;
    }

    /// The next file of `class` whose origin `may_start`. `bytes_of` tells what [`push`](Self::push)
    /// was told.
    pub(super) fn pop(
        &mut self,
        class: SizeClass,
        may_start: impl Fn(OriginId) -> bool,
        bytes_of: impl Fn(FileId) -> u64,
    ) -> Option<FileId> {
        let range = (class, OriginId(0))..=(class, OriginId(u32::MAX));
        let (_, queue) = self
            .queues
            .range_mut(range)
            .find(|((_, origin), queue)| !queue.is_empty() && may_start(*origin))?;
        let file = queue.pop_front()?;
        let count = &mut self.counts[class as usize];
        count.files -= 1;
        count.bytes = count.bytes.saturating_sub(bytes_of(file));
        Some(file)
    }

    /// Takes out every file: to cluster them anew, or to give up those of one origin.
    pub(super) fn drain(&mut self) -> Vec<FileId> {
        self.counts = Default::default();
        let mut files: Vec<FileId> =
            std::mem::take(&mut self.queues).into_values().flatten().collect();
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
            .map(VecDeque::len)
            .sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.files == 0)
    }

    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.counts.iter().map(|count| count.bytes).sum())
    }

    /// Moves a few files of each group whose sizes nobody has seen to the front.
    pub(super) fn put_samples_first(&mut self, files: &[Entry]) {
        for queue in self.queues.values_mut() {
            let mut seen = HashMap::<_, u32>::new();
            let (mut samples, mut others) = (VecDeque::new(), VecDeque::with_capacity(queue.len()));
            for file in queue.drain(..) {
                let entry = &files[file.index()];
                let taken = seen.entry(entry.group).or_default();
                if entry.size_is_guessed() && *taken < SAMPLES {
                    *taken += 1;
                    samples.push_back(file);
                } else {
                    others.push_back(file);
                }
            }
            samples.append(&mut others);
            *queue = samples;
        }
    }
}
