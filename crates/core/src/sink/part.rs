//! A file in transfer: `NAME.part`, its journal, what it hashes to, and its final name.

mod claim;
mod damage;
mod held;
mod same;

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use pelton_algos::ranges::ByteRange;

use held::Held;

use super::directory::{Allocation, DirectoryOptions};
use super::files::{beside, reserve, write_all_at};
use super::hashing::Hashing;
use super::unnamed::Place;
use super::{Damage, Output, io_failure};
use crate::Result;
use crate::catalog::{Digest, FileSpec, Pieces};
use crate::connection::shown;
use crate::digest::hash_file;
use crate::engine::Resumable;
use crate::journal::{self, Journal};

/// A journal of many ranges, in the blocks of any file system.
const ROOM_FOR_STATE: u64 = 64 * 1024;

#[derive(Debug)]
pub(super) struct PartFile {
    pub(super) target: PathBuf,
    pub(super) part: PathBuf,
    pub(super) state: PathBuf,
    pub(super) url: String,
    /// What the list says that it hashes to.
    digest: Option<Digest>,
    /// What the server says.
    expected: Option<Digest>,
    pieces: Option<Pieces>,
    /// The hash of what is there, where a digest is known.
    hashing: Option<Hashing>,
    options: DirectoryOptions,
    /// Where it goes, as long as its bytes may stay in memory until all are there.
    directory: Option<Place>,
    held: Option<Held>,
    /// Opened with the first byte: a file that fails before leaves nothing behind.
    file: Option<File>,
    /// The state, locked as long as the part is this run's.
    lock: Option<File>,
    /// The file that has the name was looked at, and is to be replaced if it is another one.
    pub(super) replaces: bool,
    /// What an earlier run left of it.
    continues: Option<Resumable>,
    /// The byte behind the last one that was written, by this run or the earlier one.
    end: u64,
    journal: Journaling,
}

#[derive(Debug)]
enum Journaling {
    /// There was nothing to say yet.
    Silent,
    On(Journal),
    /// It could not be written, or not on.
    Broken {
        /// Whether what it holds is of use.
        is_useful: bool,
    },
}

impl PartFile {
    /// The part of what will be at `target`.
    pub(super) fn new(target: PathBuf, spec: &FileSpec, options: DirectoryOptions) -> Self {
        let mut part = Self {
            part: beside(&target, ".part"),
            state: beside(&target, ".part.state"),
            target,
            url: shown(&spec.url),
            digest: spec.digest.clone(),
            expected: None,
            pieces: spec.pieces.clone(),
            hashing: None,
            options,
            directory: None,
            held: None,
            file: None,
            lock: None,
            replaces: false,
            continues: None,
            end: 0,
            journal: Journaling::Silent,
        };
        part.begin_hashing();
        part
    }

    /// An earlier run has left `part` of it.
    pub(super) fn go_on_with(&mut self, part: Resumable) {
        self.end = part.done.iter().map(|range| range.end).max().unwrap_or(0);
        self.continues = Some(part);
        self.begin_hashing();
    }

    fn promised(&self) -> Option<&Digest> {
        self.digest.as_ref().or(self.expected.as_ref())
    }

    /// Whether something says what the bytes are to be.
    fn is_promised(&self) -> bool {
        self.promised().is_some() || self.pieces.is_some()
    }

    /// Hashes from now on what is there and what comes.
    fn begin_hashing(&mut self) {
        let promised = self.promised().map(|digest| digest.algorithm);
        self.hashing = promised.map(|algorithm| Hashing::new(self.part.clone(), algorithm));
        if let (Some(hashing), Some(part)) = (&mut self.hashing, &self.continues) {
            part.done.iter().for_each(|range| hashing.wrote(range.clone()));
        }
    }

    fn write_to_part(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let written = write_all_at(self.opened()?, offset, data);
        written.map_err(|error| io_failure(&self.part, "can't be written", error))?;
        self.end = self.end.max(offset + data.len() as u64);
        Ok(())
    }

    fn complete(&mut self, modified: Option<SystemTime>) -> Result<()> {
        let (fsync, part) = (self.options.fsync, self.part.clone());
        let file = self.opened_whole()?;
        if let Some(modified) = modified {
            // A file system without times is no reason to fail.
            let _ = file.set_modified(modified);
        }
        if fsync && let Err(error) = file.sync_all() {
            // What of it the disk has lost can't be told: nothing of it is continued.
            let _ = fs::remove_file(&part);
            return Err(io_failure(&part, "can't be synced", error));
        }
        fs::rename(&self.part, &self.target)
            .map_err(|error| io_failure(&self.target, "can't be given its name", error))?;
        if let Some(directory) = self.target.parent().filter(|_| fsync) {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| io_failure(directory, "can't be synced", error))?;
        }
        Ok(())
    }

    /// Appends what is new of `part` to the journal.
    fn record(&mut self, part: &Resumable) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| self.options.resume) else { return Ok(()) };
        // After a disk that was full it may be written again.
        if !matches!(self.journal, Journaling::On(_)) {
            self.journal = Journaling::On(Journal::open(&self.state, &self.url, part)?);
        }
        if let Journaling::On(journal) = &mut self.journal {
            journal.append(part)?;
            journal.sync_sometimes(file)?;
        }
        Ok(())
    }

    /// The disk has no room for what says that `part` is there: the end of the part gives it some.
    fn make_room_for_state(&mut self, part: &Resumable) {
        let length = self.end.saturating_sub(ROOM_FOR_STATE);
        let kept = part.shortened_to(length);
        let is_shorter = |file: &File| file.set_len(length).is_ok();
        if !kept.done.is_empty() && self.file.as_ref().is_some_and(is_shorter) {
            self.checkpoint(&kept);
        }
    }

    /// Whether a rerun can continue the part by its journal.
    fn has_state(&self) -> bool {
        let says_something = match &self.journal {
            Journaling::Silent => false,
            Journaling::On(journal) => !journal.is_empty(),
            Journaling::Broken { is_useful } => *is_useful,
        };
        self.continues.is_some() || says_something
    }

    /// The file is whole and could not be finished. `part` is what a rerun can do that with.
    fn keep_whole(&mut self, part: Option<&Resumable>) {
        if let Some(part) = part {
            self.checkpoint(part);
        }
        // It may have its name already.
        self.forget_without_part();
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.state);
    }
}

impl Output for PartFile {
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        if self.hold(offset, data) {
            return Ok(());
        }
        self.spill()?;
        self.write_to_part(offset, data)
    }

    fn file(&mut self) -> Result<Option<&File>> {
        if self.held.is_some() {
            return Ok(None);
        }
        self.opened().map(Some)
    }

    fn wrote(&mut self, range: ByteRange) {
        self.end = self.end.max(range.end);
        if let Some(hashing) = &mut self.hashing {
            hashing.wrote(range);
        }
    }

    fn expect(&mut self, digest: &Digest) {
        if self.promised().is_none() {
            self.expected = Some(digest.clone());
            self.begin_hashing();
        }
    }

    fn set_size(&mut self, size: u64) -> Result<()> {
        self.hold_if_short(size);
        let allocation = self.options.allocation;
        if self.held.is_some() || allocation == Allocation::None {
            return Ok(());
        }
        let part = self.part.clone();
        let file = self.opened()?;
        let set = match allocation {
            Allocation::Reserve => reserve(file, size),
            _ => file.set_len(size),
        };
        set.map_err(|error| io_failure(&part, "can't be made as long as it will be", error))
    }

    fn checkpoint(&mut self, part: &Resumable) {
        if self.held.is_some() {
            return;
        }
        if let Err(error) = self.record(part) {
            let is_useful = self.has_state();
            self.journal = Journaling::Broken { is_useful };
            tracing::warn!(
                state = %self.state.display(), %error,
                "a rerun can't continue this file from here"
            );
        }
    }

    fn restart(&mut self) -> Result<()> {
        (self.journal, self.continues, self.expected) = (Journaling::Silent, None, None);
        self.end = 0;
        self.begin_hashing();
        self.forget_held();
        // What is not opened yet is emptied then, and until then it may be another run's.
        let Some(file) = &self.file else { return Ok(()) };
        journal::clear(&self.state)
            .map_err(|error| io_failure(&self.state, "can't be emptied", error))?;
        file.set_len(0).map_err(|error| io_failure(&self.part, "can't be emptied", error))
    }

    fn verify_existing(&self) -> Result<bool> {
        let is_right = match (&self.digest, &self.pieces) {
            (Some(expected), _) => {
                hash_file(&self.target, expected.algorithm).map(|actual| actual == expected.value)
            }
            (None, Some(_)) => self.wrong_pieces(&self.target).map(|wrong| wrong.is_empty()),
            (None, None) => Ok(false),
        };
        is_right.map_err(|error| io_failure(&self.target, "can't be read", error))
    }

    fn finish_takes_long(&self) -> bool {
        self.compares() || self.held.is_none() && (self.is_promised() || self.options.fsync)
    }

    fn verify(&mut self) -> Result<Option<Damage>> {
        if self.holds_what_was_promised() {
            return self.make_ready_for_name().map(|()| None);
        }
        self.spill()?;
        if !self.is_promised() {
            self.opened()?;
            return Ok(None);
        }
        self.opened_whole()?;
        self.damage().map_err(|error| io_failure(&self.part, "can't be read", error))
    }

    fn finish(
        mut self: Box<Self>,
        modified: Option<SystemTime>,
        part: Option<&Resumable>,
    ) -> Result<()> {
        if self.compares() && self.target.exists() {
            return self.keep_if_same();
        }
        let finished = match self.name_what_is_held(modified) {
            Ok(true) => return Ok(()),
            Ok(false) => self.complete(modified),
            Err(error) => Err(error),
        };
        match &finished {
            Ok(()) => {
                let _ = fs::remove_file(&self.state);
            }
            Err(_) if self.file.is_some() => self.keep_whole(part),
            // It is another run's.
            Err(_) => {}
        }
        finished
    }

    fn abandon(mut self: Box<Self>, part: Option<&Resumable>) {
        let part = part.filter(|_| self.options.resume);
        // What can't be written is lost, as if it had not come.
        let is_kept = part.is_none() || self.spill().is_ok();
        if self.file.is_none() {
            // What may be there is not this run's.
            return;
        }
        let Some(part) = part.filter(|_| is_kept) else {
            self.remove();
            return;
        };
        self.checkpoint(part);
        if !self.has_state() {
            self.make_room_for_state(part);
        }
        if !self.has_state() {
            // Nobody can use it, and on a full disk it is in the way.
            self.remove();
        }
    }
}
