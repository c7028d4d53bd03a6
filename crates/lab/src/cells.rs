//! The links and the sets of files that measurements are made on: `cells.toml`, and files like it.

use std::collections::BTreeMap;
use std::path::Path;

use pelton_algos::units::{BitRate, Bytes};
use pelton_power::Radio;
use pelton_power::radio::UnknownRadio;
use serde::Deserialize;
use thiserror::Error;

use crate::content::VirtualFile;
use crate::model::LinkSpec;
use crate::sets::Maker;

mod link;

use link::LinkText;

/// What is built in; its comments document every number.
const BUILT_IN: &str = include_str!("../cells.toml");

/// Bytes of a page for each object that it refers to.
const PAGE_BYTES_PER_OBJECT: u64 = 64;

/// Links and sets by their names.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    /// The links, by name.
    pub links: BTreeMap<String, NamedLink>,
    /// The sets, by name; `pages` is not among them.
    pub sets: BTreeMap<String, FileSet>,
    /// The names of the pages of papers/002, smallest first.
    pages: Vec<String>,
}

/// A link and what it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedLink {
    /// One line for people.
    pub about: String,
    /// By whose model its runs are charged.
    pub radio: Radio,
    /// Its numbers.
    pub spec: LinkSpec,
}

/// A set of files and what it stands for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    /// One line for people.
    pub about: String,
    groups: Vec<Group>,
}

/// Files of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    /// A path with an extension, into which the number of the file is put.
    name: String,
    files: usize,
    #[serde(flatten)]
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
enum Size {
    #[serde(rename = "size")]
    Exact(u64),
    #[serde(rename = "mean")]
    Mean(u64),
    #[serde(rename = "seconds")]
    Seconds(f64),
}

/// Why a cells file can't be used.
#[derive(Debug, Error)]
pub enum CellsError {
    /// It is no TOML, or has a key that means nothing.
    #[error(transparent)]
    Toml(#[from] Box<toml::de::Error>),
    /// A number of a link makes no sense.
    #[error("link {link}, {direction}: {what}")]
    Link {
        /// The link's name.
        link: String,
        /// `down` or `up`.
        direction: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Nobody has numbers for its radio.
    #[error("link {link}: {error}")]
    Radio {
        /// The link's name.
        link: String,
        /// What is wrong.
        error: UnknownRadio,
    },
    /// A number of a set makes no sense.
    #[error("set {set}: {what}")]
    Set {
        /// The set's name.
        set: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Nothing has that name.
    #[error("there is no {kind} {name:?}; there are {known}")]
    Unknown {
        /// `link` or `set`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CellsText {
    #[serde(default)]
    links: BTreeMap<String, LinkText>,
    #[serde(default)]
    sets: BTreeMap<String, FileSet>,
    #[serde(default)]
    pages: PagesText,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PagesText {
    objects: Vec<usize>,
    sizes: Vec<u64>,
}

impl Cells {
    /// The links and sets of `cells.toml`.
    ///
    /// # Errors
    /// None: the file is tested.
    pub fn built_in() -> Result<Self, CellsError> {
        let mut cells = Self::default();
        cells.add(BUILT_IN, Path::new("."))?;
        Ok(cells)
    }

    /// Adds what `text`, a file like `cells.toml`, has; of two things with the same name it wins.
    /// Its traces are looked for below `dir`.
    ///
    /// # Errors
    /// The first mistake, with its line or name.
    pub fn add(&mut self, text: &str, dir: &Path) -> Result<(), CellsError> {
        let text: CellsText = toml::from_str(text).map_err(Box::new)?;
        for (name, link) in text.links {
            let link = link.parse(&name, dir)?;
            self.links.insert(name, link);
        }
        for (name, set) in text.sets {
            set.check(&name)?;
            self.sets.insert(name, set);
        }
        for &size in &text.pages.sizes {
            for &objects in &text.pages.objects {
                let name = format!("page-{objects:03}-{size}");
                self.sets.insert(name.clone(), page(objects, size));
                self.pages.push(name);
            }
        }
        Ok(())
    }

    /// The link called `name`.
    ///
    /// # Errors
    /// When there is none; the message names those that there are.
    pub fn link(&self, name: &str) -> Result<&NamedLink, CellsError> {
        self.links.get(name).ok_or_else(|| unknown("link", name, self.links.keys()))
    }

    /// The names and sets that `name` stands for: one, or with `pages` forty.
    ///
    /// # Errors
    /// When there is none; the message names those that there are.
    pub fn sets(&self, name: &str) -> Result<Vec<(&str, &FileSet)>, CellsError> {
        let names = match name {
            "pages" => self.pages.iter().map(String::as_str).collect(),
            one => vec![one],
        };
        let known = || self.sets.keys().filter(|name| !self.pages.contains(name));
        names
            .into_iter()
            .map(|name| {
                let (name, set) =
                    self.sets.get_key_value(name).ok_or_else(|| unknown("set", name, known()))?;
                Ok((name.as_str(), set))
            })
            .collect()
    }
}

impl FileSet {
    /// The files, the same for the same seed. `rate` is what the link carries downwards: the size
    /// of `long` depends on it.
    pub fn files(&self, seed: u64, rate: BitRate) -> Vec<VirtualFile> {
        let mut maker = Maker::new(seed);
        for group in &self.groups {
            let (stem, extension) = group.name.rsplit_once('.').unwrap_or((&group.name, "bin"));
            let stem = format!("/{stem}");
            match group.size {
                Size::Mean(mean) => maker.add(&stem, extension, group.files, mean),
                Size::Exact(size) => maker.add_equal(&stem, extension, group.files, size),
                Size::Seconds(seconds) => {
                    let size = Bytes((rate.bps() * seconds / 8.0).ceil() as u64);
                    maker.add_equal(&stem, extension, group.files, size.0);
                }
            }
        }
        maker.files
    }

    fn check(&self, name: &str) -> Result<(), CellsError> {
        let error = |what| Err(CellsError::Set { set: name.to_owned(), what });
        for group in &self.groups {
            match group.size {
                Size::Mean(mean) if mean < 2 => return error("a mean size is below 2 bytes"),
                Size::Seconds(seconds) if !(seconds > 0.0 && seconds < 1e6) => {
                    return error("`seconds` must be above 0 and below a million");
                }
                _ if group.files == 0 => return error("a group has no files"),
                _ => {}
            }
        }
        if self.groups.is_empty() { error("it has no groups") } else { Ok(()) }
    }
}

/// One of the pages of papers/002.
fn page(objects: usize, size: u64) -> FileSet {
    let exact =
        |name: &str, files, size| Group { name: name.to_owned(), files, size: Size::Exact(size) };
    FileSet {
        about: format!("papers/002: a page with {objects} objects of {size} bytes"),
        groups: vec![
            exact("page/index.html", 1, PAGE_BYTES_PER_OBJECT * objects as u64),
            exact("page/object.bin", objects, size),
        ],
    }
}

fn unknown<'a>(
    kind: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
) -> CellsError {
    let known = known.map(String::as_str).collect::<Vec<_>>().join(", ");
    CellsError::Unknown { kind, name: name.to_owned(), known }
}

#[cfg(test)]
mod tests;
