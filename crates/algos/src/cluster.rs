//! Files to clusters: small, medium and large ("HTML, image, video", papers/001 section IV).

use std::fmt;
use std::time::Duration;

use crate::link::LinkEstimate;
use crate::params::{self, Limits};
use crate::units::Bytes;

/// The class of a file's size, relative to the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeClass {
    /// Far below the bandwidth-delay product: round trips dominate.
    Small,
    /// About the bandwidth-delay product.
    Medium,
    /// Far above the bandwidth-delay product: bytes dominate.
    Large,
}

impl SizeClass {
    /// All classes, from small to large.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The name that people and reports read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// A set of size classes: what one cluster covers after a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Classes(u8);

impl Classes {
    /// Every class.
    pub const ALL: Self = Self(0b111);

    /// The set that holds `class` alone.
    pub const fn only(class: SizeClass) -> Self {
        Self(1 << class as u8)
    }

    /// The set that holds what either holds.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `class` is in the set.
    pub const fn contains(self, class: SizeClass) -> bool {
        self.0 & (1 << class as u8) != 0
    }
}

impl fmt::Display for Classes {
    /// `small`, or `medium+large`, or `all`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        let names: Vec<_> = SizeClass::ALL
            .into_iter()
            .filter(|class| self.contains(*class))
            .map(SizeClass::name)
            .collect();
        f.write_str(&names.join("+"))
    }
}

/// Files of one size class, or of several whose parameters are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// The size classes that it covers.
    pub classes: Classes,
    /// Files that are not finished: waiting and in transfer.
    pub files: u64,
    /// Bytes of those files that are still to come.
    pub bytes: Bytes,
    /// Mean size of those files, as the formulas need it.
    pub mean_size: Bytes,
}

impl Cluster {
    /// A cluster of `files` untouched files of `bytes` bytes in all.
    pub fn new(class: SizeClass, files: u64, bytes: Bytes) -> Self {
        Self {
            classes: Classes::only(class),
            files,
            bytes,
            mean_size: Bytes(bytes.0.checked_div(files).unwrap_or(0)),
        }
    }

    fn merged(self, other: Self) -> Self {
        let files = self.files + other.files;
        let sizes = u128::from(self.mean_size.0) * u128::from(self.files)
            + u128::from(other.mean_size.0) * u128::from(other.files);
        Self {
            classes: self.classes.union(other.classes),
            files,
            bytes: self.bytes + other.bytes,
            mean_size: Bytes(sizes.checked_div(u128::from(files)).unwrap_or(0) as u64),
        }
    }
}

/// Sizes at which the classes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundaries {
    /// Files below this are small.
    pub small_below: Bytes,
    /// Files from this on are large.
    pub large_from: Bytes,
}

impl Boundaries {
    /// The class of a file of `size` bytes.
    pub fn classify(&self, size: Bytes) -> SizeClass {
        if size < self.small_below {
            SizeClass::Small
        } else if size < self.large_from {
            SizeClass::Medium
        } else {
            SizeClass::Large
        }
    }

    /// Whether `other` differs so much that waiting files should be clustered anew.
    pub fn moved_far_from(&self, other: &Self) -> bool {
        let far = |a: Bytes, b: Bytes| a.0 > b.0.saturating_mul(2) || b.0 > a.0.saturating_mul(2);
        far(self.small_below, other.small_below) || far(self.large_from, other.large_from)
    }
}

/// How boundaries follow from the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterConfig {
    /// Files below this multiple of the bandwidth-delay product are small.
    pub small_below_bdp: f64,
    /// Files from this multiple of the bandwidth-delay product on are large.
    pub large_from_bdp: f64,
    /// The least RTT that the boundaries are computed with. On a LAN the bandwidth-delay product
    /// goes to zero, and without a floor every file would be large.
    pub rtt_floor: Duration,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        // A tenth: ten such files in flight fill the path, more than a lane or two can carry.
        // Four times: enough bytes that a file's own ramp-up is a small part of its transfer.
        Self { small_below_bdp: 0.1, large_from_bdp: 4.0, rtt_floor: Duration::from_millis(20) }
    }
}

impl ClusterConfig {
    /// The boundaries on this link.
    pub fn boundaries(&self, link: &LinkEstimate) -> Boundaries {
        let bdp = (link.bandwidth * link.rtt.max(self.rtt_floor)).max(link.stream_window);
        Boundaries {
            small_below: bdp.scale(self.small_below_bdp),
            large_from: bdp.scale(self.large_from_bdp),
        }
    }
}

/// How many files there are, and their bytes by mean sizes, whatever of them has come.
pub fn totals(clusters: &[Cluster]) -> (u64, Bytes) {
    clusters.iter().fold((0, Bytes::ZERO), |(files, bytes), cluster| {
        let of_it = cluster.mean_size.0.saturating_mul(cluster.files);
        (files + cluster.files, Bytes(bytes.0.saturating_add(of_it)))
    })
}

/// Merges neighbours whose parameters come out equal, and drops clusters without files. Nothing
/// merges for having few files or few bytes.
pub fn merge_equal(clusters: &[Cluster], link: &LinkEstimate, limits: &Limits) -> Vec<Cluster> {
    let mut merged: Vec<Cluster> = Vec::with_capacity(clusters.len());
    for cluster in clusters.iter().filter(|cluster| cluster.files > 0) {
        let parameters = |c: &Cluster| params::wanted(c, link, limits, limits.max_channels);
        match merged.last_mut() {
            Some(last) if parameters(last) == parameters(cluster) => *last = last.merged(*cluster),
            _ => merged.push(*cluster),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::tests::{worked_clusters, worked_limits, worked_link};

    #[test]
    fn the_worked_example_falls_into_three_clusters() {
        let boundaries = ClusterConfig::default().boundaries(&worked_link());
        assert_eq!(boundaries.classify(Bytes(12_000)), SizeClass::Small);
        assert_eq!(boundaries.classify(Bytes(700_000)), SizeClass::Medium);
        assert_eq!(boundaries.classify(Bytes(24_000_000)), SizeClass::Large);
        assert_eq!(
            merge_equal(&worked_clusters(), &worked_link(), &worked_limits()),
            worked_clusters()
        );
    }

    #[test]
    fn a_lan_does_not_make_every_file_large() {
        let link = LinkEstimate { rtt: Duration::from_micros(100), ..worked_link() };
        let boundaries = ClusterConfig::default().boundaries(&link);
        assert_eq!(boundaries.classify(Bytes(1_000)), SizeClass::Small);
        assert_eq!(boundaries.classify(Bytes(100_000)), SizeClass::Medium);
    }

    #[test]
    fn equal_parameters_merge_and_few_files_do_not() {
        // On a short link both need one stream of one request.
        let link = LinkEstimate { rtt: Duration::from_millis(1), ..worked_link() };
        let clusters = [
            Cluster::new(SizeClass::Medium, 5, Bytes(5_000_000)),
            Cluster::new(SizeClass::Large, 5, Bytes(500_000_000)),
        ];
        let merged = merge_equal(&clusters, &link, &worked_limits());
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].classes.to_string(), "medium+large");
        assert_eq!(merged[0].files, 10);
        assert_eq!(merged[0].mean_size, Bytes(50_500_000));

        let lonely = [Cluster::new(SizeClass::Small, 1, Bytes(10)), worked_clusters()[1]];
        assert_eq!(merge_equal(&lonely, &worked_link(), &worked_limits()).len(), 2);
    }
}
