//! Named sets of files, the same for the same seed.
//!
//! | set | files | bytes |
//! |---|---|---|
//! | [`worked_example`] | 200 averaging 12 kB, 20 averaging 700 kB, 1 of 24 MB | 40.4 MB |
//! | [`demo_mixed`] | 40 averaging 12 kB, 6 averaging 200 kB, 1 of 2 MB | 3.68 MB |
//! | [`tiny`] | 1000 averaging 2 kB | 2 MB |
//! | [`small`] | 300 averaging 50 kB | 15 MB |
//! | [`bulk`] | 4 of 100 MB | 400 MB |

use crate::content::{VirtualFile, next_random};

/// A set by its name.
pub fn by_name(name: &str, seed: u64) -> Option<Vec<VirtualFile>> {
    let make = match name {
        "worked_example" => worked_example,
        "demo_mixed" => demo_mixed,
        "tiny" => tiny,
        "small" => small,
        "bulk" => bulk,
        _ => return None,
    };
    Some(make(seed))
}

/// A web site's worth of the paper's three kinds: 200 pages averaging exactly 12 000 B, 20 images
/// averaging exactly 700 000 B, 1 video of 24 000 000 B.
pub fn worked_example(seed: u64) -> Vec<VirtualFile> {
    let mut set = Maker::new(seed);
    set.add("/html/page", "html", 200, 12_000);
    set.add("/image/photo", "jpg", 20, 700_000);
    set.add("/video/clip", "mp4", 1, 24_000_000);
    set.files
}

/// What shows the schedulers' worth within seconds on [`Link::demo`](crate::link::Link::demo): 40
/// files averaging 12 000 B, 6 averaging 200 000 B, 1 of 2 000 000 B.
///
/// One connection that fetches one file after the other needs about 19 s there: 40 round trips of
/// 200 ms, then 3.2 MB by one 64 KiB window per round trip. The bytes alone need 0.6 s.
pub fn demo_mixed(seed: u64) -> Vec<VirtualFile> {
    let mut set = Maker::new(seed);
    set.add("/html/page", "html", 40, 12_000);
    set.add("/image/photo", "jpg", 6, 200_000);
    set.add("/video/clip", "mp4", 1, 2_000_000);
    set.files
}

/// 1000 files averaging 2 000 B: round trips are everything.
pub fn tiny(seed: u64) -> Vec<VirtualFile> {
    let mut set = Maker::new(seed);
    set.add("/tiny/record", "json", 1000, 2_000);
    set.files
}

/// 300 files averaging 50 000 B: each about one 64 KiB window.
pub fn small(seed: u64) -> Vec<VirtualFile> {
    let mut set = Maker::new(seed);
    set.add("/small/tile", "png", 300, 50_000);
    set.files
}

/// 4 files of 100 000 000 B: bytes are everything.
pub fn bulk(seed: u64) -> Vec<VirtualFile> {
    let mut set = Maker::new(seed);
    set.add_equal("/bulk/volume", "bin", 4, 100_000_000);
    set.files
}

pub(crate) struct Maker {
    random: u64,
    pub(crate) files: Vec<VirtualFile>,
}

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: seed, files: Vec::new() }
    }

    /// Adds files whose sizes spread evenly by half around `mean` and average to it exactly: they
    /// come in pairs, one as much above as the other is below, and an odd one at the mean.
    pub(crate) fn add(&mut self, stem: &str, extension: &str, count: usize, mean: u64) {
        let mut above = None;
        for index in 0..count {
            let size = match above.take() {
                Some(excess) => mean - excess,
                None if index + 1 == count => mean,
                None => {
                    let excess = next_random(&mut self.random) % (mean / 2);
                    above = Some(excess);
                    mean + excess
                }
            };
            self.push(stem, extension, size);
        }
    }

    /// Adds files of `size` each.
    pub(crate) fn add_equal(&mut self, stem: &str, extension: &str, count: usize, size: u64) {
        for _ in 0..count {
            self.push(stem, extension, size);
        }
    }

    fn push(&mut self, stem: &str, extension: &str, size: u64) {
        let path = format!("{stem}-{:04}.{extension}", self.files.len());
        self.files.push(VirtualFile::new(path, size, next_random(&mut self.random)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn sum(files: &[VirtualFile]) -> u64 {
        files.iter().map(|file| file.size).sum()
    }

    #[test]
    fn averages_are_exact_and_sizes_differ() {
        for seed in 0..20 {
            let set = worked_example(seed);
            let (pages, rest) = set.split_at(200);
            let (images, video) = rest.split_at(20);
            assert_eq!(sum(pages), 200 * 12_000);
            assert_eq!(sum(images), 20 * 700_000);
            assert_eq!(sum(video), 24_000_000);
            assert!(pages.iter().all(|page| (6_000..18_000).contains(&page.size)));
            assert!(pages.iter().map(|page| page.size).collect::<HashSet<_>>().len() > 150);
        }
    }

    #[test]
    fn the_documented_totals() {
        let totals = ["worked_example", "demo_mixed", "tiny", "small", "bulk"].map(|name| {
            let set = by_name(name, 1).unwrap();
            let paths: HashSet<_> = set.iter().map(|file| &file.path).collect();
            assert_eq!(paths.len(), set.len());
            (set.len(), sum(&set))
        });
        assert_eq!(
            totals,
            [
                (221, 40_400_000),
                (47, 3_680_000),
                (1000, 2_000_000),
                (300, 15_000_000),
                (4, 400_000_000)
            ]
        );
        assert_eq!(by_name("none", 1), None);
    }

    #[test]
    fn a_seed_is_a_set() {
        assert_eq!(demo_mixed(7), demo_mixed(7));
        assert_ne!(demo_mixed(7), demo_mixed(8));
    }
}
