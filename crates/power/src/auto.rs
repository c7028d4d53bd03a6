//! Which meter a run gets when nobody named one.

use crate::meter::PowerMeter;
use crate::modelled::{Modelled, ModelledConfig};

/// A meter, and why it is this one.
pub struct Choice {
    /// The meter.
    pub meter: Box<dyn PowerMeter>,
    /// One line for people.
    pub reason: String,
}

/// Picks the best meter that this version has for this machine: always the modelled one.
pub fn auto(config: ModelledConfig) -> Choice {
    let meter = Box::new(Modelled::new(config));
    let reason = format!("no hardware meter is read in this version: {}", meter.source());
    Choice { meter, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_says_that_it_is_a_model() {
        let choice = auto(ModelledConfig::default());
        assert_eq!(choice.reason, "no hardware meter is read in this version: modelled: wifi+cpu");
    }
}
