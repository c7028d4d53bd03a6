//! Events on their way to the loop.

use std::cell::RefCell;

use tokio::sync::Notify;

use crate::connection::ConnectionEvent;
use crate::engine::Event;

/// Events on their way from streams to the loop. Bytes of one stream that arrive together are one
/// event, so that a fast link does not cost an event a chunk.
#[derive(Default)]
pub(crate) struct Mailbox {
    events: RefCell<Vec<Event>>,
    pub(super) arrived: Notify,
}

impl Mailbox {
    pub(crate) fn put(&self, event: Event) {
        let mut events = self.events.borrow_mut();
        if let (Some(Event::Data { stream: last, bytes: sum }), Event::Data { stream, bytes }) =
            (events.last_mut(), &event)
            && last == stream
        {
            *sum += bytes;
            return;
        }
        events.push(event);
        self.arrived.notify_one();
    }

    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.borrow_mut())
    }

    /// Takes note of what a connection tells.
    pub(crate) fn put_connection_event(&self, event: &ConnectionEvent) {
        match event {
            ConnectionEvent::Proxied { origin, proxy } => {
                self.put(Event::Proxied { origin: origin.clone(), proxy: proxy.clone() });
            }
            ConnectionEvent::Reached { origin, rtt } => {
                self.put(Event::Reached { origin: origin.clone(), rtt: *rtt });
            }
            ConnectionEvent::Opened { origin, protocol, .. } => {
                self.put(Event::Connected { origin: origin.clone(), protocol: *protocol });
            }
            ConnectionEvent::Pipelines { origin, does } => {
                self.put(Event::Pipelines { origin: origin.clone(), does: *does });
            }
            ConnectionEvent::Unserved { origin, served } => {
                self.put(Event::Unserved { origin: origin.clone(), served: *served });
            }
            ConnectionEvent::Rtt { rtt, .. } => self.put(Event::Rtt(*rtt)),
            ConnectionEvent::RoundTrip { rtt, .. } => self.put(Event::RoundTrip(*rtt)),
            ConnectionEvent::Loss { .. } => self.put(Event::Loss),
            ConnectionEvent::Pace(pace) => self.put(Event::Pace(*pace)),
            _ => {}
        }
    }
}
