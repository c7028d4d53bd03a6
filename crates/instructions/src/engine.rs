//! The engine without sockets: it plans a long list, and it handles what happens to a shorter one.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use pelton_algos::policy::Eht;
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_core::catalog::FileSpec;
use pelton_core::connection::{ConnectionId, Origin, Protocol};
use pelton_core::engine::{
    Action, Engine, EngineConfig, Event, Fetch, Head, Opened, Outcome, Ranges, Validator,
};
use url::Url;

const RTT: Duration = Duration::from_millis(20);
/// Each stream brings a piece in this time.
const TICK: Duration = Duration::from_millis(5);
const PIECE: u64 = 64 * 1024;

/// An address at the server of all work.
#[expect(clippy::expect_used, reason = "it is no input")]
pub(crate) fn url(path: &str) -> Url {
    format!("http://files.test{path}").parse().expect("a URL")
}

/// A list of which one file in a hundred is large, and one in ten of middle size. It is made of a few
/// addresses only, for to parse them is no work of the engine.
fn specs(files: u64) -> Vec<FileSpec> {
    let addresses = (0..100).map(|directory| url(&format!("/data/{directory}/some.bin")));
    let specs: Vec<FileSpec> = addresses.filter_map(|url| FileSpec::from_url(url).ok()).collect();
    let size = |number: u64| match number {
        n if n % 100 == 0 => 4_000_000,
        n if n % 10 == 0 => 300_000,
        n => 1_000 + n % 20_000,
    };
    let sized =
        |(number, spec): (u64, &FileSpec)| FileSpec { size: Some(size(number)), ..spec.clone() };
    (0..files).zip(specs.iter().cycle()).map(sized).collect()
}

fn engine() -> Engine {
    Engine::new(EngineConfig::default(), Box::<Eht>::default())
}

/// Clusters a long list, and decides what to do with it: the files of which it knows.
pub(crate) fn plan() -> u64 {
    let mut engine = engine();
    engine.handle(Timestamp::START, Event::Files(specs(100_000)));
    engine.handle(Timestamp::START, Event::ListEnded);
    let of_cluster = engine.clusters().iter().map(|cluster| cluster.files).sum();
    engine.decision().map_or(0, |_| of_cluster)
}

/// Handles all events of a run: the files that are there at its end.
pub(crate) fn transfer() -> u64 {
    let mut world = World {
        engine: engine(),
        now: Timestamp::START,
        mailbox: VecDeque::from([Event::Files(specs(4_000)), Event::ListEnded]),
        live: BTreeMap::new(),
        is_over: false,
    };
    while !world.is_over {
        world.step();
    }
    world.engine.totals().done
}

/// A stream under way.
struct Live {
    fetch: Fetch,
    has_head: bool,
    position: u64,
    end: u64,
}

/// A server that answers everything as it should, and streams that are equally fast.
struct World {
    engine: Engine,
    now: Timestamp,
    mailbox: VecDeque<Event>,
    live: BTreeMap<StreamId, Live>,
    is_over: bool,
}

impl World {
    fn step(&mut self) {
        while let Some(event) = self.mailbox.pop_front() {
            for action in self.engine.handle(self.now, event) {
                self.perform(action);
            }
        }
        self.now = self.now + TICK;
        if self.engine.next_timeout(self.now).is_some_and(|due| due <= self.now) {
            self.mailbox.push_back(Event::Timeout);
        }
        for (stream, live) in &mut self.live {
            let size = self.engine.spec(live.fetch.file).size;
            self.mailbox.extend(live.next(*stream, size));
        }
        self.live.retain(|_, live| live.position < live.end);
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Open { file } => {
                self.mailbox.push_back(Event::Opened { file, opened: Opened::Fresh });
            }
            Action::Fetch(fetch) => {
                let size = self.engine.spec(fetch.file).size.unwrap_or(0);
                let range = fetch.range.clone().unwrap_or(0..size);
                let (position, end) = (range.start, range.end);
                let live = Live { has_head: false, position, end, fetch: *fetch };
                self.live.insert(live.fetch.stream, live);
            }
            Action::Cut { stream, end } => {
                if let Some(live) = self.live.get_mut(&stream) {
                    live.end = end;
                }
            }
            Action::Abort { stream, .. } => {
                self.live.remove(&stream);
            }
            Action::Finish { file, .. } => {
                self.mailbox.push_back(Event::Finished { file, result: Ok(()) });
            }
            Action::Connections { origin, .. } => {
                let protocol = Protocol::Http11;
                self.mailbox.push_back(Event::Reached { origin: origin.clone(), rtt: RTT });
                self.mailbox.push_back(Event::Connected { origin, protocol });
            }
            Action::Done => self.is_over = true,
            _ => {}
        }
    }
}

impl Live {
    /// What happens next to this stream.
    fn next(&mut self, stream: StreamId, size: Option<u64>) -> Vec<Event> {
        if !self.has_head {
            self.has_head = true;
            return self.head(size).map(|head| Event::Head { stream, head }).into_iter().collect();
        }
        let bytes = PIECE.min(self.end - self.position);
        self.position += bytes;
        let ended = (self.position == self.end)
            .then_some(Event::Ended { stream, result: Outcome::Complete });
        [Event::Data { stream, bytes }].into_iter().chain(ended).collect()
    }

    fn head(&self, size: Option<u64>) -> Option<Head> {
        let url = self.fetch.url.clone();
        let etag = format!("\"{:x}\"", self.fetch.file.index());
        Some(Head {
            total: size,
            ranges: Ranges::Given,
            partial: self.fetch.range.is_some(),
            validator: Validator { etag: Some(etag), ..Validator::default() },
            digest: None,
            modified: Some(SystemTime::UNIX_EPOCH),
            compressed: false,
            origin: Origin::of(&url).ok()?,
            url,
            protocol: Protocol::Http11,
            connection: ConnectionId(0),
            response_time: RTT,
            waited_before: Duration::ZERO,
        })
    }
}
