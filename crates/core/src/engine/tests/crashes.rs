//! Ranges, journal and engine together: runs over a world whose files change, whose streams break, and
//! whose process is killed or loses its power at any moment, over and over. What a rerun is told is what
//! the journal's own reader trusts of the journal's own bytes, cut anywhere.

use std::collections::BTreeMap;
use std::time::Duration;

use pelton_algos::retries::RetryConfig;
use proptest::prelude::*;

use super::super::*;
use super::complete::fixed;
use super::host::{Ending, Host, Local};
use super::world::World;
use crate::ErrorKind;
use crate::journal::model::Bytes as Journal;

const HOST: &str = "one";

#[derive(Debug, Clone)]
enum Operation {
    /// The world goes on for so many milliseconds.
    Run(u64),
    /// Every stream breaks.
    Break,
    /// A file gets another version.
    Change { file: usize },
    /// The server gives ranges or the whole instead.
    Ranges(bool),
    /// What was brought of a file turns out to be wrong when it is whole.
    Damage { start: u64, length: u64 },
    /// The process is killed; the last bytes of a journal may be torn off.
    Kill { torn: usize },
    /// The machine loses its power: what was not synced is lost.
    PowerLoss { torn: usize },
    /// The bytes of all parts are synced, and the journals say so.
    Sync,
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (1u64..500).prop_map(Operation::Run),
        1 => Just(Operation::Break),
        1 => (0usize..4).prop_map(|file| Operation::Change { file }),
        1 => any::<bool>().prop_map(Operation::Ranges),
        1 => (0u64..900_000, 1u64..200_000)
            .prop_map(|(start, length)| Operation::Damage { start, length }),
        2 => (0usize..200).prop_map(|torn| Operation::Kill { torn }),
        2 => (0usize..200).prop_map(|torn| Operation::PowerLoss { torn }),
        2 => Just(Operation::Sync),
    ]
}

/// What is on the disk of one file.
#[derive(Debug, Clone, Default)]
struct Part {
    /// What the kernel has of the part: start, end and version.
    written: BTreeMap<u64, (u64, u64)>,
    /// What the disk has of it.
    synced: BTreeMap<u64, (u64, u64)>,
    journal: Journal,
    complete: bool,
}

struct Model {
    world: World,
    parts: Vec<Part>,
    boot: u32,
    streams: u32,
}

impl Model {
    fn new(sizes: &[u64], streams: u32) -> Self {
        let host = Host::default().files(sizes.len() as u64, |index| sizes[index as usize]);
        let parts = vec![Part::default(); sizes.len()];
        let mut model = Self { world: Self::world(host, streams), parts, boot: 0, streams };
        model.begin();
        model
    }

    fn world(host: Host, streams: u32) -> World {
        let mut config = EngineConfig {
            retry: RetryConfig { attempts: 20, ..RetryConfig::default() },
            ..EngineConfig::default()
        };
        config.limits.split_floor = Some(Bytes::kib(16));
        World::with(config, fixed(2, streams)).host(HOST, host)
    }

    /// A run begins with what the disk has.
    fn begin(&mut self) {
        let boot = format!("boot {}", self.boot);
        let specs = self.world.specs();
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        for (spec, part) in specs.into_iter().zip(&self.parts) {
            if part.complete {
                let size = part.written.values().map(|(end, _)| *end).max().unwrap_or(0);
                found.push((wanted.len(), Opened::Verified { size }));
            } else if let Some(trusted) = part.journal.trusted(spec.url.as_str(), &boot) {
                found.push((wanted.len(), Opened::Part(trusted)));
            }
            wanted.push(spec);
        }
        self.world.found = found;
        self.world.disk = self.parts.iter().map(|part| part.written.clone()).collect();
        self.world.get(wanted);
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Run(millis) => {
                if !self.world.done {
                    self.world.run_for(Duration::from_millis(millis));
                }
            }
            Operation::Break => self.world.break_all(ErrorKind::ShortBody),
            Operation::Change { file } => {
                let path = format!("/{}", file % self.parts.len());
                self.world.host_mut(HOST).files.get_mut(&path).unwrap().version += 1;
            }
            Operation::Ranges(given) => self.world.host_mut(HOST).ignores_ranges = !given,
            Operation::Damage { start, length } => {
                let range = start..start + length;
                self.world.damages.push_back([range].into());
            }
            Operation::Sync => {
                self.save();
                let boot = format!("boot {}", self.boot);
                for part in &mut self.parts {
                    part.synced.clone_from(&part.written);
                    part.journal.sync(&boot);
                }
            }
            Operation::Kill { torn } => self.restart(torn, false),
            Operation::PowerLoss { torn } => self.restart(torn, true),
        }
    }

    /// Takes over what the world has written.
    fn save(&mut self) {
        let boot = format!("boot {}", self.boot);
        let specs = self.world.specs();
        for (index, (part, spec)) in self.parts.iter_mut().zip(specs).enumerate() {
            let local: &Local = &self.world.local[index];
            part.complete |= matches!(local.ending, Some(Ending::Complete));
            // What was not opened yet lies as it was.
            if local.opened.is_some() && !matches!(local.ending, Some(Ending::Kept)) {
                part.written.clone_from(&local.written);
            }
            if let Some(Ending::GivenUp(failure)) = &local.ending
                && failure.kind == ErrorKind::Checksum
            {
                (part.written, part.journal) = (BTreeMap::new(), Journal::default());
                self.world.checkpoints.remove(&index);
            }
            for told in self.world.checkpoints.remove(&index).unwrap_or_default() {
                match told {
                    Some(resumable) => part.journal.append(spec.url.as_str(), &boot, &resumable),
                    None => part.journal.clear(),
                }
            }
        }
    }

    fn restart(&mut self, torn: usize, power: bool) {
        self.save();
        for part in &mut self.parts {
            part.journal.tear(torn);
            if power && !part.complete {
                part.written.clone_from(&part.synced);
            }
        }
        self.boot += u32::from(power);
        let host = self.world.hosts.remove(HOST).unwrap();
        self.world = Self::world(host, self.streams);
        self.begin();
    }

    /// A journal is trusted for nothing that the disk does not have, of one version. Whatever lies
    /// there besides, complete files are whole: [`World`] asserts it as they finish.
    fn invariants(&mut self) {
        self.save();
        let boot = format!("boot {}", self.boot);
        let specs = self.world.specs();
        for (part, spec) in self.parts.iter().zip(specs).filter(|(part, _)| !part.complete) {
            let Some(trusted) = part.journal.trusted(spec.url.as_str(), &boot) else { continue };
            let version = trusted.validator.etag.as_ref().unwrap();
            let version: u64 = version.trim_matches(['"', 'v']).parse().unwrap();
            for range in &trusted.done {
                let mut reached = range.start;
                for (start, (end, of)) in &part.written {
                    if *start <= reached && *of == version {
                        reached = reached.max(*end);
                    }
                }
                assert!(reached >= range.end, "{range:?} of v{version}: {:?}", part.written);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn whatever_ends_a_process_the_next_one_ends_the_work(
        sizes in proptest::collection::vec(1u64..900_000, 1..5),
        streams in 1u32..5,
        operations in proptest::collection::vec(any_operation(), 0..30),
    ) {
        let mut model = Model::new(&sizes, streams);
        for operation in &operations {
            model.apply(operation);
            model.invariants();
        }
        // In the end nobody disturbs any more.
        model.world.damages.clear();
        model.apply(&Operation::Kill { torn: 0 });
        model.world.run();
        for (index, local) in model.world.local.iter().enumerate() {
            let ending = local.ending.as_ref().unwrap();
            prop_assert!(!matches!(ending, Ending::GivenUp(_)), "{index}: {ending:?}");
        }
    }
}
