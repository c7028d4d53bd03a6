//! How streams are spread over the connections that they share.

use std::collections::BTreeMap;

/// How many streams each connection of a host bears, as far as answers have told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bearers {
    streams: BTreeMap<u64, u32>,
    /// The sum of them: each file in transfer asks for it.
    known: u32,
}

impl Bearers {
    /// `connection` bears one stream more.
    pub fn add(&mut self, connection: u64) {
        *self.streams.entry(connection).or_default() += 1;
        self.known += 1;
    }

    /// It bears one less.
    pub fn remove(&mut self, connection: u64) {
        if let Some(streams) = self.streams.get_mut(&connection) {
            *streams -= 1;
            self.known -= 1;
            if *streams == 0 {
                self.streams.remove(&connection);
            }
        }
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
