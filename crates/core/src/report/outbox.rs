//! Events on their way to who listens.

use std::cell::RefCell;

use crate::events::RunEvent;

/// Events that are told together. Who listens may be another thread, and to wake it for each event by
/// itself is much of the work with many short files.
pub(super) struct Outbox {
    tell: Box<dyn Fn(RunEvent)>,
    waiting: RefCell<Vec<RunEvent>>,
}

impl Outbox {
    pub(super) fn new(tell: Box<dyn Fn(RunEvent)>) -> Self {
        Self { tell, waiting: RefCell::default() }
    }

    pub(super) fn put(&self, event: RunEvent) {
        self.waiting.borrow_mut().push(event);
    }

    /// Tells what was put there since the last time.
    pub(super) fn flush(&self) {
        self.waiting.take().into_iter().for_each(&self.tell);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::events::Warning;

    #[test]
    fn events_are_told_together_each_once_and_in_their_order() {
        let told = Rc::<RefCell<Vec<f64>>>::default();
        let sink = Rc::clone(&told);
        let outbox = Outbox::new(Box::new(move |event| {
            let RunEvent::Warning(Warning { at_s, .. }) = event else { panic!("another event") };
            sink.borrow_mut().push(at_s);
        }));
        let put = |at_s| {
            let (url, reason) = Default::default();
            outbox.put(RunEvent::Warning(Warning { at_s, url, reason }));
        };
        put(1.0);
        put(2.0);
        assert!(told.borrow().is_empty());
        outbox.flush();
        outbox.flush();
        assert_eq!(told.borrow()[..], [1.0, 2.0]);
        put(3.0);
        outbox.flush();
        assert_eq!(told.borrow()[..], [1.0, 2.0, 3.0]);
    }
}
