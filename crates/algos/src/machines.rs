//! Whether several machines answer under the name of one host, and differ in what they have: behind a balancer one may
//! have no ranges, another version of a file, or no such file.

/// So many ranges of a file that are answered otherwise, though others are given, tell that some machine has none.
const MOST_OTHERWISE: u32 = 3;

/// Machines that have differed in so many files will in others.
const DIFFERING_FILES: u32 = 2;

/// What the answers for one file have had in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    has_come: bool,
    /// An answer was of the version that is known: else that is of an earlier run.
    has_agreed: bool,
    otherwise: u32,
    differs: bool,
}

impl Agreement {
    /// It has not been asked for.
    pub const NONE_YET: Self =
        Self { has_come: false, has_agreed: false, otherwise: 0, differs: false };

    /// An answer had the file, in the version that is known.
    pub const fn on_answer(&mut self) {
        self.has_come = true;
        self.has_agreed = true;
    }

    /// A range of it was answered otherwise, though it is said that there are ranges.
    pub const fn on_answered_otherwise(&mut self) {
        self.otherwise = self.otherwise.saturating_add(1);
    }

    /// What was known of its version holds no more.
    pub const fn forget_version(&mut self) {
        self.otherwise = 0;
        self.has_agreed = false;
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

    /// Whether it is another machine that has another version, and not the file that has changed: it `was_just_begun`. Later
    /// a file that changes has two versions at once, too, among the answers that are under way.
    pub const fn has_two_versions(&self, was_just_begun: bool) -> bool {
        self.has_agreed && was_just_begun
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

    #[test]
    fn a_file_that_was_just_begun_does_not_change() {
        let mut file = Agreement::NONE_YET;
        assert!(!file.has_two_versions(true), "what an earlier run has left may be old");
        file.on_answer();
        assert!(file.has_two_versions(true) && !file.has_two_versions(false));
        file.forget_version();
        assert!(!file.has_two_versions(true));
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
        file.on_answer();
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
