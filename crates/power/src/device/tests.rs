use std::time::Duration;

use super::*;
use crate::radio::Radio;

/// LTE once more, as its user would write it.
const TOML: &str = r#"
name = "my-lte"
source = "measured at home"
cpu_mw_per_core = 800
base_mw = 90.5

[promotion]
seconds = 0.26
mw = 1210

[active]
mw = 1200
up_mw_per_mbps = 438.39
down_mw_per_mbps = 51.97
up_fitted_to_mbps = 10
down_fitted_to_mbps = 20

[[tail]]
name = "DRX"
seconds = 10.0
mw = 1091

[idle]
mw = 0
listens_seconds = 0.043
every_seconds = 1.28
listening_mw = 594
"#;

#[test]
fn a_profile_in_toml_becomes_a_radio_and_a_device() {
    let device = Device::from_toml("my.toml", TOML).unwrap();
    let lte = Radio::Lte.profile().unwrap();
    assert_eq!(device.radio.name, "my-lte");
    assert_eq!((device.radio.uplink, device.radio.downlink), (lte.uplink, lte.downlink));
    assert_eq!(device.radio.idle, lte.idle);
    assert_eq!(device.radio.tail_duration(), Duration::from_secs(10));
    let model = device.model();
    assert_eq!(model.cpu_per_core, Watts::new(0.8));
    assert_eq!(model.base, Watts::from_milliwatts(90.5));
}

#[test]
fn mistakes_in_toml_are_named() {
    let error = |from: &str, to: &str| {
        Device::from_toml("my.toml", &TOML.replace(from, to)).unwrap_err().to_string()
    };
    assert!(error("mw = 1210", "mW = 1210").starts_with("my.toml: "));
    assert!(error("mw = 1210", "mW = 1210").contains("unknown field `mW`"));
    assert!(error("mw = 1091", "mw = -1").contains("tail.mw = -1.0: numbers are not negative"));
    assert!(error("mw = 1091", "mw = 1300").contains("DRX draws 1.30 W, more than active"));
    assert!(error("every_seconds = 1.28", "every_seconds = 0.01").contains("longer than a period"));
    for (seconds, shown) in [("inf", "inf"), ("nan", "NaN"), ("1e300", "1e300")] {
        let told = error("seconds = 10.0", &format!("seconds = {seconds}"));
        assert!(told.contains(&format!("tail.seconds = {shown}: ")), "{told}");
    }
    assert!(error("mw = 1210", "mw = 1e300").contains("promotion.mw = 1e300"));
    assert!(error("every_seconds = 1.28\n", "").contains("idle.every_seconds = 0.0"));
    assert!(error("every_seconds = 1.28", "every_seconds = 1e-8").contains("0.001 s at least"));
    assert!(error("\"DRX\"", "\" \"").contains("is no name"));
    assert!(error("\"my-lte\"", "\"\\u001b[31m\"").contains("control characters"));
    let twice = "[[tail]]\nname = \"DRX\"\nseconds = 1\nmw = 600\n[idle]";
    let told = error("[idle]", twice);
    assert!(told.contains("two states are called \"DRX\""), "{told}");
    for name in ["idle", "promotion", "active"] {
        let told = error("\"DRX\"", &format!("{name:?}"));
        assert!(told.contains(&format!("two states are called {name:?}")), "{told}");
    }
}

#[test]
fn a_profile_without_a_source_says_so() {
    for line in ["", "source = \" \"\n"] {
        let text = TOML.replace("source = \"measured at home\"\n", line);
        let radio = Device::from_toml("my.toml", &text).unwrap().radio;
        assert_eq!(radio.origin, "its file names no source");
    }
}

/// The form of the profiles of Android 8 and later, shortened.
const ANDROID: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<device name="Android">
    <item name="screen.on">100</item>
    <item name="cpu.suspend">5.7</item>
    <item name="cpu.idle">1.4</item>
    <array name="cpu.clusters.cores"><value>4</value><value>4</value></array>
    <item name="cpu.active">18.8</item>
    <item name="cpu.cluster_power.cluster0">14.7</item>
    <array name="cpu.core_power.cluster0"><value>3.0</value><value>27.5</value></array>
    <array name="cpu.core_power.cluster1"><value>12.0</value><value>250.0</value></array>
    <item name="wifi.controller.idle">2</item>
    <item name="wifi.controller.rx">123</item>
    <item name="wifi.controller.tx">333</item>
    <item name="wifi.controller.voltage">3700</item>
    <item name="modem.controller.sleep">0</item>
    <item name="modem.controller.idle">156</item>
    <item name="modem.controller.rx">145</item>
    <array name="modem.controller.tx"><value>153</value><value>212</value></array>
    <array name="camera.flashlight"/>
</device>
"#;

#[test]
fn an_android_profile_gives_both_radios_and_the_cpu() {
    let wifi = Device::from_android("p.xml", ANDROID, AndroidRadio::Wifi).unwrap();
    assert_eq!(wifi.radio.active, Watts::from_milliwatts(2.0 * 3.7));
    assert!((wifi.radio.downlink.milliwatts_per_mbps - 121.0 * 3.7 / 50.0).abs() < 1e-9);
    assert_eq!(wifi.cpu_per_core, Some(Watts::from_milliwatts(250.0 * 3.85)));
    let base = wifi.base.unwrap().get();
    assert!((base - 40.6 * 3.85 / 1e3).abs() < 1e-9, "{base} W");
    let modem = Device::from_android("p.xml", ANDROID, AndroidRadio::Modem).unwrap().radio;
    // Its idle current is above the receiving one: waiting costs no more than receiving.
    assert_eq!(modem.active, Watts::from_milliwatts(145.0 * 3.85));
    assert!((modem.uplink.milliwatts_per_mbps - 67.0 * 3.85 / 20.0).abs() < 1e-9);
}

#[test]
fn the_modem_of_android_13_is_a_table_of_its_own() {
    let table = r#"<modem>
        <sleep>3</sleep>
        <idle>40</idle>
        <active rat="DEFAULT">
            <receive>160</receive>
            <transmit level="0">200</transmit>
            <transmit level="1">220</transmit>
        </active>
        <active rat="NR" nrFrequency="MMWAVE"><receive>600</receive></active>
    </modem>"#;
    let modem = |table: &str| {
        let text = ANDROID.replace("</device>", &format!("{table}</device>"));
        Device::from_android("p.xml", &text, AndroidRadio::Modem).unwrap().radio
    };
    let radio = modem(table);
    assert_eq!(radio.active, Watts::from_milliwatts(40.0 * 3.85));
    assert_eq!(radio.idle.mean_power(), Watts::from_milliwatts(3.0 * 3.85));
    assert!((radio.downlink.milliwatts_per_mbps - 120.0 * 3.85 / 20.0).abs() < 1e-9);
    assert!((radio.uplink.milliwatts_per_mbps - 180.0 * 3.85 / 20.0).abs() < 1e-9);
    let lte = "<active rat=\"LTE\"><receive>140</receive></active></modem>";
    let radio = modem(&table.replace("</modem>", lte));
    assert!((radio.downlink.milliwatts_per_mbps - 100.0 * 3.85 / 20.0).abs() < 1e-9);
    // What the table lacks is looked for among the items.
    assert!((radio.uplink.milliwatts_per_mbps - 172.0 * 3.85 / 20.0).abs() < 1e-9);
    let wrong = ANDROID.replace("</device>", "<modem><idle>much</idle></modem></device>");
    let error = Device::from_android("p.xml", &wrong, AndroidRadio::Modem).unwrap_err();
    assert!(error.to_string().contains("\"much\""), "{error}");
}

#[test]
fn other_files_are_no_power_profiles() {
    let error = |text: &str| {
        Device::from_android("p.xml", text, AndroidRadio::Wifi).unwrap_err().to_string()
    };
    assert!(error("<html/>").contains("is it a power_profile.xml?"));
    assert!(
        error("<device><item name='cpu.idle'>1</item></device>")
            .contains("lacks wifi.controller.idle")
    );
    let with = |name: &str, value: &str| {
        let known = format!("name=\"{name}\">");
        let (before, after) = ANDROID.split_once(&known).unwrap();
        let after = after.split_once('<').unwrap().1;
        error(&format!("{before}{known}{value}<{after}"))
    };
    for value in ["-3", "NaN", "abc", "1e308"] {
        let told = with("wifi.controller.rx", value);
        assert!(told.contains(&format!("wifi.controller.rx is {value:?}")), "{told}");
    }
    assert!(with("wifi.controller.voltage", "3.7").contains("it counts in mV"));
    assert!(error("no XML").starts_with("p.xml: it is no power_profile.xml in words"));
    assert_eq!(error(" \n"), "p.xml: it is empty");
}

#[test]
fn currents_of_zero_and_items_that_are_there_twice_are_refused() {
    let error = |from: &str, to: &str, radio| {
        assert!(ANDROID.contains(from), "{from}");
        let text = ANDROID.replace(from, to);
        Device::from_android("p.xml", &text, radio).unwrap_err().to_string()
    };
    let (wifi, modem) = (AndroidRadio::Wifi, AndroidRadio::Modem);
    let told = error("rx\">123<", "rx\">0<", wifi);
    assert!(told.starts_with("p.xml: wifi.controller.rx is 0"), "{told}");
    let told = error("<value>153</value><value>212</value>", "<value>0.0</value>", modem);
    assert!(told.starts_with("p.xml: modem.controller.tx is 0"), "{told}");
    let told = error(
        "<item name=\"modem",
        "<item name=\"wifi.controller.tx\">9</item><item name=\"modem",
        wifi,
    );
    assert!(told.contains("it has wifi.controller.tx more than once"), "{told}");
    let table = "<modem><active rat=\"LTE\"/><active rat=\"LTE\"/></modem></device>";
    let told = error("</device>", table, modem);
    assert!(told.contains("the modem's active part of LTE more than once"), "{told}");
    // What no radio needs may be there as often as it likes.
    let lights = ANDROID.replace(
        "<item name=\"cpu.idle",
        "<item name=\"a\">0</item><item name=\"a\">0</item><item name=\"cpu.idle",
    );
    assert!(Device::from_android("p.xml", &lights, wifi).is_ok());
}

#[test]
fn a_voltage_that_is_assumed_is_said() {
    let origin = |radio| Device::from_android("p.xml", ANDROID, radio).unwrap().radio.origin;
    assert_eq!(origin(AndroidRadio::Wifi), "power_profile.xml; assumed: 50 Mbit/s");
    let modem = "power_profile.xml; assumed: 20 Mbit/s, LTE's times, 3.85 V";
    assert_eq!(origin(AndroidRadio::Modem), modem);
}

#[test]
fn what_is_no_text_is_said() {
    let dir = std::env::temp_dir().join(format!("pelton-power-{}", std::process::id()));
    fs::create_dir_all(dir.join("a.toml")).unwrap();
    let file = dir.join("p.xml");
    for (bytes, why) in [
        (&[3, 0, 8, 0, 1][..], "compiled"),
        (&[0xff, 0xfe][..], "no text"),
        (b"PK\x03\x04", "apktool"),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = Device::load(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = Device::load(dir.join("a.toml").to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Device::load("/nowhere/radio.toml").unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/radio.toml: No such file"), "{error}");
}
