//! Bytes that are not those that were promised: fetched again, and only they.

use super::complete::fixed;
use super::host::{Ending, Host};
use super::world::World;
use crate::ErrorKind;

const SIZE: u64 = 1_000_000;

fn world(host: Host) -> World {
    World::new(fixed(2, 4)).host("one", host.files(3, |_| SIZE))
}

/// The requests for the first file that came after it was whole.
fn again(world: &World) -> Vec<Option<std::ops::Range<u64>>> {
    let fetches = world.fetches_of(0);
    let from = fetches.iter().rposition(|(_, fetch)| fetch.range.is_none()).unwrap();
    fetches[from..].iter().map(|(_, fetch)| fetch.range.clone()).collect()
}

#[test]
fn wrong_pieces_come_again_and_nothing_else() {
    let mut world = world(Host::default());
    world.damages = [vec![100_000..200_000, 900_000..SIZE]].into();
    world.get_all();
    world.run();
    world.assert_all_complete();
    assert_eq!(world.brought(), 3 * SIZE + 200_000);
    assert_eq!(world.local.iter().map(|local| local.restarts).sum::<u32>(), 1);
}

#[test]
fn a_wrong_whole_comes_once_more_and_is_then_given_up() {
    for times in [1, 2] {
        let mut world = world(Host::default());
        let specs = vec![world.specs().remove(0)];
        world.damages = vec![vec![0..SIZE]; times].into();
        world.get(specs);
        world.run();
        assert_eq!(world.brought(), 2 * SIZE);
        assert_eq!(again(&world)[0], None, "from its first byte");
        assert!(world.fetches_of(0).last().is_some());
        match world.ending(0) {
            Ending::Complete => assert_eq!(times, 1),
            Ending::GivenUp(failure) => {
                assert_eq!((times, failure.kind), (2, ErrorKind::Checksum));
            }
            Ending::Kept => panic!("it was not there"),
        }
    }
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
#[test]
fn a_server_without_ranges_sends_it_all_again() {
    let mut world = world(Host { ranges: false, ..Host::default() });
    let specs = vec![world.specs().remove(0)];
    world.damages = [vec![5_000..6_000]].into();
    world.get(specs);
    world.run();
    world.assert_all_complete();
    assert_eq!(world.brought(), 2 * SIZE);
    assert!(world.fetches_of(0)[1].1.anew);
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
#[test]
fn mirrors_are_asked_for_wrong_bytes_before_the_same_place_is() {
    let mut world = world(Host::default());
    world = world.host("two", Host::default().files(3, |_| SIZE));
    let mut specs = world.specs();
    specs.retain(|spec| spec.url.path() == "/0");
    let mirror = specs.remove(1).url;
    specs[0].mirrors = vec![mirror];
    world.damages = [vec![0..1_000]].into();
    world.get(specs);
    world.run();
    world.assert_all_complete();
    let fetches = world.fetches_of(0);
    let (_, last) = fetches.last().unwrap();
    assert_eq!((last.url.host_str(), last.range.clone()), (Some("two"), Some(0..1_000)));
    assert_eq!(world.brought(), SIZE + 1_000);
}
