//! Random worlds: whatever hosts, policies, ceilings and commands do, the engine ends, every file
//! has one ending, ceilings hold at every step, and what is finished is whole. [`World`] asserts all
//! that while it runs.

use std::time::Duration;

use pelton_algos::policy::{Eht, EhtConfig, Hat, LowE};
use pelton_algos::retries::RetryConfig;
use proptest::prelude::*;

use super::super::*;
use super::complete::fixed;
use super::host::{Ending, Host};
use super::world::World;
use crate::ErrorKind;
use crate::connection::Protocol;

#[derive(Debug, Clone, Copy)]
enum Command {
    PauseFor(u64),
    Limits(UserLimits),
    /// Every stream in flight breaks.
    Break,
    Bandwidth(f64),
    /// A host refuses for so many milliseconds.
    Away(usize, u64),
    /// A host says nothing for so many milliseconds.
    Silent(usize, u64),
    /// All files of a host change.
    Change(usize),
    MoreFiles,
    Cancel,
}

fn any_policy() -> impl Strategy<Value = Box<dyn Policy>> {
    (0u32..5, 1u32..20, 1u32..10).prop_map(|(kind, files, streams)| match kind {
        0 => Box::new(LowE::default()) as Box<dyn Policy>,
        1 => Box::new(Hat),
        2 => Box::new(Eht::default()),
        3 => Box::new(Eht::new(EhtConfig { search_share: 10.0, ..EhtConfig::default() })),
        _ => fixed(files, streams),
    })
}

fn any_limits() -> impl Strategy<Value = UserLimits> {
    let ceiling = || proptest::option::of(0u32..6);
    let floor = proptest::option::of(0u64..2_000_000);
    // The world keeps to no rate: only what the engine makes of it counts.
    let rate = || proptest::option::of(0u32..20_000);
    let memory = 0u64..20_000_000;
    (ceiling(), ceiling(), 0u32..20, 0u32..30, floor, [rate(), rate()], memory).prop_map(
        |(max_files, max_streams_per_file, per_origin, total, floor, rates, memory)| UserLimits {
            max_files,
            max_streams_per_file,
            max_connections_per_origin: per_origin,
            max_connections: total,
            split_floor: floor.map(Bytes),
            max_rate: rates[0].map(BitRate::from_kbps),
            max_rate_per_origin: rates[1].map(BitRate::from_kbps),
            max_memory: Bytes(memory),
        },
    )
}

fn any_host() -> impl Strategy<Value = Host> {
    let sizes = proptest::collection::vec(
        prop_oneof![Just(0u64), 1u64..5_000, 50_000u64..900_000, 1_000_000u64..6_000_000],
        1..12,
    );
    let manners = (
        prop_oneof![Just(1u64), 1u64..300],
        10_000u64..2_000_000,
        proptest::bool::weighted(0.3),
        proptest::bool::weighted(0.8),
        proptest::bool::weighted(0.15),
        proptest::bool::weighted(0.8),
    );
    let faults = (
        prop_oneof![4 => Just(usize::MAX), 1 => 1usize..5],
        proptest::option::of(0u64..5),
        prop_oneof![2 => Just(0.0), 2 => 0.0f64..0.4],
        proptest::option::weighted(0.1, 1_000u64..2_000_000),
    );
    (sizes, manners, faults).prop_map(|(sizes, manners, faults)| {
        let (rtt, window, http2, ranges, ignores_ranges, states_size) = manners;
        let (bears, retry_after, faults, cuts_bodies_after) = faults;
        Host {
            rtt: Duration::from_millis(rtt),
            window,
            protocol: if http2 { Protocol::Http2 } else { Protocol::Http11 },
            ranges,
            ignores_ranges,
            states_size,
            bears,
            retry_after: retry_after.map(Duration::from_secs),
            faults,
            cuts_bodies_after,
            ..Host::default()
        }
        .files(sizes.len() as u64, |index| sizes[index as usize])
    })
}

fn any_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (0u64..20_000).prop_map(Command::PauseFor),
        any_limits().prop_map(Command::Limits),
        Just(Command::Break),
        (0.5f64..500.0).prop_map(Command::Bandwidth),
        (0usize..3, 0u64..40_000).prop_map(|(host, millis)| Command::Away(host, millis)),
        (0usize..3, 0u64..40_000).prop_map(|(host, millis)| Command::Silent(host, millis)),
        (0usize..3).prop_map(Command::Change),
        Just(Command::MoreFiles),
        Just(Command::Cancel),
    ]
}

fn host_named(index: usize) -> String {
    format!("host{index}")
}

fn obey(world: &mut World, command: &Command) {
    let hosts = world.hosts.len();
    match *command {
        Command::PauseFor(millis) => {
            world.send(Event::Pause);
            assert!(world.live.is_empty());
            world.run_for(Duration::from_millis(millis));
            assert!(world.live.is_empty());
            world.send(Event::Resume);
        }
        Command::Limits(limits) => world.set_limits(limits),
        Command::Break => world.break_all(ErrorKind::ShortBody),
        Command::Bandwidth(mbps) => world.mbps = mbps,
        Command::Away(host, millis) => {
            world.host_mut(&host_named(host % hosts)).refuses = true;
            world.break_all(ErrorKind::Connect);
            world.run_for(Duration::from_millis(millis));
            world.host_mut(&host_named(host % hosts)).refuses = false;
        }
        Command::Silent(host, millis) => {
            world.host_mut(&host_named(host % hosts)).silent = true;
            world.run_for(Duration::from_millis(millis));
            world.host_mut(&host_named(host % hosts)).silent = false;
        }
        Command::Change(host) => {
            let host = world.host_mut(&host_named(host % hosts));
            host.files.values_mut().for_each(|remote| remote.version += 1);
        }
        Command::MoreFiles => {
            let again = world.specs();
            world.add(again);
        }
        Command::Cancel => world.send(Event::Cancel),
    }
}

proptest! {
    #[test]
    fn every_world_comes_to_an_end(
        policy in any_policy(),
        limits in any_limits(),
        hosts in proptest::collection::vec(any_host(), 1..4),
        commands in proptest::collection::vec((1u64..5_000, any_command()), 0..5),
        overwrite in any::<bool>(),
        metered in any::<bool>(),
        sizes in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let faultless = hosts.iter().all(|host| {
            host.faults == 0.0 && host.bears == usize::MAX && !host.ignores_ranges
                && host.cuts_bodies_after.is_none()
        });
        let calm = commands.is_empty();
        let retry = RetryConfig::default();
        let config = EngineConfig { limits, retry, overwrite, seed, ..EngineConfig::default() };
        let mut world = World::with(config, policy);
        for (index, host) in hosts.into_iter().enumerate() {
            world = world.host(&host_named(index), host);
        }
        world.metered = metered;
        let mut specs = world.specs();
        if sizes {
            for spec in &mut specs {
                let host = &world.hosts[spec.url.host_str().unwrap()];
                spec.size = Some(host.files[spec.url.path()].size);
            }
        }
        world.add(specs);
        for (after, command) in commands {
            world.run_for(Duration::from_millis(after));
            if !world.done {
                obey(&mut world, &command);
            }
        }
        if !world.done {
            world.send(Event::ListEnded);
        }
        world.run();
        if faultless && calm {
            world.assert_each_byte_once();
        }
        let cancelled = |ending: &Option<Ending>| {
            matches!(ending, Some(Ending::GivenUp(f)) if f.kind == ErrorKind::Cancelled)
        };
        for local in world.local.iter().filter(|local| !cancelled(&local.ending)) {
            if let Some(Ending::GivenUp(failure)) = &local.ending {
                prop_assert!(failure.kind.is_retryable(), "{failure:?}");
            }
        }
    }
}
