//! How streams are spread over the connections that they share.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// How many streams each connection of a host bears, as far as answers have told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bearers {
    streams: BTreeMap<u64, Borne>,
    /// The sum of them: each file in transfer asks for it.
    known: u32,
}

/// What one connection bears.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Borne {
    streams: u32,
    /// When it last brought anything of any of them.
    came_at: Timestamp,
}

impl Bearers {
    /// `connection` bears one stream more.
    pub fn add(&mut self, connection: u64) {
        self.streams.entry(connection).or_default().streams += 1;
        self.known += 1;
    }

    /// It bears one less.
    pub fn remove(&mut self, connection: u64) {
        if let Some(borne) = self.streams.get_mut(&connection) {
            borne.streams -= 1;
            self.known -= 1;
            if borne.streams == 0 {
                self.streams.remove(&connection);
            }
        }
    }

    /// Something of a stream that it bears came over `connection`.
    pub fn on_data(&mut self, now: Timestamp, connection: u64) {
        if let Some(borne) = self.streams.get_mut(&connection) {
            borne.came_at = now;
        }
    }

    /// When anything last came over `connection`, as far as it bears streams.
    pub fn came_at(&self, connection: u64) -> Option<Timestamp> {
        self.streams.get(&connection).map(|borne| borne.came_at)
    }

    /// Connections that bear so many `streams` at most: those of which that is not known have one each.
    pub fn connections(&self, streams: u32) -> u32 {
        self.streams.len() as u32 + streams.saturating_sub(self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_brings_others_is_not_silent() {
        let at = Timestamp::from_millis;
        let mut bearers = Bearers::default();
        (0..2).for_each(|_| bearers.add(1));
        bearers.on_data(at(5), 1);
        bearers.on_data(at(7), 2);
        bearers.remove(1);
        assert_eq!((bearers.came_at(1), bearers.came_at(2)), (Some(at(5)), None));
        bearers.remove(1);
        assert_eq!(bearers.came_at(1), None);
    }

    #[test]
    fn who_ends_leaves_its_connection_to_those_that_share_it() {
        let mut bearers = Bearers::default();
        for connection in [1, 1, 2] {
            bearers.add(connection);
        }
        assert_eq!(bearers.connections(5), 4, "two are asked for and may have one each");
        bearers.remove(2);
        assert_eq!(bearers.connections(2), 1, "both come over the first");
        bearers.remove(1);
        assert_eq!(bearers.connections(1), 1);
        bearers.remove(1);
        bearers.remove(1);
        assert_eq!(bearers.connections(0), 0);
    }
}
