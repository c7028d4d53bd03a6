//! Connections that have reached their host and wait until they may shake TLS hands.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

use super::super::telemetry::Protocol;
use super::OriginSet;

/// How many TLS handshakes may begin.
pub(super) struct Gate {
    allowed: Cell<usize>,
    /// Since there was no bound.
    begun: Cell<usize>,
    held: Cell<usize>,
    /// Connections that are wanted, whoever waits.
    wanted: Cell<usize>,
    changed: Notify,
}

impl Default for Gate {
    fn default() -> Self {
        let (begun, held, wanted) = Default::default();
        Self { allowed: Cell::new(usize::MAX), begun, held, wanted, changed: Notify::new() }
    }
}

/// The right to shake hands, which is given back where that fails.
pub(super) struct Passed(Option<Rc<OriginSet>>);

impl Passed {
    pub(super) fn end_established(mut self) {
        self.0 = None;
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if let Some(set) = &self.0 {
            set.gate.begun.set(set.gate.begun.get().saturating_sub(1));
            set.gate.changed.notify_waiters();
        }
    }
}

/// Counts who waits.
struct Held<'a>(&'a Gate);

impl<'a> Held<'a> {
    fn at(gate: &'a Gate) -> Self {
        gate.held.set(gate.held.get() + 1);
        Self(gate)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.set(self.0.held.get() - 1);
    }
}

impl OriginSet {
    /// Lets so many TLS handshakes begin in all. Who has waited for that while more connections than those `wanted` exist
    /// gives up.
    pub(in crate::connection) fn set_handshakes(&self, handshakes: usize, wanted: usize) {
        if handshakes == usize::MAX {
            self.gate.begun.set(0);
        }
        self.gate.allowed.set(handshakes);
        self.gate.wanted.set(wanted);
        self.gate.changed.notify_waiters();
    }

    /// Waits until a connection that has reached its host may shake TLS hands. `None` where it is not wanted any more.
    pub(super) async fn begin_handshake(self: &Rc<Self>) -> Option<Passed> {
        let gate = &self.gate;
        let mut held = None;
        loop {
            let changed = gate.changed.notified();
            if gate.begun.get() < gate.allowed.get() {
                break;
            }
            held.get_or_insert_with(|| Held::at(gate));
            changed.await;
        }
        if held.is_some() && !self.is_wanted() {
            return None;
        }
        gate.begun.set(gate.begun.get() + 1);
        Some(Passed(Some(Rc::clone(self))))
    }

    /// Whether one of those that wait is to go on.
    fn is_wanted(&self) -> bool {
        let state = self.state.borrow();
        let are_shared = state.connections.iter().any(|it| it.protocol == Protocol::Http2);
        let others = state.opening.saturating_sub(self.gate.held.get());
        state.existing() <= self.gate.wanted.get() || !are_shared && state.waiters.len() > others
    }
}
