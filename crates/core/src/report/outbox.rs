//! Events on their way to who listens.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::time::Instant;

use crate::events::RunEvent;

/// How long an event may wait for others. Nobody sees that.
const INTERVAL: Duration = Duration::from_millis(10);

/// Hands events over, one at least.
pub(crate) type Tell = Box<dyn Fn(Vec<RunEvent>)>;

/// Events that are told together. Who listens may be another thread, and to wake it for each event by
/// itself is much of the work with many short files.
pub(super) struct Outbox {
    tell: Tell,
    waiting: RefCell<Vec<RunEvent>>,
    /// When there may be told something again.
    due: Cell<Option<Instant>>,
}

impl Outbox {
    pub(super) fn new(tell: Tell) -> Self {
        Self { tell, waiting: RefCell::default(), due: Cell::default() }
    }

    pub(super) fn put(&self, event: RunEvent) {
        self.waiting.borrow_mut().push(event);
    }

    /// Tells what waits, if that is due by `now`. Else the answer is when it will be.
    pub(super) fn tell(&self, now: Instant) -> Option<Instant> {
        if self.waiting.borrow().is_empty() {
            return None;
        }
        let due = self.due.get().filter(|due| now < *due);
        if due.is_none() {
            self.flush();
            self.due.set(Some(now + INTERVAL));
        }
        due
    }

    /// Tells what waits.
    pub(super) fn flush(&self) {
        let waiting = self.waiting.take();
        if !waiting.is_empty() {
            (self.tell)(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::events::Warning;

    #[test]
    fn events_are_told_together_each_once_and_in_their_order() {
        let told = Rc::<RefCell<Vec<Vec<f64>>>>::default();
        let sink = Rc::clone(&told);
        let outbox = Outbox::new(Box::new(move |events| {
            let number = |event| match event {
                RunEvent::Warning(Warning { at_s, .. }) => at_s,
                _ => panic!("another event"),
            };
            sink.borrow_mut().push(events.into_iter().map(number).collect());
        }));
        let put = |at_s| {
            let (url, reason) = Default::default();
            outbox.put(RunEvent::Warning(Warning { at_s, url, reason }));
        };
        let now = Instant::now();
        assert_eq!(outbox.tell(now), None, "there is nothing");
        put(1.0);
        put(2.0);
        assert!(told.borrow().is_empty());
        assert_eq!(outbox.tell(now), None);
        assert_eq!(told.borrow()[..], [[1.0, 2.0]]);
        put(3.0);
        assert_eq!(outbox.tell(now), Some(now + INTERVAL));
        assert_eq!(told.borrow()[..], [[1.0, 2.0]]);
        assert_eq!(outbox.tell(now + INTERVAL), None);
        assert_eq!(told.borrow()[..], [vec![1.0, 2.0], vec![3.0]]);
        put(4.0);
        outbox.flush();
        outbox.flush();
        assert_eq!(told.borrow()[..], [vec![1.0, 2.0], vec![3.0], vec![4.0]]);
    }
}
