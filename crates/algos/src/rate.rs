//! Limits on rates: of all runs of a client, of a run, of each of its origins, shared fairly by files
//! and by the streams of each file. What is read counts against each limit above it.

mod bucket;
mod common;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bucket::Bucket;
pub use common::CommonRate;

use crate::ranges::StreamId;
use crate::time::Timestamp;
use crate::units::BitRate;

/// Idle files of an origin that are remembered.
const MOST_IDLE: usize = 256;

/// What a stream that wants to read may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Read so many bytes at most, and say with [`RateBudget::spend`] how many came.
    Now(u64),
    /// Ask again then: it is the next one, unless another has become so.
    At(Timestamp),
    /// Wait to be called: others come first.
    Later,
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// The number of the origin that sends.
    pub origin: u64,
    /// The number of the file.
    pub file: u64,
    /// The stream of the file. It is the only one of this name in the run.
    pub stream: StreamId,
}

/// The limits of a run: token buckets, one for all and one for each origin. The next turn goes to the
/// waiting file that has had the fewest bytes, of those whose origin is not held by its own limit, and
/// in it to the streams in turn (start-time fair queueing, Goyal, Vin and Cheng 1996). A file that was
/// idle, or held, has no claim to what it did not get then.
///
/// A stream asks when it could read. If nothing was there for it, it withdraws, and nobody waits for
/// it: a file that its server sends slowly holds no other up.
#[derive(Debug, Default)]
pub struct RateBudget {
    /// The name of the run among those that share a [`CommonRate`].
    run: u64,
    all: Bucket,
    rate_per_origin: Option<BitRate>,
    origins: BTreeMap<u64, Origin>,
    /// Bytes of the file that was served last: what an idle file returns with at least.
    served: u64,
    /// That file, which may be about to ask again, and its origin.
    last: Option<(u64, u64)>,
}

/// One origin, and its files.
#[derive(Debug)]
struct Origin {
    bucket: Bucket,
    files: BTreeMap<u64, Shares>,
    /// Files with streams that wait, the one with the fewest bytes first.
    waiting: BTreeSet<(u64, u64)>,
    /// What its files did not get while its own limit held them, and have no claim to.
    forgone: u64,
}

/// What one file has had, and who of it waits.
#[derive(Debug, Default)]
struct Shares {
    served: u64,
    streams: VecDeque<StreamId>,
}

impl RateBudget {
    /// A budget without limits for a run of this name.
    pub fn new(run: u64) -> Self {
        Self { run, ..Self::default() }
    }

    /// Another limit of the run from `now` on; `None` is no limit.
    pub fn set_rate(&mut self, now: Timestamp, rate: Option<BitRate>) {
        self.all.set_rate(now, rate);
    }

    /// Another limit of each origin from `now` on; `None` is no limit.
    pub fn set_rate_per_origin(&mut self, now: Timestamp, rate: Option<BitRate>) {
        self.rate_per_origin = rate.filter(|rate| *rate > BitRate::ZERO);
        for origin in self.origins.values_mut() {
            origin.bucket.set_rate(now, rate);
        }
    }

    /// `reader` could read, as far as the limit `above` the run's lets it. It waits until it spends or
    /// withdraws, unless it may read now.
    pub fn ask(&mut self, now: Timestamp, reader: Reader, above: &mut CommonRate) -> Turn {
        if self.is_unlimited(above) {
            return Turn::Now(u64::MAX);
        }
        self.enter(now, reader);
        if self.next(now) != Some(reader.stream) {
            return Turn::Later;
        }
        let bucket = self.origin(now, reader.origin).bucket;
        let turn = self.all.turn().min(bucket.turn());
        let at = self.all.ready_at(now, turn).max(bucket.ready_at(now, turn));
        if at > now {
            return Turn::At(at);
        }
        match above.ask(now, self.run, self.files_wanting()) {
            Turn::Now(most) => Turn::Now(most.min(turn)),
            later => later,
        }
    }

    /// `reader` has read `bytes`: its turn is over.
    pub fn spend(&mut self, now: Timestamp, reader: Reader, bytes: u64, above: &mut CommonRate) {
        self.leave(reader);
        if self.is_unlimited(above) {
            return;
        }
        self.all.spend(now, bytes);
        above.spend(self.run, bytes);
        let served = self.served;
        let origin = self.origin(now, reader.origin);
        origin.bucket.spend(now, bytes);
        let forgone = origin.forgone;
        let shares = origin.files.entry(reader.file).or_default();
        let before = (shares.served, reader.file);
        let begin = shares.served.max(served.saturating_sub(forgone));
        shares.served = begin + bytes;
        let after = (shares.served, reader.file);
        if origin.waiting.remove(&before) {
            origin.waiting.insert(after);
        }
        origin.forget_idle(served);
        // Where nobody wants more than it got, there is nothing to catch up with.
        let is_idle = self.files_waiting() == 0;
        self.served = forgone + if is_idle { after.0 } else { begin };
        self.last = Some((reader.origin, reader.file));
        self.pass_over_held(now);
    }

    /// `reader` could not read after all, or is gone.
    pub fn withdraw(&mut self, reader: Reader, above: &mut CommonRate) {
        self.leave(reader);
        if self.files_waiting() == 0 {
            above.leave(self.run);
        }
    }

    /// The narrowest of the limits that hold for one connection.
    pub fn rate(&self, above: &CommonRate) -> Option<BitRate> {
        let rates = [self.all.rate(), self.rate_per_origin, above.rate()];
        rates.into_iter().flatten().min_by(|a, b| a.bps().total_cmp(&b.bps()))
    }

    /// The stream that has the next turn: of the origins that are not held, else of the one that is held
    /// for the shortest time.
    pub fn next(&self, now: Timestamp) -> Option<StreamId> {
        let waiting = self.origins.values().filter_map(|origin| {
            let (served, file) = origin.first()?;
            Some((origin.ready_at(now, self.all.turn()), served, origin, file))
        });
        let (.., origin, file) = waiting.min_by_key(|(at, served, ..)| (*at, *served))?;
        origin.files.get(&file)?.streams.front().copied()
    }

    fn enter(&mut self, now: Timestamp, Reader { origin, file, stream }: Reader) {
        let served = self.served;
        let origin = self.origin(now, origin);
        let shares = origin.files.entry(file).or_default();
        if shares.streams.contains(&stream) {
            return;
        }
        if shares.streams.is_empty() {
            shares.served = shares.served.max(served.saturating_sub(origin.forgone));
            origin.waiting.insert((shares.served, file));
        }
        shares.streams.push_back(stream);
    }

    fn leave(&mut self, Reader { origin, file, stream }: Reader) {
        let Some(origin) = self.origins.get_mut(&origin) else { return };
        let Some(shares) = origin.files.get_mut(&file) else { return };
        shares.streams.retain(|other| *other != stream);
        if shares.streams.is_empty() {
            origin.waiting.remove(&(shares.served, file));
        }
    }

    /// The files of origins that are held have no claim to what went to others meanwhile.
    fn pass_over_held(&mut self, now: Timestamp) {
        let (turn, served) = (self.all.turn(), self.served);
        for origin in self.origins.values_mut() {
            let is_held = origin.ready_at(now, turn) > now;
            if let Some((first, _)) = origin.first().filter(|_| is_held) {
                origin.forgone += served.saturating_sub(first);
            }
        }
    }

    fn origin(&mut self, now: Timestamp, origin: u64) -> &mut Origin {
        let rate = self.rate_per_origin;
        self.origins.entry(origin).or_insert_with(|| Origin {
            bucket: Bucket::new(now, rate),
            files: BTreeMap::new(),
            waiting: BTreeSet::new(),
            forgone: 0,
        })
    }

    fn is_unlimited(&self, above: &CommonRate) -> bool {
        self.rate(above).is_none()
    }

    fn files_waiting(&self) -> usize {
        self.origins.values().map(|origin| origin.waiting.len()).sum()
    }

    /// The same with the one that was served last.
    fn files_wanting(&self) -> usize {
        let waits = |(origin, file): &(u64, u64)| {
            let shares = self.origins.get(origin).and_then(|origin| origin.files.get(file));
            shares.is_some_and(|shares| !shares.streams.is_empty())
        };
        self.files_waiting() + usize::from(self.last.is_some_and(|last| !waits(&last)))
    }
}

impl Origin {
    /// Forgets files that would return with no claim of their own, once they are many.
    fn forget_idle(&mut self, served: u64) {
        if self.files.len() > 2 * self.waiting.len() + MOST_IDLE {
            let served = served.saturating_sub(self.forgone);
            self.files.retain(|_, shares| !shares.streams.is_empty() || shares.served > served);
        }
    }

    /// Who is next here, and what it has had, as compared with other origins' files.
    fn first(&self) -> Option<(u64, u64)> {
        self.waiting.first().map(|(served, file)| (served + self.forgone, *file))
    }

    /// When its own limit lets a turn of `longest` bytes at most begin.
    fn ready_at(&self, now: Timestamp, longest: u64) -> Timestamp {
        self.bucket.ready_at(now, longest.min(self.bucket.turn()))
    }
}

#[cfg(test)]
mod tests;
