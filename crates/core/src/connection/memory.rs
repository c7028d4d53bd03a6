//! The limit on memory, as the connections of a run and the pages that it reads keep to it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pelton_algos::memory::{DEFAULT_LIMIT, Http2Buffers, MemoryBudget, pages};
use pelton_algos::units::Bytes;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::pool::OriginSet;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Memory(Rc<Shared>);

struct Shared {
    budget: RefCell<MemoryBudget>,
    pages: Arc<Pages>,
    /// Whether an origin without any connection waits for room.
    is_wanted: Cell<bool>,
    freed: Notify,
    sets: RefCell<Vec<Weak<OriginSet>>>,
}

impl Default for Memory {
    fn default() -> Self {
        Self(Rc::new(Shared {
            budget: RefCell::new(MemoryBudget::new(DEFAULT_LIMIT, u32::MAX)),
            pages: Arc::new(Pages { most: pages(DEFAULT_LIMIT).0.into(), taken: 0.into() }),
            is_wanted: Cell::default(),
            freed: Notify::new(),
            sets: RefCell::default(),
        }))
    }
}

impl Memory {
    /// Another limit from now on, for `most` connections.
    pub(super) fn set(&self, limit: Bytes, most: u32) {
        self.0.budget.borrow_mut().set(limit, most);
        self.0.pages.most.store(pages(limit).0, Relaxed);
        self.0.freed.notify_waiters();
    }

    /// Takes part in the limit.
    pub(super) fn join(&self, set: &Rc<OriginSet>) {
        self.0.sets.borrow_mut().push(Rc::downgrade(set));
    }

    /// Room for one more connection of `set`. One without any gets what others do not use.
    pub(super) fn reserve(&self, set: &OriginSet) -> Option<Room> {
        let room = self.take().or_else(|| {
            if set.has_connections() {
                return None;
            }
            self.close_idle_of_others(set);
            let room = self.take();
            self.0.is_wanted.set(room.is_none());
            room
        })?;
        Some(room)
    }

    /// Connections of other origins than that of `set` close where they serve no request.
    pub(super) fn close_idle_of_others(&self, set: &OriginSet) {
        let others: Vec<_> = self.0.sets.borrow().iter().filter_map(Weak::upgrade).collect();
        let others = others.iter().filter(|other| !std::ptr::eq(&raw const ***other, set));
        others.for_each(|other| other.close_idle());
    }

    fn take(&self) -> Option<Room> {
        let fits = self.0.budget.borrow_mut().open();
        fits.then(|| {
            self.0.is_wanted.set(false);
            Room { memory: self.clone(), more: Cell::default() }
        })
    }

    /// How many more connections may be opened now.
    pub(super) fn further(&self) -> usize {
        self.0.budget.borrow().further() as usize
    }

    /// Whether a connection that is not in use is to make room for another origin.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.is_wanted.get()
    }

    /// Ends when there may be room again.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.0.freed.notified()
    }

    /// A page that is to be read as a whole.
    pub(super) fn page(&self) -> Page {
        Page { body: Vec::new(), taken: 0, pages: Arc::clone(&self.0.pages) }
    }
}

/// What one connection has of the limit, until it is dropped.
pub(super) struct Room {
    memory: Memory,
    more: Cell<Bytes>,
}

impl Room {
    /// What the connection may hold where it speaks HTTP/2.
    pub(super) fn http2(&self) -> Http2Buffers {
        let (more, buffers) = self.memory.0.budget.borrow_mut().widen();
        self.more.set(self.more.get() + more);
        buffers
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.0.budget.borrow_mut().close(self.more.get());
        self.memory.0.freed.notify_waiters();
    }
}

/// Bytes of pages that may be there, and that are.
struct Pages {
    most: AtomicU64,
    taken: AtomicU64,
}

/// A page that is read as a whole. It has its part of the limit until it is dropped.
pub(crate) struct Page {
    body: Vec<u8>,
    taken: u64,
    pages: Arc<Pages>,
}

impl Page {
    /// Appends `bytes`, if there is room for them.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> bool {
        let length = (self.body.len() + bytes.len()) as u64;
        if self.would_take(length) > self.pages.most.load(Relaxed) {
            return false;
        }
        self.body.extend_from_slice(bytes);
        let held = self.body.capacity() as u64;
        self.pages.taken.store(self.would_take(held), Relaxed);
        self.taken = held;
        true
    }

    /// What all pages take if this one takes so much.
    fn would_take(&self, bytes: u64) -> u64 {
        (self.pages.taken.load(Relaxed) + bytes).saturating_sub(self.taken)
    }
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.pages.taken.store(self.would_take(0), Relaxed);
    }
}
