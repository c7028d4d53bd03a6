//! Connections that are so many that they bring less than fewer did.

use crate::units::BitRate;

/// More streams are so many times as many: fewer differ by chance.
const MORE: f64 = 1.5;
/// And less is this part of what fewer brought. A full link brings as much over any number of them;
/// a buffer that overflows, a proxy or a disk that thrashes does not.
const LESS: f64 = 0.7;
/// Looks in a row that show it.
const LOOKS: u32 = 2;

/// What a look at an origin's streams shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No more than so many shall be used: they brought more.
    Crowd(u32),
    /// So few have not brought more again: it was the path that had changed.
    NoCrowd,
}

/// A cut that has to show whether it was right.
#[derive(Debug, Clone, Copy)]
struct Cut {
    fewer: u32,
    /// What too many brought.
    crowd: BitRate,
    looks: u32,
}

/// Compares what an origin brings over few and over many streams.
#[derive(Debug, Clone, Default)]
pub struct Crowding {
    /// Streams, and what they brought together.
    best: Option<(u32, BitRate)>,
    crowded: u32,
    cut: Option<Cut>,
}

impl Crowding {
    /// `streams`, each of which was in transfer for the whole time since the last look, brought
    /// `rate`. Returns how many of them brought more, once that is beyond doubt, and whether those do so again.
    pub fn on_look(&mut self, streams: u32, rate: BitRate) -> Option<Verdict> {
        if let Some(cut) = self.cut.as_mut().filter(|cut| streams <= cut.fewer) {
            // What was under way at the cut still came in the first look after it.
            cut.looks += 1;
            let has_helped = rate * LESS >= cut.crowd;
            if cut.looks == LOOKS && self.cut.take().is_some() && !has_helped {
                return Some(Verdict::NoCrowd);
            }
        }
        let Some((fewer, best)) = self.best else {
            self.best = Some((streams, rate));
            return None;
        };
        let is_crowded = f64::from(streams) >= f64::from(fewer) * MORE && rate < best * LESS;
        self.crowded = if is_crowded { self.crowded + 1 } else { 0 };
        if self.crowded == LOOKS {
            *self = Self { cut: Some(Cut { fewer, crowd: rate, looks: 0 }), ..Self::default() };
            return Some(Verdict::Crowd(fewer));
        }
        // Fewer streams that bring less tell that the link has changed, or that they end.
        if !is_crowded && (rate >= best || streams <= fewer) {
            self.best = Some((streams, rate));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdicts(looks: &[(u32, f64)]) -> Vec<Verdict> {
        let mut crowding = Crowding::default();
        let look =
            |(streams, mbps): &(u32, f64)| crowding.on_look(*streams, BitRate::from_mbps(*mbps));
        looks.iter().filter_map(look).collect()
    }

    fn looks(looks: &[(u32, f64)]) -> Option<u32> {
        match verdicts(looks).first() {
            Some(Verdict::Crowd(fewer)) => Some(*fewer),
            _ => None,
        }
    }

    #[test]
    fn more_streams_that_bring_less_are_too_many() {
        assert_eq!(looks(&[(4, 40.0), (64, 12.0), (64, 10.0)]), Some(4));
        assert_eq!(looks(&[(4, 40.0), (16, 45.0), (64, 12.0), (60, 10.0)]), Some(16));
    }

    #[test]
    fn a_cut_that_does_not_help_is_taken_back() {
        let crowd = [(4, 40.0), (64, 12.0), (64, 10.0)];
        let after = |looks: &[(u32, f64)]| verdicts(&[&crowd[..], looks].concat())[1..].to_vec();
        assert_eq!(after(&[(4, 10.0), (4, 38.0), (4, 9.0)]), []);
        assert_eq!(after(&[(10, 12.0), (4, 10.0), (4, 11.0), (4, 10.0)]), [Verdict::NoCrowd]);
    }

    #[test]
    fn a_full_link_a_dip_and_an_end_are_no_crowd() {
        assert_eq!(looks(&[(4, 40.0), (64, 40.0), (64, 38.0), (64, 39.0)]), None);
        assert_eq!(looks(&[(4, 40.0), (64, 12.0), (64, 40.0), (64, 12.0), (64, 40.0)]), None);
        assert_eq!(looks(&[(4, 40.0), (2, 20.0), (1, 10.0), (1, 8.0)]), None);
        assert_eq!(looks(&[(4, 40.0), (4, 4.0), (16, 4.0), (16, 4.0)]), None, "the link is slower");
    }

    proptest! {
        /// What it returns was better, and is fewer than there are.
        #[test]
        fn a_cut_leads_back_to_what_was_better(samples in proptest::collection::vec((1u32..200, 0.0f64..500.0), 0..100)) {
            let mut crowding = Crowding::default();
            for (at, (streams, mbps)) in samples.iter().enumerate() {
                let verdict = crowding.on_look(*streams, BitRate::from_mbps(*mbps));
                if let Some(Verdict::Crowd(fewer)) = verdict {
                    prop_assert!(fewer < *streams);
                    prop_assert!(samples[..at].iter().any(|(s, rate)| *s == fewer && mbps < rate));
                }
            }
        }
    }
}
