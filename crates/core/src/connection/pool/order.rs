//! Whether an origin answers requests in their order over HTTP/1.1, and what follows from that.
//!
//! RFC 9112, section 9.3.2, has servers do so; some lose requests, and what stands between may do
//! worse. So the head of what is asked for is asked for once more right behind it: the answers tell
//! which is which, for the second has no body and says the same as the first. That is done before any request
//! waits behind another, and for each that does: what was lost, said twice or swapped would otherwise put
//! the bytes of one file under the name of another.

use std::cell::{Cell, RefCell};

use http::header::{CONTENT_LENGTH, ETAG, LAST_MODIFIED, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};

/// What the answers to a request and to one for its head have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connection) struct Facts {
    status: StatusCode,
    fields: [Option<HeaderValue>; 4],
}

impl Facts {
    pub(in crate::connection) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let fields = [CONTENT_LENGTH, ETAG, LAST_MODIFIED, LOCATION];
        Self { status, fields: fields.map(|name| headers.get(name).cloned()) }
    }

    /// Whether the request was not understood.
    pub(in crate::connection) fn is_bad_request(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    /// Whether they are those of an answer that brings what was asked for.
    pub(super) fn are_of_a_body(&self) -> bool {
        self.status.is_success()
    }

    /// Whether they name a version, and not only a length.
    fn name_a_version(&self) -> bool {
        let [_, tag, date, _] = &self.fields;
        tag.is_some() || date.is_some()
    }

    /// Whether they tell one file from another at all.
    fn are_telling(&self) -> bool {
        self.fields.iter().any(Option::is_some)
    }
}

/// Times that the order is found out: the first may end for another reason.
const MOST_TRIES: u32 = 2;

/// So many requests in a row that were sent behind another and got no answer: each connection is
/// closed after its answer, or what is behind is forgotten.
const MOST_UNANSWERED: u32 = 8;

/// What is known of an origin's order.
#[derive(Debug)]
pub(in crate::connection) struct Order {
    /// Requests that each connection shall bear; 0 where it is only to be found out whether it can.
    wanted: Cell<u32>,
    is_kept: Cell<Option<bool>>,
    is_being_found_out: Cell<bool>,
    /// Its answers name versions: files hardly look alike.
    names_versions: Cell<bool>,
    tries: Cell<u32>,
    unanswered: Cell<u32>,
    /// Those of the first answers, which came one at a time.
    first: RefCell<Vec<Facts>>,
    /// How many of those were like another.
    alike_first: Cell<usize>,
    /// Times that two of one piece were alike.
    alike: Cell<u32>,
}

/// So many first answers tell whether files can be told from each other.
const FIRST_ANSWERS: usize = 32;

/// So many tell whether most files look alike.
const ENOUGH: usize = 8;

/// Where so large a part of them is like another it is not by chance.
const ALIKE_PART: usize = 4;

/// Pieces in which two were alike by chance: a few hundred sizes meet now and then.
const MOST_ALIKE: u32 = 4;

impl Default for Order {
    fn default() -> Self {
        Self {
            wanted: Cell::new(1),
            is_kept: Cell::default(),
            is_being_found_out: Cell::default(),
            names_versions: Cell::default(),
            tries: Cell::default(),
            unanswered: Cell::default(),
            first: RefCell::default(),
            alike_first: Cell::default(),
            alike: Cell::default(),
        }
    }
}

impl Order {
    pub(super) fn want(&self, pipelined: u32) {
        self.wanted.set(pipelined);
    }

    /// Requests that a connection takes at a time. What is asked for together and looks alike is asked for again.
    pub(super) fn pipelined(&self) -> u32 {
        let are_told_apart = || self.names_versions.get() || self.first.borrow().len() >= ENOUGH;
        let may_follow = self.is_kept.get() == Some(true) && are_told_apart();
        if may_follow { self.wanted.get().max(1) } else { 1 }
    }

    /// Whether it is to be found out with the next request. If so, say [`found_out`](Self::found_out).
    pub(super) fn begin_finding_out(&self) -> bool {
        let begins = self.wanted.get() != 1
            && self.is_kept.get().is_none()
            && !self.is_being_found_out.get();
        if begins {
            self.is_being_found_out.set(true);
            self.tries.set(self.tries.get() + 1);
        }
        begins
    }

    /// What a request and one for its head behind it were answered with; `None` for no answer.
    /// Returns whether the order is kept if that is known now.
    pub(super) fn found_out(&self, answers: Option<(&Facts, &Facts)>) -> Option<bool> {
        self.is_being_found_out.set(false);
        if self.is_kept.get().is_some() {
            return None;
        }
        let is_kept = answers.is_some_and(|(get, head)| get.are_telling() && get == head);
        self.names_versions.set(answers.is_some_and(|(get, _)| get.name_a_version()));
        if is_kept || self.tries.get() >= MOST_TRIES {
            self.is_kept.set(Some(is_kept));
        }
        self.is_kept.get()
    }

    /// What a request on a connection that bears several, and one for its head behind it, were answered
    /// with. Returns whether the first was surely answered with what was asked for, and whether it shows
    /// for the first time that the order is not kept.
    pub(super) fn on_proof(&self, first: &Facts, second: &Facts) -> (bool, bool) {
        if first.are_telling() && first == second {
            self.unanswered.set(0);
            return (true, false);
        }
        (false, self.is_kept.replace(Some(false)) != Some(false))
    }

    /// A request that nobody was ahead of was answered. Returns whether two of the first answers have shown
    /// that files can't be told from each other.
    pub(super) fn on_first(&self, facts: &Facts) -> bool {
        let mut first = self.first.borrow_mut();
        if self.wanted.get() == 1 || !facts.are_of_a_body() || first.len() >= FIRST_ANSWERS {
            return false;
        }
        let is_alike = first.contains(facts);
        first.push(facts.clone());
        let alike = self.alike_first.get() + usize::from(is_alike);
        self.alike_first.set(alike);
        let are_alike = alike > 1 && alike * ALIKE_PART >= first.len();
        are_alike && self.is_kept.replace(Some(false)) != Some(false)
    }

    /// Two files that were asked for in one piece can't be told from each other, or one was given to two.
    /// Returns whether this shows that it is not by chance.
    pub(super) fn on_alike(&self) -> bool {
        self.alike.set(self.alike.get() + 1);
        self.alike.get() >= MOST_ALIKE && self.is_kept.replace(Some(false)) != Some(false)
    }

    /// A request that was sent behind another got no answer: because the connection ended before its
    /// turn, or in it. Returns whether this shows that the order is not kept.
    pub(super) fn unanswered(&self, had_turn: bool) -> bool {
        self.unanswered.set(self.unanswered.get() + 1);
        let is_broken = had_turn || self.unanswered.get() >= MOST_UNANSWERED;
        is_broken && self.is_kept.replace(Some(false)) != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn files_that_look_the_same_by_chance_do_not_end_it_and_others_do() {
        const TAGS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let tagged = |tag| facts(StatusCode::OK, &[(ETAG, tag)]);
        let order = Order::default();
        order.want(3);
        let mut told = TAGS.iter().chain(&["a", "b"]).map(|tag| order.on_first(&tagged(*tag)));
        assert!(!told.any(|told| told), "two of twelve");
        assert!((0..3).all(|_| !order.on_alike()) && order.on_alike() && !order.on_alike());

        let order = Order::default();
        order.want(3);
        let told = [(); 4].map(|()| order.on_first(&tagged("a")));
        assert_eq!(told, [false, false, true, false]);
        let order = Order::default();
        assert!([(); 4].iter().all(|()| !order.on_first(&tagged("a"))), "nobody wants to pipeline");
    }

    fn facts(status: StatusCode, fields: &[(HeaderName, &'static str)]) -> Facts {
        let value = |(name, value): &(HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        Facts::of(status, &fields.iter().map(value).collect())
    }

    fn wanting() -> Order {
        let order = Order::default();
        order.want(4);
        order
    }

    #[test]
    fn connections_bear_several_requests_once_the_order_was_seen() {
        let order = Order::default();
        assert!(!order.begin_finding_out(), "nobody wants that");
        order.want(4);
        assert!(order.begin_finding_out());
        assert!(!order.begin_finding_out(), "once is enough");
        assert_eq!(order.pipelined(), 1);
        let same = facts(StatusCode::OK, &[(CONTENT_LENGTH, "5"), (ETAG, "\"1\"")]);
        assert_eq!(order.found_out(Some((&same, &same))), Some(true));
        assert_eq!(order.pipelined(), 4);
        order.want(1);
        assert_eq!(order.pipelined(), 1);
    }

    #[test]
    fn files_of_which_only_lengths_are_known_are_looked_at_first() {
        const LENGTHS: [&str; ENOUGH] = ["1", "2", "3", "4", "5", "6", "7", "8"];
        let order = wanting();
        order.begin_finding_out();
        let of = |length| facts(StatusCode::OK, &[(CONTENT_LENGTH, length)]);
        assert_eq!(order.found_out(Some((&of("9"), &of("9")))), Some(true));
        let bears = LENGTHS.map(|length| {
            let before = order.pipelined();
            assert!(!order.on_first(&of(length)));
            (before, order.pipelined())
        });
        assert_eq!(bears[..ENOUGH - 1], [(1, 1); ENOUGH - 1]);
        assert_eq!(bears[ENOUGH - 1], (1, 4));
    }

    #[test]
    fn other_answers_and_none_are_no_order() {
        let five = facts(StatusCode::OK, &[(CONTENT_LENGTH, "5")]);
        let six = facts(StatusCode::OK, &[(CONTENT_LENGTH, "6")]);
        let none = facts(StatusCode::OK, &[]);
        let missing = facts(StatusCode::NOT_FOUND, &[(CONTENT_LENGTH, "5")]);
        for answers in [None, Some((&five, &six)), Some((&none, &none)), Some((&five, &missing))] {
            let order = wanting();
            for result in [None, Some(false)] {
                assert!(order.begin_finding_out());
                assert_eq!(order.found_out(answers), result);
            }
            assert!(!order.begin_finding_out(), "it is not tried for ever");
            assert_eq!(order.pipelined(), 1);
        }
    }

    #[test]
    fn who_does_not_answer_what_is_behind_is_asked_for_one_at_a_time() {
        let same = facts(StatusCode::OK, &[(ETAG, "\"1\"")]);
        let kept = || {
            let order = wanting();
            order.begin_finding_out();
            order.found_out(Some((&same, &same)));
            order
        };
        let order = kept();
        assert!(order.unanswered(true), "it had its turn");
        assert_eq!(order.pipelined(), 1);
        let order = kept();
        for _ in 0..3 {
            for _ in 1..MOST_UNANSWERED {
                assert!(!order.unanswered(false), "connections end now and then");
            }
            assert_eq!(order.on_proof(&same, &same), (true, false));
        }
        assert_eq!(order.pipelined(), 4);
        let broken = (0..MOST_UNANSWERED).filter(|_| order.unanswered(false)).count();
        assert_eq!((broken, order.pipelined()), (1, 1));
        let other = facts(StatusCode::OK, &[(ETAG, "\"2\"")]);
        let order = kept();
        assert_eq!(order.on_proof(&same, &other), (false, true));
        assert_eq!(order.on_proof(&same, &other), (false, false), "it is told once");
        assert_eq!(order.pipelined(), 1);
    }
}
