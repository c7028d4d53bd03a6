//! Connections that have reached their host and wait until they may shake TLS hands.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

use super::super::telemetry::Protocol;
use super::OriginSet;

/// How many TLS handshakes may begin.
#[derive(Default)]
pub(super) struct Gate {
    /// With those whose connections are open. `None`: any number.
    allowed: Cell<Option<usize>>,
    under_way: Cell<usize>,
    held: Cell<usize>,
    /// Connections that are wanted, whoever waits.
    wanted: Cell<usize>,
    changed: Notify,
}

impl Gate {
    /// A connection has ended: another one may begin.
    pub(super) fn note_end(&self) {
        self.changed.notify_waiters();
    }
}

/// Counts a connection among those that shake hands, or wait for that.
pub(super) struct Counted(Rc<OriginSet>, fn(&Gate) -> &Cell<usize>);

impl Counted {
    fn among(set: &Rc<OriginSet>, those: fn(&Gate) -> &Cell<usize>) -> Self {
        let count = those(&set.gate);
        count.set(count.get() + 1);
        Self(Rc::clone(set), those)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let count = (self.1)(&self.0.gate);
        count.set(count.get() - 1);
        self.0.gate.changed.notify_waiters();
    }
}

impl OriginSet {
    /// Lets so many TLS connections be there or be opened, or any number. Who has waited for that while more than those
    /// `wanted` exist gives up.
    pub(in crate::connection) fn set_handshakes(&self, handshakes: Option<usize>, wanted: usize) {
        self.gate.allowed.set(handshakes);
        self.gate.wanted.set(wanted);
        self.gate.changed.notify_waiters();
    }

    /// Waits until a connection that has reached its host may shake TLS hands. `None` where it is not wanted any more.
    pub(super) async fn begin_handshake(self: &Rc<Self>) -> Option<Counted> {
        let mut held = None;
        loop {
            let changed = self.gate.changed.notified();
            if self.may_begin_handshake() {
                break;
            }
            held.get_or_insert_with(|| Counted::among(self, |gate| &gate.held));
            changed.await;
        }
        if held.is_some() && !self.is_wanted() {
            return None;
        }
        Some(Counted::among(self, |gate| &gate.under_way))
    }

    fn may_begin_handshake(&self) -> bool {
        let state = self.state.borrow();
        let open = state.connections.iter().filter(|it| !it.is_closed()).count();
        self.gate.allowed.get().is_none_or(|most| open + self.gate.under_way.get() < most)
    }

    /// Whether one of those that wait is to go on.
    fn is_wanted(&self) -> bool {
        let state = self.state.borrow();
        let are_shared = state.connections.iter().any(|it| it.protocol == Protocol::Http2);
        let others = state.opening.saturating_sub(self.gate.held.get());
        state.existing() <= self.gate.wanted.get() || !are_shared && state.waiters.len() > others
    }
}
