//! The constants of EHT: what the papers leave open, and what was measured.

use std::time::Duration;

/// How a cluster's weight follows from its bytes and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weighting {
    /// "`cluster.weight <- cluster.totalSize * cluster.fileCount`" (Algorithm 3 line 7).
    #[default]
    Product,
    /// `log(1 + totalSize) x log(1 + fileCount)`, as HTEE of the same family does.
    Logarithmic,
}

/// What the search maximises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// Equation 1, throughput / energy, over the whole transfer: for fixed bytes rate^2 / power,
    /// the inverse energy-delay product.
    #[default]
    WholeTransfer,
    /// Throughput / energy of one window, to the letter. Over equal windows that is rate / power
    /// scaled by time: bytes per joule, which is LowE's objective.
    Literal,
}

/// The constants of [`Eht`](super::Eht).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EhtConfig {
    /// How clusters are weighed.
    pub weighting: Weighting,
    /// What is maximised.
    pub objective: Objective,
    /// Of the numbers of channels that the model finds at least this part as efficient as the best, the
    /// most are taken, unless the link was told: what the model does not know (losses, a server that
    /// holds connections down, a link that is faster than was assumed) is met better by more of them. At 1
    /// it is the fewest of the best.
    pub as_good: f64,
    /// The same of what a search has measured: the windows of a few seconds tell no better.
    pub as_good_measured: f64,
    /// The step of the search: "`for i = 1; i <= maxCC; i += 3`" (line 14).
    pub step: u32,
    /// `efficientCC`, an input of the printed algorithm: the best number of channels that an
    /// earlier transfer over this link found. The search starts with it,
    /// instead of with what the model predicts.
    pub efficient_channels: Option<u32>,
    /// A window's ramp-up, which is not counted, in round trips.
    pub ramp_rtts: u32,
    /// A window's counted part, in round trips.
    pub window_rtts: u32,
    /// The least counted part: meters need some time to show a difference.
    pub shortest_window: Duration,
    /// The counted part is no longer than this, however long the transfer is (HTEE: 5 s).
    pub longest_window: Duration,
    /// The search may take at most this share of the expected transfer; else the model decides.
    pub search_share: f64,
    /// The search stops when this many windows in a row were clearly worse than the best.
    pub patience: u32,
    /// A window is clearly worse below this share of the best efficiency.
    pub clearly_worse: f64,
    /// The search runs again when the bandwidth has changed by this factor.
    pub link_change: f64,
}

impl Default for EhtConfig {
    fn default() -> Self {
        Self {
            weighting: Weighting::default(),
            objective: Objective::default(),
            as_good: 0.99,
            as_good_measured: 0.95,
            step: 3,
            efficient_channels: None,
            ramp_rtts: 4,
            window_rtts: 8,
            shortest_window: Duration::from_millis(800),
            longest_window: Duration::from_secs(5),
            search_share: 0.15,
            patience: 2,
            clearly_worse: 0.9,
            link_change: 1.5,
        }
    }
}
