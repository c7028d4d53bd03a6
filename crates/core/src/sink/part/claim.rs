//! A part is one run's alone: who has its state locked, has both.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as IoKind};
use std::path::Path;

use super::PartFile;
use crate::sink::files::{
    claim, irregular, is_at, is_irregular, make_or_open, open_regular, shorten,
};
use crate::sink::io_failure;
use crate::{Error, ErrorKind, Result, journal};

impl PartFile {
    pub(super) fn opened(&mut self) -> Result<&File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.take_over()?,
        };
        Ok(self.file.insert(file))
    }

    /// Opens the part for this run alone.
    fn take_over(&mut self) -> Result<File> {
        // The state is there before the part and goes after it: who has it locked, has both.
        let had_state = journal::is_at(&self.state);
        let Some((lock, said)) = self.claim_state()? else {
            let part = self.part.display();
            let message = format!("{part}: another run is writing it; wait for its end");
            return Err(Error::new(ErrorKind::FileIo, message));
        };
        let opened = self.open_locked(said);
        match &opened {
            Ok(_) => self.lock = Some(lock),
            // A part that is there is another program's, and without a state it stays so.
            Err(_) if !had_state && said == 0 => drop(fs::remove_file(&self.state)),
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
    pub(super) fn opened_whole(&mut self) -> Result<&File> {
        let (end, part) = (self.end, self.part.clone());
        let file = self.opened()?;
        shorten(file, end).map_err(|error| io_failure(&part, "can't be cut to its size", error))?;
        Ok(file)
    }

    /// The file has its name: what is said of a part that is gone is of a run that was killed just then.
    pub(in crate::sink) fn forget_finished(&self) {
        if let Ok(Some(_lock)) = claim(OpenOptions::new().write(true), &self.state) {
            self.forget_without_part();
        }
    }

    /// Removes the state, which is locked, if there is no part.
    pub(super) fn forget_without_part(&self) {
        if fs::symlink_metadata(&self.part).is_err() {
            let _ = fs::remove_file(&self.state);
        }
    }

    /// Whether the part is another program's, as no state of pelton's is beside it. That of another run
    /// has none but when it is just ending, and then it is gone by now.
    pub(in crate::sink) fn is_foreign(&self) -> bool {
        match open_regular(OpenOptions::new().write(true), &self.part) {
            Ok(file) => {
                let is_there = file.metadata().is_ok_and(|found| is_at(&found, &self.part));
                !journal::is_at(&self.state) && is_there
            }
            Err(error) => error.kind() != IoKind::NotFound,
        }
    }
}

/// Why there is nothing of this run's at `path`.
fn not_made(path: &Path, error: io::Error) -> Error {
    if is_irregular(path) { irregular(path) } else { io_failure(path, "can't be made", error) }
}
