//! A file in transfer: `NAME.part`, its journal, what it hashes to, and its final name.

mod damage;
mod held;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pelton_algos::ranges::ByteRange;

use super::directory::{Allocation, DirectoryOptions};
use super::files::{
    beside, claim, irregular, is_at, is_irregular, make_or_open, open_regular, reserve, shorten,
    write_all_at,
};
use super::hashing::Hashing;
use super::{Damage, Output, io_failure};
use crate::catalog::{Digest, FileSpec, Pieces};
use crate::connection::shown;
use crate::digest::hash_file;
use crate::engine::Resumable;
use crate::journal::{self, Journal};
use crate::{Error, ErrorKind, Result};

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
    /// Whether its bytes may stay in memory until all are there.
    may_hold: bool,
    /// Its bytes from the first on, as long as they are nowhere else.
    held: Option<Vec<u8>>,
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
            may_hold: false,
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

    fn opened(&mut self) -> Result<&File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.take_over()?,
        };
        Ok(self.file.insert(file))
    }

    /// Opens the part for this run alone.
    fn take_over(&mut self) -> Result<File> {
        // The state is there before the part and goes after it: who has it locked, has both.
        let Some((lock, said)) = self.claim_state()? else {
            let part = self.part.display();
            let message = format!("{part}: another run is writing it; wait for its end");
            return Err(Error::new(ErrorKind::FileIo, message));
        };
        let opened = self.open_locked(said);
        match &opened {
            Ok(_) => self.lock = Some(lock),
            Err(_) => self.forget_without_part(),
        }
        opened
    }

    /// The state, locked, and its length. `None` while another run has it.
    fn claim_state(&self) -> Result<Option<(File, u64)>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let mut claimed = claim(&mut options, &self.state);
        if let (Err(error), Some(parent)) = (&claimed, self.target.parent())
            && error.kind() == IoKind::NotFound
        {
            // The directory was removed since.
            claimed = fs::create_dir_all(parent).and_then(|()| claim(&mut options, &self.state));
        }
        claimed.map_err(|error| not_made(&self.state, error))
    }

    /// Opens the part, which is as it was found or gone: another run may have ended meanwhile. The state
    /// has the length `said`.
    fn open_locked(&self, said: u64) -> Result<File> {
        if !self.replaces && self.target.exists() {
            let target = self.target.display();
            let message =
                format!("{target}: another run has just finished it; run the command again");
            return Err(Error::new(ErrorKind::FileIo, message));
        }
        let failed = |error| not_made(&self.part, error);
        let Some(expected) = &self.continues else { return self.begin(said).map_err(failed) };
        let file = match open_regular(OpenOptions::new().write(true), &self.part) {
            Err(error) if error.kind() == IoKind::NotFound => None,
            opened => Some(opened.map_err(failed)?),
        };
        let is_as_found = |file: &File| {
            let length = file.metadata().map_or(0, |found| found.len());
            journal::load(&self.state, &self.url, length).as_ref() == Some(expected)
        };
        let file = file.filter(is_as_found).ok_or_else(|| {
            let part = self.part.display();
            let message = format!("{part}: another run has changed it; run the command again");
            Error::new(ErrorKind::CannotResume, message)
        })?;
        shorten(&file, expected.size).map_err(failed)?;
        Ok(file)
    }

    /// The part, empty. The state has the length `said`.
    fn begin(&self, said: u64) -> io::Result<File> {
        let (file, is_new) = make_or_open(&self.part)?;
        if said > 0 {
            // What an earlier run knew is not true of the part that begins here.
            journal::clear(&self.state)?;
        }
        if !is_new {
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Every byte is there: opens the part and cuts off what others have left behind the last one.
    fn opened_whole(&mut self) -> Result<&File> {
        let (end, part) = (self.end, self.part.clone());
        let file = self.opened()?;
        shorten(file, end).map_err(|error| io_failure(&part, "can't be cut to its size", error))?;
        Ok(file)
    }

    /// The file has its name: what is said of a part that is gone is of a run that was killed just then.
    pub(super) fn forget_finished(&self) {
        if let Ok(Some(_lock)) = claim(OpenOptions::new().write(true), &self.state) {
            self.forget_without_part();
        }
    }

    /// Removes the state, which is locked, if there is no part.
    fn forget_without_part(&self) {
        if fs::symlink_metadata(&self.part).is_err() {
            let _ = fs::remove_file(&self.state);
        }
    }

    /// Whether the part is another program's, as no state of pelton's is beside it. That of another run
    /// has none but when it is just ending, and then it is gone by now.
    pub(super) fn is_foreign(&self) -> bool {
        match open_regular(OpenOptions::new().write(true), &self.part) {
            Ok(file) => {
                let is_there = file.metadata().is_ok_and(|found| is_at(&found, &self.part));
                !journal::is_at(&self.state) && is_there
            }
            Err(error) => error.kind() != IoKind::NotFound,
        }
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

/// Why there is nothing of this run's at `path`.
fn not_made(path: &Path, error: io::Error) -> Error {
    if is_irregular(path) { irregular(path) } else { io_failure(path, "can't be made", error) }
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
        if let Some(held) = &mut self.held {
            held.clear();
        }
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
        self.held.is_none() && (self.is_promised() || self.options.fsync)
    }

    fn verify(&mut self) -> Result<Option<Damage>> {
        if self.holds_what_was_promised() {
            return Ok(None);
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
            // Nobody can use it, and on a full disk it is in the way.
            self.remove();
        }
    }
}
