//! What is known of an origin.

use std::time::Duration;

use pelton_algos::crowding::Crowding;
use pelton_algos::handshakes::HandshakePace;
use pelton_algos::limits::OriginBudget;
use pelton_algos::machines::Machines;
use pelton_algos::overdue::Trust;
use pelton_algos::refused_files::{Circumstances, FirstRequests, Forbidding};
use pelton_algos::sharing::Bearers;
use pelton_algos::tail::Tail;
use pelton_algos::time::Timestamp;

use super::redirects::LeadsTo;
use crate::connection::Origin;

/// An origin by its number in [`Engine::origins`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OriginId(pub(super) u32);

/// How far anybody has come with an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contact {
    None,
    /// It took a connection, whatever became of that.
    Reached,
    Answered,
}

/// What had become of a file before it was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedBefore {
    pub(super) was_forbidden: bool,
    /// How often in a row it was refused.
    pub(super) refused: u32,
    /// How many attempts have failed.
    pub(super) attempt: u64,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct OriginState {
    pub(super) origin: Origin,
    /// What it is asked through.
    pub(super) proxy: Option<String>,
    pub(super) budget: OriginBudget,
    pub(super) first_requests: FirstRequests,
    pub(super) tail: Tail,
    pub(super) crowding: Crowding,
    pub(super) trust: Trust,
    pub(super) handshakes: HandshakePace,
    pub(super) streams: u32,
    /// Those of them that were answered.
    pub(super) served: u32,
    /// Where they share connections: which.
    pub(super) bearers: Bearers,
    /// Bytes that came since its streams were looked at.
    pub(super) came: u64,
    /// Files in transfer, by class.
    pub(super) files: [u32; 3],
    /// Those of them that have no stream.
    pub(super) idle: u32,
    /// Answers requests in their order over HTTP/1.1, as far as known. Who has refused one is asked for
    /// one at a time.
    pub(super) pipelines: Option<bool>,
    /// The last file that it told of can be had in ranges; most can, so it is taken for granted.
    pub(super) gives_ranges: bool,
    /// Those that answer under its name.
    pub(super) machines: Machines,
    /// Requests in a row for the first part of a file that were answered otherwise.
    pub(super) refused_parts: u32,
    pub(super) contact: Contact,
    /// Requests that it has answered as it should.
    pub(super) answered: u64,
    /// When the last one was made of the requests that it has answered.
    pub(super) answered_from: Timestamp,
    pub(super) forbidding: Forbidding,
    pub(super) leads_to: LeadsTo,
    /// It has refused requests as too many: it is asked for as few as can be.
    pub(super) has_had_enough: bool,
    /// It has answered nothing but 500, 502 and 504 for so long that the files are taken to be the reason.
    pub(super) has_faults_for_good: bool,
    /// Failures to connect since the origin last answered.
    pub(super) connect_failures: u32,
    /// The last time it had taken a connection, and was silent.
    pub(super) takes_connections: bool,
    /// When the first and the last one of them was counted.
    pub(super) failing_since: Option<Timestamp>,
    pub(super) failed_at: Option<Timestamp>,
    /// It was said that it is waited for.
    pub(super) has_told_of_wait: bool,
    /// Some files wait for as long as it asked for with a 503.
    pub(super) some_wait_as_asked: bool,
    /// When anything came last.
    pub(super) came_at: Timestamp,
    /// When it was asked where it had nothing to do, or answered, and how many answers all hosts had given by then.
    pub(super) sign_at: Timestamp,
    pub(super) answers_before: u32,
    /// How often it has been waited for in vain since, and how many further requests may find out whether it answers those.
    pub(super) silences: u32,
    pub(super) probes: u32,
    /// Most connections that it was asked to have open, or that had requests.
    pub(super) opened: u32,
    /// The same, before it was tried whether more of them pay.
    pub(super) opened_early: u32,
    /// Connections that were reached.
    pub(super) reached: u32,
    /// Connections that were closed with a stream that had fallen silent.
    pub(super) hastened: u32,
    /// What the driver was last told: the limit, the connections to open early, the handshakes and what each bears.
    pub(super) told: Option<(u32, u32, Option<u32>, u32)>,
}

/// A host that has refused so many first parts in a row is asked for no further one.
const MOST_REFUSED_PARTS: u32 = 2;

/// Hardly any server bans who has opened no more of them.
const FEW_CONNECTIONS: u32 = 4;

/// One handshake of so many may be lost.
const REACHED_LATE: u32 = 8;

impl OriginState {
    /// Nothing but its name is known, and how much it is trusted to bear.
    pub(super) fn new(origin: Origin, budget: OriginBudget) -> Self {
        Self {
            origin,
            proxy: None,
            budget,
            first_requests: FirstRequests::default(),
            tail: Tail::default(),
            crowding: Crowding::default(),
            trust: Trust::default(),
            handshakes: HandshakePace::default(),
            streams: 0,
            served: 0,
            bearers: Bearers::default(),
            came: 0,
            files: [0; 3],
            idle: 0,
            pipelines: None,
            gives_ranges: true,
            machines: Machines::default(),
            refused_parts: 0,
            contact: Contact::None,
            answered: 0,
            answered_from: Timestamp::START,
            forbidding: Forbidding::default(),
            leads_to: LeadsTo::default(),
            has_had_enough: false,
            has_faults_for_good: false,
            connect_failures: 0,
            takes_connections: false,
            failing_since: None,
            failed_at: None,
            has_told_of_wait: false,
            some_wait_as_asked: false,
            came_at: Timestamp::START,
            sign_at: Timestamp::START,
            answers_before: 0,
            silences: 0,
            probes: 0,
            opened: 0,
            opened_early: 0,
            reached: 0,
            hastened: 0,
            told: None,
        }
    }

    /// Whether a file is worth being asked for by its first part, where its connection speaks HTTP/1.1.
    pub(super) const fn may_give_parts(&self) -> bool {
        self.gives_ranges && self.gives_parts() && !self.machines.are_several()
    }

    /// Whether it has not refused the first parts of several files in a row.
    pub(super) const fn gives_parts(&self) -> bool {
        self.refused_parts < MOST_REFUSED_PARTS
    }

    pub(super) const fn has_answered(&self) -> bool {
        matches!(self.contact, Contact::Answered)
    }

    /// Another connection was reached. Returns whether it [has begun](Self::has_begun) with it.
    pub(super) fn note_reached(&mut self) -> bool {
        if matches!(self.contact, Contact::None) {
            self.contact = Contact::Reached;
        }
        let had_begun = self.has_begun();
        self.reached = self.reached.saturating_add(1);
        !had_begun && self.has_begun()
    }

    /// Whether what it was asked for first is on its way, but for requests whose handshakes were lost. What opens further
    /// connections would go before them, and then their answers would not come at the pace of the path.
    pub(super) fn has_begun(&self) -> bool {
        let first = self.streams.min(self.opened);
        self.reached >= first - first / REACHED_LATE
    }

    /// Whether it answers over HTTP/2: many requests share a connection.
    pub(super) const fn multiplexes(&self) -> bool {
        self.budget.shares_connections()
    }

    /// For how long it could not be reached, or has answered nothing that it was asked for.
    pub(super) fn failing_for(&self, now: Timestamp) -> Duration {
        let since = self.failing_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        since.max(self.budget.vain_for(now))
    }

    /// It has answered a request that `began` then, of a file that failed `before`. So many are being `served` by now, that
    /// one included unless it was sent on. Returns whether files need not wait any longer that were asked to.
    pub(super) fn note_answer(
        &mut self,
        began: Timestamp,
        before: FailedBefore,
        served: u32,
    ) -> bool {
        let failed_before = before.attempt.max(before.refused.into());
        let circumstances = self.circumstances(began, served.min(1));
        self.first_requests.on_answer(failed_before, before.refused, circumstances);
        self.forbidding.on_answer(began);
        if before.was_forbidden {
            self.forbidding.on_given();
        }
        self.answered += 1;
        self.answered_from = self.answered_from.max(began);
        self.has_faults_for_good = false;
        self.budget.on_answer(began, served)
    }

    /// In what circumstances a request was made that `began` then and is alone where no more than `own` streams are left.
    pub(super) fn circumstances(&self, began: Timestamp, own: u32) -> Circumstances {
        let since_answer = match self.contact {
            Contact::Answered => began.saturating_since(self.came_at),
            Contact::None | Contact::Reached => Duration::MAX,
        };
        Circumstances { alone: self.streams <= own, since_answer }
    }

    /// Whether files that were refused come before others: asking again tells whether they are refused for themselves. Of a
    /// host that has answered nothing each second one may be had when it is asked for again.
    pub(super) const fn asks_again_first(&self) -> bool {
        self.first_requests.ask_again_first(self.budget.vain_requests())
            || self.forbidding.is_doubtful()
            || self.connect_failures > 0 && (self.streams + self.idle).is_multiple_of(2)
    }

    /// Whether it was asked for more than hardly any server minds.
    pub(super) fn may_have_banned(&self) -> bool {
        self.opened > FEW_CONNECTIONS || self.budget.borne().is_some()
    }

    /// A file of it can be had in ranges or not, and its first part was given or not, where it was asked for.
    pub(super) const fn note_ranges(&mut self, gives: bool, part: Option<bool>) {
        self.gives_ranges = gives;
        match part {
            Some(true) => self.refused_parts = 0,
            Some(false) => self.refused_parts += 1,
            None => {}
        }
    }
}
