//! Where a matrix keeps its files: what the server serves, what clients write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pelton_algos::units::Bytes;

use crate::content::VirtualFile;

/// How the directories of runs begin; the process id follows.
const PREFIX: &str = "pelton-lab-";

/// A directory of this process, removed when dropped. One that a killed process left is removed by
/// the next.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
}

/// A set whose files lie where a server finds them.
#[derive(Debug)]
pub struct PreparedSet {
    /// Its name.
    pub name: String,
    /// Where the server's root is.
    pub root: PathBuf,
    /// The files.
    pub files: Vec<VirtualFile>,
    /// Their SHA-256, in their order.
    digests: Vec<[u8; 32]>,
}

impl Workspace {
    /// A new directory below `base`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(base: &Path) -> io::Result<Self> {
        remove_stale(base)?;
        let path = base.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the files of a set.
    ///
    /// # Errors
    /// What the file system says.
    pub fn prepare(&self, name: &str, files: Vec<VirtualFile>) -> io::Result<PreparedSet> {
        let root = self.path.join("www").join(name);
        for file in &files {
            file.write_to(&root)?;
        }
        let digests = files.iter().map(VirtualFile::sha256).collect();
        Ok(PreparedSet { name: name.to_owned(), root, files, digests })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What can't be removed now is removed by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what processes have left that are no more.
fn remove_stale(base: &Path) -> io::Result<()> {
    for entry in fs::read_dir(base)? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_pid = |pid: &&str| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(pid) = pid.filter(is_pid)
            && !Path::new("/proc").join(pid).exists()
        {
            fs::remove_dir_all(base.join(&name))?;
        }
    }
    Ok(())
}

impl PreparedSet {
    /// The bytes of all files.
    pub fn bytes(&self) -> Bytes {
        self.files.iter().map(|file| Bytes(file.size)).sum()
    }

    /// Compares what a client has stored below `dir`, however deep, with the set.
    ///
    /// # Errors
    /// The first file that is missing or differs, in words.
    pub fn verify(&self, dir: &Path) -> Result<(), String> {
        let stored = walk(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        for (file, digest) in self.files.iter().zip(&self.digests) {
            let name = Path::new(&file.path).file_name();
            let path = stored
                .iter()
                .find(|path| path.file_name() == name)
                .ok_or_else(|| format!("{} is missing", file.path))?;
            let found = sha256(path).map_err(|error| format!("{}: {error}", file.path))?;
            if found != *digest {
                return Err(format!("{} differs", file.path));
            }
        }
        Ok(())
    }
}

fn walk(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let list = if entry.file_type()?.is_dir() { &mut dirs } else { &mut files };
            list.push(entry.path());
        }
    }
    Ok(files)
}

fn sha256(path: &Path) -> io::Result<[u8; 32]> {
    use sha2::{Digest, Sha256};
    let mut hasher = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_or_missing_file_is_named() {
        let base = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(base.path()).unwrap();
        let files =
            vec![VirtualFile::new("/a/one.txt", 100, 1), VirtualFile::new("/two.txt", 9, 2)];
        let set = workspace.prepare("set", files).unwrap();
        assert_eq!(set.bytes(), Bytes(109));
        assert_eq!(set.verify(&set.root), Ok(()));
        fs::write(set.root.join("a/one.txt"), "other").unwrap();
        assert_eq!(set.verify(&set.root), Err("/a/one.txt differs".to_owned()));
        fs::remove_file(set.root.join("a/one.txt")).unwrap();
        assert_eq!(set.verify(&set.root), Err("/a/one.txt is missing".to_owned()));
    }

    #[test]
    fn directories_go_with_their_process() {
        let base = tempfile::tempdir().unwrap();
        // Above the largest process id that Linux gives (2^22).
        let stale = base.path().join(format!("{PREFIX}99999999"));
        let other = base.path().join(format!("{PREFIX}notes"));
        fs::create_dir(&stale).unwrap();
        fs::create_dir(&other).unwrap();
        let workspace = Workspace::create(base.path()).unwrap();
        assert!(!stale.exists() && other.exists() && workspace.path().exists());
        let path = workspace.path().to_owned();
        drop(workspace);
        assert!(!path.exists());
    }
}
