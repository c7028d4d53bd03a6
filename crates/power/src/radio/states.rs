//! What a profile's states are called and how they follow each other, for drawing.

use pelton_algos::units::Watts;

use super::RadioProfile;

/// Where a radio is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Without traffic, asleep but for listening.
    Idle,
    /// On its way to the shared channel or to active.
    Promotion,
    /// On the shared channel.
    Shared,
    /// Bytes move.
    Active,
    /// Waiting for more, in the profile's phase of that index.
    Tail(u8),
}

/// One way from a state to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Where it begins.
    pub from: State,
    /// Where it leads.
    pub to: State,
    /// What makes it happen.
    pub when: String,
}

impl RadioProfile {
    /// The name of `state`, as the profile's source has it where it has one.
    pub fn state_name(&self, state: State) -> &str {
        match (state, &self.shared) {
            (State::Idle, _) => "idle",
            (State::Promotion, _) => "promotion",
            (State::Active, _) => "active",
            (State::Shared, Some(shared)) => &shared.name,
            (State::Shared, None) => "shared",
            (State::Tail(index), _) => {
                self.tail.get(usize::from(index)).map_or("tail", |tail| &tail.name)
            }
        }
    }

    /// Every state with its power: of active that without throughput, of promotion that of the last.
    pub fn states(&self) -> Vec<(State, Watts)> {
        let mut states = vec![(State::Idle, self.idle.mean_power())];
        if !self.promotion.duration.is_zero() {
            states.push((State::Promotion, self.promotion.power));
        }
        states.extend(self.shared.as_ref().map(|shared| (State::Shared, shared.power)));
        states.push((State::Active, self.active));
        let tails = self.tail.iter().enumerate();
        states.extend(tails.map(|(index, tail)| (State::Tail(index as u8), tail.power)));
        states
    }

    /// Every way from one state to another.
    pub fn transitions(&self) -> Vec<Transition> {
        let mut ways = Vec::new();
        let mut add = |from, to, when: String| ways.push(Transition { from, to, when });
        let mut rest = State::Idle;
        if let Some(shared) = &self.shared {
            let promoted = format!("traffic, {} s", shared.promotion.duration.as_secs_f64());
            add(State::Idle, State::Shared, promoted);
            let quiet = format!("{} s without traffic", shared.tail.as_secs_f64());
            add(State::Shared, State::Idle, quiet);
            rest = State::Shared;
        }
        if self.promotion.duration.is_zero() {
            add(rest, State::Active, "traffic".to_owned());
        } else {
            let when = match &self.shared {
                Some(shared) => format!("more than {} wait", shared.threshold),
                None => "traffic".to_owned(),
            };
            add(rest, State::Promotion, when);
            let after = format!("after {} s", self.promotion.duration.as_secs_f64());
            add(State::Promotion, State::Active, after);
        }
        let mut before = (State::Active, "no traffic".to_owned());
        for (index, tail) in self.tail.iter().enumerate() {
            let state = State::Tail(index as u8);
            add(before.0, state, before.1);
            add(state, State::Active, "traffic".to_owned());
            before = (state, format!("after {} s", tail.duration.as_secs_f64()));
        }
        add(before.0, rest, before.1);
        ways
    }
}
