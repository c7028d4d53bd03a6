//! Batteries and their gauges.

use super::*;

fn battery_tree(files: &[(&str, &str)]) -> Tree {
    let tree = Tree::new(&[
        ("AC/type", "Mains"),
        ("hid-mouse/type", "Battery"),
        ("hid-mouse/scope", "Device"),
        ("hid-mouse/energy_now", "99"),
        ("BAT0/type", "Battery"),
        ("BAT0/present", "1"),
        ("BAT0/status", "Discharging"),
    ]);
    for (path, text) in files {
        tree.write(path, text);
    }
    tree
}

#[test]
fn a_battery_tells_energy_in_microwatt_hours() {
    let power = [("BAT0/current_now", "9000000"), ("BAT0/voltage_now", "11000000")];
    let tree = battery_tree(&power);
    tree.write("BAT0/energy_now", "40000000");
    let mut meter = Battery::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    // 10 mWh = 36 J; the gauge is slower than the sampling, so nothing is seen in between.
    assert_joules(&mut meter, 1, 0.0);
    tree.write("BAT0/energy_now", "39990000");
    assert_joules(&mut meter, 2, 36.0);
    // The gauge corrects itself upwards: dropped.
    tree.write("BAT0/energy_now", "39995000");
    assert_joules(&mut meter, 3, 36.0);
    tree.write("BAT0/energy_now", "39985000");
    assert_joules(&mut meter, 4, 72.0);
    // And downwards, by 10 Wh at once: dropped, too.
    tree.write("BAT0/energy_now", "29985000");
    assert_joules(&mut meter, 5, 72.0);
    tree.write("BAT0/energy_now", "29975000");
    assert_joules(&mut meter, 6, 108.0);
    assert_eq!(meter.resolution().interval, Duration::from_secs(30));
}

#[test]
fn current_counts_by_magnitude_whatever_its_sign() {
    for current in ["500000", "-500000"] {
        let tree = battery_tree(&[("BAT0/current_now", current), ("BAT0/voltage_now", "4000000")]);
        let mut meter = Battery::open(tree.path()).unwrap();
        assert_joules(&mut meter, 10, 0.0);
        assert_joules(&mut meter, 13, 6.0);
        // "Unknown" in the way of several drivers.
        tree.write("BAT0/current_now", "-2147483648");
        assert!(joules(&mut meter, 14).unwrap_err().contains("its driver does not know"));
        tree.write("BAT0/current_now", current);
        assert_joules(&mut meter, 15, 10.0);
    }
}

#[test]
fn a_battery_that_tells_nothing_of_use_is_refused() {
    let lowest = i64::MIN.to_string();
    let told = [
        ("-2147483648", "4000000"),
        (&lowest, "4000000"),
        ("100000000000000", "4000000"),
        ("500000", "0"),
        ("500000", "-4000000"),
    ];
    for (current, voltage) in told {
        let files = [("BAT0/current_now", current), ("BAT0/voltage_now", voltage)];
        let error = Battery::open(battery_tree(&files).path()).unwrap_err().to_string();
        assert!(error.starts_with("battery can't be read: "), "{error}");
    }
    // What a second pack tells that rests does not matter.
    let tree = battery_tree(&[("BAT0/energy_now", "40000000")]);
    tree.write("BAT1/type", "Battery");
    tree.write("BAT1/status", "Full");
    tree.write("BAT1/current_now", "-2147483648");
    tree.write("BAT1/voltage_now", "4000000");
    assert!(Battery::open(tree.path()).is_ok());
}

#[test]
fn charging_is_not_consumption() {
    let tree = battery_tree(&[("BAT0/energy_now", "40000000")]);
    let mut meter = Battery::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("BAT0/status", "Charging");
    assert!(joules(&mut meter, 1).unwrap_err().contains("unplug"));
    tree.write("BAT0/energy_now", "30000000");
    tree.write("BAT0/status", "Discharging");
    assert_joules(&mut meter, 2, 0.0);
    assert_eq!(meter.left_out(), Duration::from_secs(2));
    tree.write("BAT0/energy_now", "29990000");
    assert_joules(&mut meter, 3, 36.0);
    assert_eq!(meter.left_out(), Duration::from_secs(2), "that is told");
    tree.write("BAT0/status", "Full");
    assert!(Battery::open(tree.path()).unwrap_err().to_string().contains("not discharging"));
}

#[test]
fn the_second_battery_is_added_while_it_discharges() {
    let tree = battery_tree(&[("BAT0/energy_now", "40000000")]);
    tree.write("BAT1/type", "Battery");
    tree.write("BAT1/status", "Not charging");
    tree.write("BAT1/energy_now", "20000000");
    let mut meter = Battery::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("BAT0/energy_now", "39990000");
    assert_joules(&mut meter, 1, 36.0);
    tree.write("BAT1/status", "Discharging");
    assert_joules(&mut meter, 2, 36.0);
    tree.write("BAT1/energy_now", "19990000");
    assert_joules(&mut meter, 3, 72.0);
}

#[test]
fn a_battery_without_a_gauge_or_of_a_mouse_is_none() {
    let tree = battery_tree(&[("BAT0/charge_now", "4000000")]);
    let error = Battery::open(tree.path()).unwrap_err().to_string();
    assert!(error.contains("no battery with a gauge"), "{error}");
}
