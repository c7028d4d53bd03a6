//! Meters on recorded trees, with every oddity that drivers have.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Joules;
use proptest::prelude::*;

use super::*;
use crate::meter::{PowerMeter, Resolution, Scope, Source, SourceKind, Traffic};

mod battery;
mod rapl;

/// A tree of small files.
pub(crate) struct Tree {
    directory: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { directory: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.file(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.file(path)).unwrap();
    }

    fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::new(Duration::from_secs(seconds))
}

/// Joules until `seconds`, or the error.
fn joules(meter: &mut dyn PowerMeter, seconds: u64) -> Result<f64, String> {
    let reading = meter.read(at(seconds), &Traffic::default());
    reading.map(|reading| reading.total.get()).map_err(|error| error.to_string())
}

fn assert_joules(meter: &mut dyn PowerMeter, seconds: u64, expected: f64) {
    let joules = joules(meter, seconds).unwrap();
    assert!((joules - expected).abs() < 1e-6, "{joules} J after {seconds} s, not {expected}");
}

/// A laptop with two sockets' worth of oddities: sub-domains, psys, and packages shown twice.
#[test]
fn hwmon_reads_the_supply_and_adds_nothing_up() {
    let tree = Tree::new(&[
        ("hwmon0/name", "nvme"),
        ("hwmon0/temp1_input", "40000"),
        ("hwmon1/name", "amdgpu"),
        ("hwmon1/power1_input", "60000000"),
        ("hwmon10/name", "ina3221"),
        ("hwmon10/in1_label", "VDD_IN"),
        ("hwmon10/in1_input", "5000"),
        ("hwmon10/curr1_input", "1000"),
        ("hwmon10/in2_label", "VDD_CPU"),
        ("hwmon10/in2_input", "5000"),
        ("hwmon10/curr2_input", "600"),
    ]);
    let mut meter = Hwmon::open(tree.path()).unwrap();
    assert_eq!(meter.source().to_string(), "measured: hwmon ina3221 VDD_IN");
    assert_eq!(meter.scope(), Scope::Device);
    assert_joules(&mut meter, 0, 0.0);
    // The shunt's sign depends on how the board is wired.
    tree.write("hwmon10/curr1_input", "-3000");
    assert_joules(&mut meter, 2, 20.0);
}

#[test]
fn hwmon_power_and_energy_come_in_millionths() {
    let tree = Tree::new(&[("hwmon0/name", "ina226"), ("hwmon0/power1_input", "4000000")]);
    let mut meter = Hwmon::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    assert_joules(&mut meter, 2, 8.0);
    tree.write("hwmon0/energy1_input", "1000000");
    let mut meter = Hwmon::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("hwmon0/energy1_input", "2500000");
    assert_joules(&mut meter, 1, 1.5);
    tree.write("hwmon0/energy1_input", "100");
    assert_joules(&mut meter, 2, 1.5);
    tree.write("hwmon0/energy1_input", "ERROR");
    assert!(joules(&mut meter, 3).unwrap_err().contains("no number"));
}

#[test]
fn no_meter_takes_more_than_a_hundred_kilowatts_or_less_than_nothing() {
    for glitch in ["150000000000", "-4000000"] {
        let path = "hwmon0/power1_input";
        let tree = Tree::new(&[("hwmon0/name", "ina226"), (path, "4000000")]);
        let mut meter = Hwmon::open(tree.path()).unwrap();
        assert_joules(&mut meter, 0, 0.0);
        tree.write(path, glitch);
        let error = joules(&mut meter, 1).unwrap_err();
        assert!(error.contains("hwmon ina226 can't be read"), "{error}");
        let error = Hwmon::open(tree.path()).unwrap_err().to_string();
        assert!(error.contains(path), "{error}");
        tree.write(path, "4000000");
        assert_joules(&mut meter, 2, 0.0);
        assert_joules(&mut meter, 3, 4.0);
    }
    let tree = Tree::new(&[
        ("hwmon0/name", "ina219"),
        ("hwmon0/curr1_input", "1000"),
        ("hwmon0/in1_input", "5000"),
    ]);
    let mut meter = Hwmon::open(tree.path()).unwrap();
    assert_joules(&mut meter, 0, 0.0);
    tree.write("hwmon0/curr1_input", "2147483647");
    assert!(joules(&mut meter, 1).unwrap_err().contains("curr1_input tells"));
    tree.write("hwmon0/curr1_input", "1000");
    assert_joules(&mut meter, 2, 0.0);
    assert_joules(&mut meter, 3, 5.0);
}

#[test]
fn a_sensor_that_misses_a_reading_is_bridged_and_one_that_was_gone_begins_anew() {
    let path = "hwmon0/power1_average";
    let tree = Tree::new(&[("hwmon0/name", "amdgpu"), (path, "4000000")]);
    let mut meter = Hwmon::open(tree.path()).unwrap();
    let mut told = |millis, value: &str| {
        tree.write(path, value);
        let reading = meter.read(Timestamp::from_millis(millis), &Traffic::default());
        reading.ok().map(|reading| reading.total.get())
    };
    assert_eq!(
        [told(0, "4000000"), told(200, "?"), told(500, "4000000")],
        [Some(0.0), None, Some(2.0)]
    );
    assert_eq!(
        [told(800, "?"), told(1_400, "4000000")],
        [None, Some(2.0)],
        "who knows what it drew"
    );
    assert_eq!(told(1_900, "4000000"), Some(4.0));
    assert_eq!(meter.left_out(), Duration::from_millis(900));
}

#[test]
fn counters_that_jump_begin_anew() {
    let tree = Tree::new(&[("hwmon0/name", "ina226"), ("hwmon0/energy1_input", "1000000")]);
    let next = Arc::new(Mutex::new(1.0));
    let asked = Arc::clone(&next);
    let ask = move || Some(Sample::Energy(*asked.lock().unwrap()));
    let mut meters: [Box<dyn PowerMeter>; 2] = [
        Box::new(Hwmon::open(tree.path()).unwrap()),
        Box::new(Callback::new("any", Scope::Device, Resolution::EXACT, ask)),
    ];
    for (seconds, told, expected) in
        [(0, 1.0, 0.0), (1, 2.5, 1.5), (2, 999_999_999.0, 1.5), (3, 1_000_000_001.0, 3.5)]
    {
        tree.write("hwmon0/energy1_input", &(told * 1e6).to_string());
        *next.lock().unwrap() = told;
        for meter in &mut meters {
            assert_joules(&mut **meter, seconds, expected);
        }
    }
    tree.write("hwmon0/energy1_input", "-5");
    assert!(joules(&mut *meters[0], 4).unwrap_err().contains("less than nothing"));
}

#[test]
fn a_callback_tells_no_power_that_can_t_be() {
    let watts = Arc::new(Mutex::new(2.0));
    let asked = Arc::clone(&watts);
    let ask = move || Some(Sample::Power(*asked.lock().unwrap()));
    let mut meter = Callback::new("any", Scope::Device, Resolution::EXACT, ask);
    assert_joules(&mut meter, 0, 0.0);
    for glitch in [150e3, -2.0] {
        *watts.lock().unwrap() = glitch;
        assert!(joules(&mut meter, 1).unwrap_err().contains("any can't be read"));
    }
    *watts.lock().unwrap() = 2.0;
    assert_joules(&mut meter, 2, 4.0);
}

#[test]
fn a_replay_goes_evenly_between_its_entries() {
    let source = Source { kind: SourceKind::Measured, name: "rapl".to_owned() };
    let text = "# seconds,joules\n0,5\n2, 9\n1,100\n\n4,8\n4,10\n";
    let mut meter = Replay::parse(source.clone(), Scope::Package, text).unwrap();
    assert_eq!(meter.source().to_string(), "measured: replay of rapl");
    assert_joules(&mut meter, 7, 0.0);
    assert_joules(&mut meter, 8, 2.0);
    assert_joules(&mut meter, 10, 4.5);
    assert_joules(&mut meter, 60, 5.0);
    let error = Replay::parse(source, Scope::Package, "0,1\n1;2\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2: \"1;2\" is not SECONDS,JOULES");
}

#[test]
fn a_callback_tells_energy_or_power_or_nothing() {
    let next = Arc::new(Mutex::new(Some(Sample::Energy(100.0))));
    let asked = Arc::clone(&next);
    let resolution = Resolution { interval: Duration::from_secs(1), step: Joules::ZERO };
    let ask = move || *asked.lock().unwrap();
    let mut meter = Callback::new("fuel gauge", Scope::Device, resolution, ask);
    assert_joules(&mut meter, 0, 0.0);
    *next.lock().unwrap() = Some(Sample::Energy(103.0));
    assert_joules(&mut meter, 1, 3.0);
    *next.lock().unwrap() = Some(Sample::Energy(f64::NAN));
    assert!(joules(&mut meter, 2).unwrap_err().contains("fuel gauge can't be read"));
    *next.lock().unwrap() = None;
    assert!(joules(&mut meter, 3).is_err());
    *next.lock().unwrap() = Some(Sample::Power(2.0));
    assert_joules(&mut meter, 4, 3.0);
    assert_joules(&mut meter, 5, 5.0);
}

#[test]
fn android_values_in_all_their_forms() {
    let nothing = BatteryManager {
        current_now: i64::from(i32::MIN),
        charge_counter: -1,
        energy_counter: i64::MIN,
        millivolts: 4_000,
        charging: false,
    };
    assert_eq!(nothing.sample(), None);
    let power = |current_now| BatteryManager { current_now, ..nothing }.sample();
    assert_eq!(power(500_000), Some(Sample::Power(2.0)));
    assert_eq!(power(-500_000), Some(Sample::Power(2.0)));
    assert_eq!(power(-500), Some(Sample::Power(2.0)), "in mA");
    let charge = BatteryManager { charge_counter: 1_000_000, ..nothing };
    assert_eq!(charge.sample(), Some(Sample::Energy(-14_400.0)));
    let energy = BatteryManager { energy_counter: 1_000_000_000, current_now: 9, ..charge };
    assert_eq!(energy.sample(), Some(Sample::Energy(-3_600.0)));
    assert_eq!(BatteryManager { charging: true, ..energy }.sample(), None);
    assert_eq!(Rails(vec![1_000_000, 500_000]).sample(), Some(Sample::Energy(1.5)));
    assert_eq!(Rails(vec![1_000_000, -1]).sample(), None);
    assert_eq!(Rails(vec![]).sample(), None);
}

/// What a file of a sensor may hold.
fn contents() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..10_000_000_i64).prop_map(|n| n.to_string()),
        2 => any::<i64>().prop_map(|n| n.to_string()),
        1 => Just("-2147483648".to_owned()),
        1 => "[ -~]{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_meter_yields_negative_or_decreasing_energy(
        steps in prop::collection::vec((0..100_u64, contents(), contents(), any::<bool>()), 1..12)
    ) {
        let next = Arc::new(Mutex::new(None));
        let asked = Arc::clone(&next);
        let tree = Tree::new(&[
            ("rapl/intel-rapl:0/name", "package-0"),
            ("rapl/intel-rapl:0/energy_uj", "1"),
            ("rapl/intel-rapl:0/max_energy_range_uj", "262143328850"),
            ("gauge/BAT0/type", "Battery"),
            ("gauge/BAT0/status", "Discharging"),
            ("gauge/BAT0/energy_now", "1"),
            ("current/BAT0/type", "Battery"),
            ("current/BAT0/status", "Discharging"),
            ("current/BAT0/current_now", "1"),
            ("current/BAT0/voltage_now", "1"),
            ("energy/hwmon0/name", "ina226"),
            ("energy/hwmon0/energy1_input", "1"),
            ("pair/hwmon0/name", "ina219"),
            ("pair/hwmon0/curr1_input", "1"),
            ("pair/hwmon0/in1_input", "1"),
        ]);
        let record: Vec<_> = steps.iter().map(|(at, joules, ..)| {
            (Duration::from_secs(*at), Joules::new(joules.parse().unwrap_or(f64::NAN)))
        }).collect();
        let source = Source { kind: SourceKind::Measured, name: "any".to_owned() };
        let mut meters: Vec<Box<dyn PowerMeter>> = vec![
            Box::new(Rapl::open(&tree.file("rapl")).unwrap()),
            Box::new(Battery::open(&tree.file("gauge")).unwrap()),
            Box::new(Battery::open(&tree.file("current")).unwrap()),
            Box::new(Hwmon::open(&tree.file("energy")).unwrap()),
            Box::new(Hwmon::open(&tree.file("pair")).unwrap()),
            Box::new(Replay::new(source, Scope::Device, record)),
            Box::new(Callback::new("any", Scope::Device, Resolution::EXACT, move || *asked.lock().unwrap())),
        ];
        let mut last = vec![(Timestamp::START, Joules::ZERO); meters.len()];
        for (seconds, one, other, power) in steps {
            for file in ["rapl/intel-rapl:0/energy_uj", "gauge/BAT0/energy_now",
                "current/BAT0/current_now", "energy/hwmon0/energy1_input", "pair/hwmon0/curr1_input"] {
                tree.write(file, &one);
            }
            for file in ["current/BAT0/voltage_now", "pair/hwmon0/in1_input"] {
                tree.write(file, &other);
            }
            let value = one.parse::<f64>().unwrap_or(f64::NAN);
            *next.lock().unwrap() = Some(if power { Sample::Power(value) } else { Sample::Energy(value) });
            for (meter, last) in meters.iter_mut().zip(&mut last) {
                let Ok(reading) = meter.read(at(seconds), &Traffic::default()) else { continue };
                let name = meter.source().name;
                prop_assert!(reading.total >= last.1 && reading.total.get().is_finite(), "{name}");
                prop_assert!(reading.at >= last.0, "{name}");
                *last = (reading.at, reading.total);
            }
        }
    }
}
