//! What a restart needs: the done ranges of a part and the version that they belong to, in a small
//! file beside it. Written when a run stops or gives a file up.

use std::fs;
use std::io;
use std::path::Path;

use crate::engine::Resumable;

/// The version of the format.
const FORMAT: u32 = 1;

#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    format: u32,
    url: String,
    #[serde(flatten)]
    part: Resumable,
}

/// Saves what is known of a part. The file appears under its name only when it is whole.
pub(crate) fn save(path: &Path, url: &str, part: &Resumable) -> io::Result<()> {
    let saved = Saved { format: FORMAT, url: url.to_owned(), part: part.clone() };
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let written = fs::write(&unfinished, serde_json::to_vec(&saved)?)
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// What is known of the part of `url`. `None` when there is nothing, or nothing that can be used:
/// another URL's, another format, ranges outside the file.
pub(crate) fn load(path: &Path, url: &str, part_length: u64) -> Option<Resumable> {
    let saved: Saved = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let within = |range: &std::ops::Range<u64>| {
        range.start < range.end && range.end <= saved.part.size && range.end <= part_length
    };
    let usable = saved.format == FORMAT
        && saved.url == url
        && !saved.part.done.is_empty()
        && saved.part.done.iter().all(within);
    usable.then_some(saved.part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Validator;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
    fn what_was_saved_is_loaded_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.part.state");
        let validator = Validator { etag: Some("\"v1\"".into()), last_modified: None };
        let part = Resumable { size: 100, validator, done: vec![10..60] };
        save(&path, "http://h/a", &part).unwrap();
        assert_eq!(load(&path, "http://h/a", 60), Some(part));
        assert_eq!(load(&path, "http://h/b", 60), None, "another URL");
        assert_eq!(load(&path, "http://h/a", 59), None, "the part is shorter than its state says");
        fs::write(&path, b"{\"format\":1").unwrap();
        assert_eq!(load(&path, "http://h/a", 60), None, "torn");
    }
}
