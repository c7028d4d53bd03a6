//! Which flags can't stand together, and which say nothing alone.

use clap::ArgMatches;
use clap::parser::ValueSource;
use pelton_core::Result;

use crate::exit::usage;

/// Of each of these, one flag at most can hold.
const EXCLUSIVE: [&[&str]; 5] = [
    &["http1.1", "http2", "http2-prior-knowledge"],
    &["ipv4", "ipv6"],
    &["polite", "max-connection-per-server"],
    &["continue", "no-continue"],
    &["quiet", "verbose"],
];

/// The first of these means nothing without the second.
const NEEDS: [(&str, &str); 2] = [("depth", "recursive"), ("base-url", "input-file")];

/// Whether `long` can't hold where one of `others` does.
pub(super) fn is_overruled(long: &str, others: &[&str]) -> bool {
    let mut groups = EXCLUSIVE.iter().filter(|group| group.contains(&long));
    groups.any(|group| group.iter().any(|other| *other != long && others.contains(other)))
}

/// Refuses flags that one and the same source sets and that contradict each other. `shown` gives
/// their names in that source.
pub(super) fn check(set: &[&str], shown: impl Fn(&str) -> String) -> Result<()> {
    for group in EXCLUSIVE {
        let mut both = group.iter().filter(|long| set.contains(long));
        if let (Some(one), Some(other)) = (both.next(), both.next()) {
            let (one, other) = (shown(one), shown(other));
            return Err(usage(format!("{one} and {other} contradict each other: give one")));
        }
    }
    Ok(())
}

/// Refuses what was `typed` and says nothing without a flag that neither was typed nor is set in
/// `matches`. `id` gives the name that clap knows a flag by.
pub(super) fn check_needs(
    typed: &[&str],
    matches: &ArgMatches,
    id: impl Fn(&str) -> Option<String>,
) -> Result<()> {
    for (flag, needed) in NEEDS {
        let is_set = id(needed).is_some_and(|id| {
            matches.value_source(&id).is_some_and(|source| source != ValueSource::DefaultValue)
        });
        if typed.contains(&flag) && !is_set {
            return Err(usage(format!("--{flag} means nothing without --{needed}")));
        }
    }
    Ok(())
}
