//! Whether several machines answer under the name of one host, and differ in what they have: behind a balancer one may
//! have no ranges, another version of a file, or no such file.

use crate::time::Timestamp;

/// So many ranges of a file that are answered otherwise, though others are given, tell that some machine has none.
const MOST_OTHERWISE: u32 = 3;

/// Machines that have differed in so many files will in others.
const DIFFERING_FILES: u32 = 2;

/// What the answers for one file have had in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    has_come: bool,
    /// When an answer was last of the version that is known. `None`: that is of an earlier run.
    agreed_at: Option<Timestamp>,
    otherwise: u32,
    differs: bool,
}

impl Agreement {
    /// It has not been asked for.
    pub const NONE_YET: Self =
        Self { has_come: false, agreed_at: None, otherwise: 0, differs: false };

    /// An answer had the file, in the version that is known.
    pub const fn on_answer(&mut self, now: Timestamp) {
        self.has_come = true;
        self.agreed_at = Some(now);
    }

    /// A range of it was answered otherwise, though it is said that there are ranges.
    pub const fn on_answered_otherwise(&mut self) {
        self.otherwise = self.otherwise.saturating_add(1);
    }

    /// What was known of its version holds no more.
    pub const fn forget_version(&mut self) {
        self.otherwise = 0;
        self.agreed_at = None;
    }

    /// It is asked for at another place from now on.
    pub const fn move_away(&mut self) {
        self.has_come = false;
        self.otherwise = 0;
    }

    /// Whether it was there when it was asked for.
    pub const fn has_come(&self) -> bool {
        self.has_come
    }

    /// Whether ranges are answered otherwise too often for who gives all of them, if any were given.
    pub const fn lacks_ranges_somewhere(&self) -> bool {
        self.otherwise >= MOST_OTHERWISE
    }

    /// Whether it is another machine that has another version, as an answer to what was asked for at `asked_at` has it, and
    /// not the file that has changed: one of the known version came meanwhile, or the file `was_just_begun`.
    pub fn has_two_versions(&self, asked_at: Timestamp, was_just_begun: bool) -> bool {
        self.agreed_at.is_some_and(|agreed| was_just_begun || agreed > asked_at)
    }
}

/// Those who answer under one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machines {
    differing_files: u32,
}

impl Machines {
    /// They differ in `file`.
    pub const fn on_differing(&mut self, file: &mut Agreement) {
        if !file.differs {
            file.differs = true;
            self.differing_files = self.differing_files.saturating_add(1);
        }
    }

    /// Whether they are known to differ: what one of them sends in one body is of one version.
    pub const fn are_several(&self) -> bool {
        self.differing_files >= DIFFERING_FILES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn two_versions_at_once_are_of_two_machines() {
        let mut file = Agreement::NONE_YET;
        assert!(!file.has_two_versions(at(0), true), "what an earlier run has left may be old");
        file.on_answer(at(100));
        assert!(
            file.has_two_versions(at(50), false),
            "the known one came after that was asked for"
        );
        assert!(!file.has_two_versions(at(100), false), "it may have changed");
        assert!(
            file.has_two_versions(at(100), true),
            "hardly any file changes just after it was begun"
        );
        file.forget_version();
        assert!(!file.has_two_versions(at(50), true));
    }

    #[test]
    fn a_range_answered_otherwise_is_a_fault_and_three_are_a_machine() {
        let mut file = Agreement::NONE_YET;
        for _ in 0..2 {
            file.on_answered_otherwise();
            assert!(!file.lacks_ranges_somewhere());
        }
        file.on_answered_otherwise();
        assert!(file.lacks_ranges_somewhere());
        file.on_answer(at(1));
        file.move_away();
        assert!(
            !file.lacks_ranges_somewhere() && !file.has_come(),
            "another host is another matter"
        );
    }

    #[test]
    fn machines_that_differ_in_two_files_differ() {
        let mut machines = Machines::default();
        let mut files = [Agreement::NONE_YET; 2];
        for _ in 0..5 {
            machines.on_differing(&mut files[0]);
        }
        assert!(!machines.are_several(), "one file counts once");
        machines.on_differing(&mut files[1]);
        assert!(machines.are_several());
    }
}
