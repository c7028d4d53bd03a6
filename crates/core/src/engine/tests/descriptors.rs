//! A process that may open only so many files and sockets.

use super::complete::{fixed, policies};
use super::host::Host;
use super::world::World;
use crate::ErrorKind;

#[test]
fn a_run_that_can_open_no_more_goes_on_with_fewer_at_once() {
    let many = policies().into_iter().chain([fixed(32, 1), fixed(4, 8)]);
    for policy in many {
        let mut world = World::new(policy).host("one", Host::default().files(200, |_| 300_000));
        world.descriptors = 5;
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        let vain = world.fetches.len() - 200;
        assert!(vain < 100, "{vain} requests for nothing");
    }
}

#[test]
fn a_run_that_can_open_nothing_fails_and_says_so() {
    let mut world = World::new(fixed(32, 1)).host("one", Host::default().files(60, |_| 300_000));
    world.descriptors = 0;
    world.get_all();
    world.run();
    assert_eq!(world.engine.totals().failed, 60);
    assert_eq!(world.failure(0).kind, ErrorKind::Descriptors);
    assert!(world.seconds() < 60.0, "{}", world.seconds());
}
