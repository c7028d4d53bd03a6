//! One number of a paper beside ours.

/// Differences beyond this share are explained.
const FAR: f64 = 0.15;

/// One number of a paper beside the model's.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where it stands, and what it is.
    pub what: String,
    /// The paper's number.
    pub paper: f64,
    /// The model's.
    pub model: f64,
    /// The unit of both.
    pub unit: &'static str,
    /// What the model was given.
    pub given: String,
    /// Why they differ, where they do by more than 15 %.
    pub why: String,
}

impl Row {
    /// The difference to the paper, as a share of its number.
    pub fn difference(&self) -> f64 {
        self.model / self.paper - 1.0
    }

    /// Whether the difference calls for an explanation.
    pub fn is_far(&self) -> bool {
        self.difference().abs() > FAR
    }
}
