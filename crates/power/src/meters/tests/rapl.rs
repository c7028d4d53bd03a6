//! RAPL's counters.

use super::*;

fn rapl_tree() -> Tree {
    Tree::new(&[
        ("intel-rapl:0/name", "package-0"),
        ("intel-rapl:0/energy_uj", "1000000"),
        ("intel-rapl:0/max_energy_range_uj", "262143328850"),
        ("intel-rapl:0:0/name", "core"),
        ("intel-rapl:0:0/energy_uj", "700000"),
        ("intel-rapl:1/name", "psys"),
        ("intel-rapl:1/energy_uj", "5000000"),
        ("intel-rapl-mmio:0/name", "package-0"),
        ("intel-rapl-mmio:0/energy_uj", "1000000"),
        ("intel-rapl/enabled", "1"),
    ])
}

#[test]
fn rapl_counts_packages_alone() {
    let tree = rapl_tree();
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("intel-rapl:0/energy_uj", "3500000");
    tree.write("intel-rapl:0:0/energy_uj", "2000000");
    tree.write("intel-rapl:1/energy_uj", "9000000");
    tree.write("intel-rapl-mmio:0/energy_uj", "3500000");
    assert_joules(&mut meter, 1, 2.5);
}

#[test]
fn a_rapl_counter_wraps_at_its_range() {
    let tree = rapl_tree();
    tree.write("intel-rapl:0/energy_uj", "262143000000");
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("intel-rapl:0/energy_uj", "671150");
    assert_joules(&mut meter, 1, 1.0);
}

#[test]
fn a_rapl_counter_without_a_range_drops_the_wrap() {
    let tree = rapl_tree();
    tree.write("intel-rapl:0/max_energy_range_uj", "");
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("intel-rapl:0/energy_uj", "2000000");
    assert_joules(&mut meter, 1, 1.0);
    tree.write("intel-rapl:0/energy_uj", "500000");
    assert_joules(&mut meter, 2, 1.0);
    tree.write("intel-rapl:0/energy_uj", "1500000");
    assert_joules(&mut meter, 3, 2.0);
}

#[test]
fn a_rapl_range_smaller_than_the_step_back_drops_the_sample() {
    let tree = rapl_tree();
    tree.write("intel-rapl:0/max_energy_range_uj", "1000");
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("intel-rapl:0/energy_uj", "10");
    assert_joules(&mut meter, 1, 0.0);
}

#[test]
fn a_rapl_counter_that_started_anew_is_no_wrap() {
    let tree = rapl_tree();
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("intel-rapl:0/energy_uj", "0");
    assert_joules(&mut meter, 1, 0.0);
}

#[test]
fn a_rapl_counter_below_zero_is_no_value() {
    let tree = rapl_tree();
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("intel-rapl:0/energy_uj", "-5");
    assert!(joules(&mut meter, 1).unwrap_err().contains("less than nothing"));
    tree.write("intel-rapl:0/energy_uj", "3000000");
    assert_joules(&mut meter, 2, 2.0);
}

#[test]
fn a_rapl_meter_that_vanishes_is_said_and_comes_back() {
    let tree = rapl_tree();
    let mut meter = Rapl::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.remove("intel-rapl:0/energy_uj");
    assert!(joules(&mut meter, 1).unwrap_err().contains("rapl can't be read"));
    tree.write("intel-rapl:0/energy_uj", "4000000");
    assert_joules(&mut meter, 2, 3.0);
}

#[test]
fn no_rapl_says_where_it_looked() {
    let error = Rapl::open(Path::new("/nowhere/powercap")).unwrap_err().to_string();
    assert_eq!(error, "no rapl: there is no /nowhere/powercap");
    let tree = Tree::new(&[("intel-rapl:1/name", "psys"), ("intel-rapl:1/energy_uj", "1")]);
    assert!(Rapl::open(tree.path()).unwrap_err().to_string().contains("no intel-rapl package"));
}

#[cfg(unix)]
#[test]
fn a_rapl_counter_for_root_alone_says_what_helps() {
    use std::os::unix::fs::PermissionsExt;
    let tree = rapl_tree();
    let counter = tree.file("intel-rapl:0/energy_uj");
    fs::set_permissions(&counter, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&counter).is_ok() {
        // Root reads everything.
        return;
    }
    let error = Rapl::open(tree.path()).unwrap_err().to_string();
    assert!(error.contains("only for root") && error.contains("chmod a+r"), "{error}");
}
