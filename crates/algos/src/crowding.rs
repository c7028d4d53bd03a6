//! Connections that are so many that they bring less than fewer did.

use crate::units::BitRate;

/// More streams are so many times as many: fewer differ by chance.
const MORE: f64 = 1.5;
/// And less is this part of what fewer brought. A full link brings as much over any number of them;
/// a buffer that overflows, a proxy or a disk that thrashes does not.
const LESS: f64 = 0.7;
/// Looks in a row that show it.
const LOOKS: u32 = 2;

/// Compares what an origin brings over few and over many streams.
#[derive(Debug, Clone, Default)]
pub struct Crowding {
    /// Streams, and what they brought together.
    best: Option<(u32, BitRate)>,
    crowded: u32,
}

impl Crowding {
    /// `streams`, each of which was in transfer for the whole time since the last look, brought
    /// `rate`. Returns how many of them brought more, once that is beyond doubt: no more than that
    /// shall be used.
    pub fn on_look(&mut self, streams: u32, rate: BitRate) -> Option<u32> {
        let Some((fewer, best)) = self.best else {
            self.best = Some((streams, rate));
            return None;
        };
        let is_crowded = f64::from(streams) >= f64::from(fewer) * MORE && rate < best * LESS;
        self.crowded = if is_crowded { self.crowded + 1 } else { 0 };
        if self.crowded == LOOKS {
            *self = Self::default();
            return Some(fewer);
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

    fn looks(looks: &[(u32, f64)]) -> Option<u32> {
        let mut crowding = Crowding::default();
        looks
            .iter()
            .find_map(|(streams, mbps)| crowding.on_look(*streams, BitRate::from_mbps(*mbps)))
    }

    #[test]
    fn more_streams_that_bring_less_are_too_many() {
        assert_eq!(looks(&[(4, 40.0), (64, 12.0), (64, 10.0)]), Some(4));
        assert_eq!(looks(&[(4, 40.0), (16, 45.0), (64, 12.0), (60, 10.0)]), Some(16));
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
                if let Some(fewer) = crowding.on_look(*streams, BitRate::from_mbps(*mbps)) {
                    prop_assert!(fewer < *streams);
                    prop_assert!(samples[..at].iter().any(|(s, rate)| *s == fewer && mbps < rate));
                }
            }
        }
    }
}
