//! The events of a job on their way to C, and the end of it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::code::PeltonCode;
use super::error::Failure;
use super::event::PeltonEvent;
use super::outcome::Outcome;
use super::signal::Signal;

/// Events that wait for pelton_next_event, and how the run ended.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Box<PeltonEvent>>,
    outcome: Option<Outcome>,
    /// No event comes after those that wait.
    is_complete: bool,
    signal: Option<Signal>,
}

impl State {
    /// Makes the file descriptor readable exactly when a call would not wait.
    fn show(&mut self) {
        let is_ready = !self.waiting.is_empty() || self.is_complete;
        if let Some(signal) = &mut self.signal {
            signal.set(is_ready);
        }
    }
}

impl Queue {
    /// Adds an event. One that says how far the run is replaces an older one that nobody has read, so
    /// that what waits is bounded by what happens and not by how long it takes.
    pub(super) fn put(&self, event: PeltonEvent) {
        let mut state = self.lock();
        if event.is_progress() && state.waiting.back().is_some_and(|last| last.is_progress()) {
            state.waiting.pop_back();
        }
        state.waiting.push_back(Box::new(event));
        state.show();
        drop(state);
        self.changed.notify_all();
    }

    /// The run is over; further events may follow.
    pub(super) fn end(&self, outcome: Outcome) {
        self.lock().outcome = Some(outcome);
        self.changed.notify_all();
    }

    /// No event follows.
    pub(super) fn complete(&self) {
        let mut state = self.lock();
        state.is_complete = true;
        state.show();
        drop(state);
        self.changed.notify_all();
    }

    /// The next event within `patience`; forever without one.
    pub(super) fn next(&self, patience: Option<Duration>) -> Result<Box<PeltonEvent>, Failure> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.is_complete;
        let mut state = self.wait(patience, idle);
        let next = state.waiting.pop_front();
        state.show();
        let none = if state.is_complete { PeltonCode::End } else { PeltonCode::Again };
        next.ok_or_else(|| Failure::nothing(none))
    }

    /// How the run ended, once that has been told, within `patience`.
    pub(super) fn outcome_told(&self, patience: Option<Duration>) -> Result<Outcome, Failure> {
        let state = self.wait(patience, |state| !state.is_complete);
        let outcome = state.outcome.clone().filter(|_| state.is_complete);
        outcome.ok_or_else(|| Failure::nothing(PeltonCode::Again))
    }

    /// How the run ended, if it is over.
    pub(super) fn outcome(&self) -> Result<Outcome, Failure> {
        self.lock().outcome.clone().ok_or_else(|| Failure::nothing(PeltonCode::Again))
    }

    /// A file descriptor that is readable while [`next`](Self::next) would not wait. It ends with the
    /// queue.
    pub(super) fn descriptor(&self) -> Result<i32, Failure> {
        let mut state = self.lock();
        let signal = match state.signal.take() {
            Some(signal) => signal,
            None => Signal::new()?,
        };
        let descriptor = signal.descriptor();
        state.signal = Some(signal);
        state.show();
        Ok(descriptor)
    }

    fn wait(
        &self,
        patience: Option<Duration>,
        is_idle: impl Fn(&mut State) -> bool,
    ) -> MutexGuard<'_, State> {
        let state = self.lock();
        if let Some(time) = patience {
            let waited = self.changed.wait_timeout_while(state, time, is_idle);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let waited = self.changed.wait_while(state, is_idle);
            waited.unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
