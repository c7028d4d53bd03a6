//! Names of output files: safe relative paths, and no two files with one name.
//!
//! A name is a relative path with `/` between its parts. No part is empty, `.` or `..`, holds a
//! backslash or a control character, or is longer than 255 bytes, so a name joined to a
//! directory stays below it.
//!
//! Device names (`CON`, `NUL`, `COM1`, …), the characters `<>:"|?*` and a dot or space at the
//! end of a part are refused on Windows only. There they open a device, another drive or another
//! file than the one named; elsewhere they are common (`aux.c` is in the Linux kernel's tree).

use std::collections::HashMap;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use url::Url;

use super::spec::FileSpec;
use crate::connection::shown;
use crate::{Error, ErrorKind, Result};

/// The longest part of a name in bytes: `NAME_MAX` of Linux, and what most file systems take.
const MAX_PART: usize = 255;

/// A safe relative name from what a user, a manifest or a server wrote. Parts that are `.` are
/// dropped; everything else that is unsafe is refused.
///
/// # Errors
/// `Usage`, with the name and what is wrong with it.
pub fn relative_name(name: &str) -> Result<String> {
    check(name, cfg!(windows)).map_err(|reason| {
        let line = format!("{} can't be an output name: {reason}", excerpt(name));
        Error::new(ErrorKind::Usage, line)
    })
}

/// The name that the last part of `url`'s path gives; `index.html` where that part is empty.
pub(super) fn from_url(url: &Url) -> Result<String> {
    match url.path().rsplit('/').next() {
        None | Some("") => Ok("index.html".to_owned()),
        Some(part) => from_part(part, url),
    }
}

/// The name that one part of `url`'s path gives: percent-decoded, except that bytes which no name
/// can hold (separators, control characters, invalid UTF-8) stay percent-encoded.
pub(super) fn from_part(part: &str, url: &Url) -> Result<String> {
    let mut name = String::with_capacity(part.len());
    let decoded: Vec<u8> = percent_decode_str(part).collect();
    for chunk in decoded.utf8_chunks() {
        // A slash within a part separates nothing.
        name.push_str(&storable(chunk.valid()).replace('/', "%2F"));
        encode(chunk.invalid(), &mut name);
    }
    check(&name, cfg!(windows)).map_err(|reason| {
        let line = format!("{} gives no output name: {reason}; give one (out=)", shown(url));
        Error::new(ErrorKind::Usage, line)
    })
}

/// `name` with what no name can hold percent-encoded: control characters and backslashes.
pub(super) fn storable(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() || c == '\\' {
            encode(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut encoded);
        } else {
            encoded.push(c);
        }
    }
    encoded
}

fn encode(bytes: &[u8], into: &mut String) {
    for byte in bytes {
        // Writing to a String can't fail.
        let _ = write!(into, "%{byte:02X}");
    }
}

/// `name` without its `.` parts, or why it is not safe.
fn check(name: &str, windows: bool) -> Result<String, String> {
    if name.starts_with('/') {
        return Err("it is an absolute path".to_owned());
    }
    if let Some(c) = name.chars().find(|c| c.is_control() || *c == '\\') {
        return Err(format!("it holds {c:?}"));
    }
    for part in name.split('/') {
        let hazard = windows.then(|| windows_hazard(part)).flatten();
        match part {
            "" => return Err("a part of it is empty".to_owned()),
            ".." => return Err("\"..\" leads out of its directory".to_owned()),
            _ if part.len() > MAX_PART => {
                return Err(format!("a part of it is longer than {MAX_PART} bytes"));
            }
            _ => hazard.map_or(Ok(()), Err)?,
        }
    }
    let parts: Vec<&str> = name.split('/').filter(|part| *part != ".").collect();
    if parts.is_empty() {
        return Err("it names a directory".to_owned());
    }
    Ok(parts.join("/"))
}

/// Why Windows would not store a file under exactly this name ("Naming Files, Paths, and
/// Namespaces", Win32 documentation).
fn windows_hazard(part: &str) -> Option<String> {
    if let Some(c) = part.chars().find(|c| "<>:\"|?*".contains(*c)) {
        return Some(format!("Windows names can't hold {c:?}"));
    }
    if part != "." && part.ends_with(['.', ' ']) {
        return Some("Windows names can't end in a dot or a space".to_owned());
    }
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || numbered.is_some_and(|rest| {
            let mut digits = rest.chars();
            digits.next().is_some_and(|c| "123456789¹²³".contains(c)) && digits.next().is_none()
        });
    device.then(|| format!("{stem} is a device on Windows"))
}

/// `text` for an error message: quoted, control characters escaped, cut where it is long.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Collapses entries with the same URL and name into the first, and refuses a list in which two
/// files would be written to one place. Order is kept.
///
/// # Errors
/// `Usage`, with both URLs: two files have one name, one's name is a directory of the other's or its
/// `.part`, or one file is given twice with different sizes or digests.
pub fn collapse(specs: Vec<FileSpec>) -> Result<Vec<FileSpec>> {
    let (kept, mut clashing) = joined(specs, "give one another name (out=)")?;
    if clashing.is_empty() { Ok(kept) } else { Err(clashing.swap_remove(0).1) }
}

/// The same for what one server lists: entries that clash with one before them are apart, each with
/// why. Nobody but the server could give them other names.
pub(super) fn separate(specs: Vec<FileSpec>) -> Joined {
    // A listing says nothing twice that could contradict itself.
    joined(specs, "leave one out with `exclude`, and fetch it apart").unwrap_or_default()
}

/// Entries that can be stored side by side, and those that can't, with why.
type Joined = (Vec<FileSpec>, Vec<(Url, Error)>);

/// Entries with the names of others joined to these, and those that clash with others, with `advice`.
fn joined(specs: Vec<FileSpec>, advice: &str) -> Result<Joined> {
    let relations = relations(&specs, advice);
    if relations.iter().all(|relation| matches!(relation, Relation::First)) {
        // A long list is not copied for nothing.
        return Ok((specs, Vec::new()));
    }
    // Where in `kept` each entry went; nowhere if it clashes.
    let mut place: Vec<Option<usize>> = Vec::with_capacity(specs.len());
    let mut kept: Vec<FileSpec> = Vec::with_capacity(specs.len());
    let mut clashing = Vec::new();
    for (spec, relation) in specs.into_iter().zip(relations) {
        let at = match relation {
            Relation::First => {
                kept.push(spec);
                Some(kept.len() - 1)
            }
            Relation::Again(first) => {
                let at = place[first];
                if let Some(kept) = at.and_then(|at| kept.get_mut(at)) {
                    merge(kept, spec)?;
                }
                at
            }
            Relation::Clash(error) => {
                clashing.push((spec.url, error));
                None
            }
        };
        place.push(at);
    }
    Ok((kept, clashing))
}

/// How an entry stands to the others.
enum Relation {
    /// The first of its name.
    First,
    /// The same URL and name as this one before.
    Again(usize),
    /// It can't be stored beside another one.
    Clash(Error),
}

fn relations(specs: &[FileSpec], advice: &str) -> Vec<Relation> {
    let mut by_name: HashMap<&str, usize> = HashMap::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        by_name.entry(&spec.name).or_insert(index);
    }
    let relate = |(index, spec): (usize, &FileSpec)| match by_name.get(spec.name.as_str()) {
        Some(&first) if specs[first].url != spec.url => {
            let problem = format!("would both write {}", excerpt(&spec.name));
            Relation::Clash(conflict(&specs[first], spec, &problem, advice))
        }
        Some(&first) if first != index => Relation::Again(first),
        _ => clash(specs, spec, &by_name, advice).map_or(Relation::First, Relation::Clash),
    };
    specs.iter().enumerate().map(relate).collect()
}

/// Why `spec` can't be stored beside the others, all of which have other names.
fn clash(
    specs: &[FileSpec],
    spec: &FileSpec,
    by_name: &HashMap<&str, usize>,
    advice: &str,
) -> Option<Error> {
    // Where a sink keeps a file until it is complete, and what it knows of it.
    for suffix in [".part", ".part.state"] {
        let unfinished = spec.name.strip_suffix(suffix).and_then(|name| by_name.get(name));
        if let Some(&at) = unfinished {
            let problem = format!(
                "can't be fetched in one run: {} is kept as {} until it is complete",
                excerpt(&specs[at].name),
                excerpt(&spec.name)
            );
            return Some(conflict(&specs[at], spec, &problem, advice));
        }
    }
    for (end, _) in spec.name.match_indices('/') {
        if let Some(&at) = by_name.get(&spec.name[..end]) {
            let problem = format!(
                "can't both be written: {} would be a file and a directory",
                excerpt(&specs[at].name)
            );
            return Some(conflict(&specs[at], spec, &problem, advice));
        }
    }
    None
}

fn conflict(one: &FileSpec, other: &FileSpec, problem: &str, advice: &str) -> Error {
    let (one, other) = (shown(&one.url), shown(&other.url));
    let line = format!("{one} and {other} {problem}; {advice}");
    Error::new(ErrorKind::Usage, line)
}

/// Adds to `kept` what `again`, the same URL and name, knows beyond it.
fn merge(kept: &mut FileSpec, again: FileSpec) -> Result<()> {
    let differs = |what: &str| {
        let line = format!("{} is given twice with different {what}", shown(&again.url));
        Err(Error::new(ErrorKind::Usage, line))
    };
    if kept.size.zip(again.size).is_some_and(|(one, other)| one != other) {
        return differs("sizes");
    }
    if let Some((one, other)) = kept.digest.as_ref().zip(again.digest.as_ref())
        && one.algorithm == other.algorithm
        && one.value != other.value
    {
        return differs("digests");
    }
    kept.size = kept.size.or(again.size);
    kept.size_hint = kept.size_hint.or(again.size_hint);
    kept.digest = kept.digest.take().or(again.digest);
    kept.pieces = kept.pieces.take().or(again.pieces);
    for mirror in again.mirrors {
        if !kept.mirrors.contains(&mirror) {
            kept.mirrors.push(mirror);
        }
    }
    for header in again.headers {
        if !kept.headers.contains(&header) {
            kept.headers.push(header);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(in crate::catalog) mod tests;
