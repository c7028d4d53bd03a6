//! The origin memory: what runs have learnt of servers, in a small file that later runs start from.
//!
//! It holds scheme, host and port of each origin and nothing else of a URL, and is readable by its
//! owner alone.

pub(crate) mod record;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::connection::Origin;
use crate::engine::{Known, Learnt};
use crate::sink::{is_at, open_regular};
use record::{LONGEST, Remembered, add, read, written};

/// A file that is found to be replaced so often while its lock is waited for is given up.
const ATTEMPTS: u32 = 100;

/// The file of the memory.
#[derive(Debug, Clone)]
pub(crate) struct OriginMemory(pub(crate) PathBuf);

impl OriginMemory {
    /// What it knows. A file that can't be read is no reason to fail: it makes things faster, not right.
    pub(crate) fn known(&self) -> Known {
        let remembered = match open_regular(OpenOptions::new().read(true), &self.0)
            .map(|file| contents(&file))
        {
            Ok(Ok(remembered)) => remembered,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Remembered::new(),
            Ok(Err(error)) | Err(error) => {
                tracing::warn!(file = %self.0.display(), %error, "the origin memory can't be read");
                Remembered::new()
            }
        };
        remembered.into_iter().map(|(origin, (learnt, _))| (origin, learnt)).collect()
    }

    /// Adds what a run has learnt.
    pub(crate) fn learn(&self, learnt: Vec<(Origin, Learnt)>) {
        if learnt.is_empty() {
            return;
        }
        if let Err(error) = self.replace(learnt) {
            tracing::warn!(file = %self.0.display(), %error, "the origin memory can't be written");
        }
    }

    /// Another file takes its place, with what another run has written meanwhile.
    fn replace(&self, learnt: Vec<(Origin, Learnt)>) -> io::Result<()> {
        let path = &self.0;
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let locked = locked(path)?;
        let mut remembered = contents(&locked)?;
        add(&mut remembered, learnt, now());
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        // The lock's owner alone writes it; what is there was left by a run that was killed.
        let mut options = OpenOptions::new();
        let mut file = open_regular(owned(options.write(true).create(true).truncate(true)), &new)?;
        file.write_all(written(&remembered).as_bytes())?;
        file.sync_data()?;
        fs::rename(&new, path)
    }
}

/// Opens the file at `path`, made if it is missing, when no other run is at it.
fn locked(path: &Path) -> io::Result<File> {
    for _ in 0..ATTEMPTS {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = open_regular(owned(options), path)?;
        // A file system without locks can't tell.
        let _ = file.lock();
        // Until the lock was had, the other run may have put another file there.
        if file.metadata().is_ok_and(|found| is_at(&found, path)) {
            return Ok(file);
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "other runs keep replacing it"))
}

fn contents(file: &File) -> io::Result<Remembered> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(read(&bytes, now()))
}

/// For its owner alone.
fn owned(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Time since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn origin(number: u32) -> Origin {
        Origin::of(&Url::parse(&format!("http://h{number}/")).unwrap()).unwrap()
    }

    fn learnt(connections: u32) -> Learnt {
        Learnt { connections: Some(connections), ..Learnt::default() }
    }

    #[test]
    fn runs_that_end_together_lose_nothing_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let memory = OriginMemory(folder.path().join("cache/pelton/origins"));
        assert!(memory.known().is_empty());
        std::thread::scope(|scope| {
            for number in 0..16 {
                let memory = &memory;
                scope.spawn(move || memory.learn(vec![(origin(number), learnt(number + 1))]));
            }
        });
        let known = memory.known();
        let expected = (0..16).map(|number| (origin(number), learnt(number + 1)));
        assert_eq!(known, expected.collect());
        let left = fs::read_dir(folder.path().join("cache/pelton")).unwrap().count();
        assert_eq!(left, 1, "nothing but the file");
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_its_owners_and_no_link() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let memory = OriginMemory(folder.path().join("origins"));
        memory.learn(vec![(origin(1), learnt(4))]);
        let mode = fs::metadata(&memory.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "mine").unwrap();
        let linked = OriginMemory(folder.path().join("link"));
        std::os::unix::fs::symlink(&elsewhere, &linked.0).unwrap();
        linked.learn(vec![(origin(1), learnt(4))]);
        assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
    }
}
