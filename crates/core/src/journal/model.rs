//! A journal in memory, for tests of what a rerun may trust.

use pelton_algos::ranges::FileRanges;

use super::missing;
use super::record::{Record, read};
use crate::engine::Resumable;

/// The bytes of a journal, written and read by the records' own code.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    /// As [`super::Journal`] does: begun anew for another version, else continued.
    pub(crate) fn append(&mut self, url: &str, boot: &str, part: &Resumable) {
        let continued = read(&self.0, Some(boot)).filter(|found| {
            found.url == url
                && (found.part.size, &found.part.validator) == (part.size, &part.validator)
        });
        let mut known = FileRanges::new(Some(part.size));
        let mut lines = String::new();
        if let Some(found) = continued {
            self.0.truncate(found.length as usize);
            found.part.done.into_iter().for_each(|range| known.mark_done(range));
        } else {
            self.0.clear();
            lines = Record::part(url, part).line();
        }
        lines += &Record::Boot { id: boot.to_owned() }.line();
        for range in part.done.iter().flat_map(|range| missing(&known, range)) {
            lines += &Record::Done { start: range.start, end: range.end }.line();
        }
        self.0.extend(lines.into_bytes());
    }

    /// The data was synced, by a process that has the journal open.
    pub(crate) fn sync(&mut self, boot: &str) {
        let Some(found) = read(&self.0, Some(boot)) else { return };
        self.0.truncate(found.length as usize);
        let boot = Record::Boot { id: boot.to_owned() }.line();
        self.0.extend((boot + &Record::Synced { ranges: found.ranges }.line()).into_bytes());
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Its last `bytes` are lost.
    pub(crate) fn tear(&mut self, bytes: usize) {
        self.0.truncate(self.0.len().saturating_sub(bytes));
    }

    /// What it is trusted for.
    pub(crate) fn trusted(&self, url: &str, boot: &str) -> Option<Resumable> {
        let found = read(&self.0, Some(boot)).filter(|found| found.url == url)?;
        Some(found.part).filter(|part| !part.done.is_empty())
    }
}
