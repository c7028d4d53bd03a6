//! Small files with one value, as Linux shows sensors.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The text of the file at `path`, trimmed; or why it can't be read and what would help.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(format!(
            "{} is only for root: run as root, or as root `chmod a+r {}`",
            path.display(),
            path.display()
        )),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The number in the file at `path`, or why there is none.
pub(crate) fn number(path: &Path) -> Result<i64, String> {
    let text = text(path)?;
    text.parse().map_err(|_| format!("{} holds {text:?}, which is no number", path.display()))
}

/// The same of what counts something: that is not less than nothing.
pub(crate) fn count(path: &Path) -> Result<i64, String> {
    let number = number(path)?;
    if number < 0 {
        return Err(format!("{} holds {number}, which is less than nothing", path.display()));
    }
    Ok(number)
}

/// Entries of `directory` in the order of their names, numbers in them by value.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let list =
        fs::read_dir(directory).map_err(|_| format!("there is no {}", directory.display()))?;
    let mut paths: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    paths.sort_by_key(|path| {
        let name = file_name(path);
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        (digits.parse::<u64>().unwrap_or(0), name)
    });
    Ok(paths)
}

/// The last part of `path`.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
