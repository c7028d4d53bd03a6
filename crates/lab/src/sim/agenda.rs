//! What is going to happen, in order of time; what was planned first happens first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use pelton_algos::time::Timestamp;

#[derive(Debug)]
struct Entry<T> {
    at: Timestamp,
    number: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A queue of things with their moments.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    entries: BinaryHeap<Reverse<Entry<T>>>,
    number: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), number: 0 }
    }
}

impl<T> Agenda<T> {
    pub(super) fn plan(&mut self, at: Timestamp, what: T) {
        self.number += 1;
        self.entries.push(Reverse(Entry { at, number: self.number, what }));
    }

    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.entries.pop().map(|Reverse(entry)| entry.what)
    }
}
