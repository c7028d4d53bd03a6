//! Which meter and which radio are meant, and what they are for a run.

use std::str::FromStr;
use std::time::{Duration, Instant};

use pelton_algos::units::Bytes;
use pelton_core::{ClientBuilder, Error, ErrorKind, Result};
use pelton_power::device::Device;
use pelton_power::meters::Scpi;
use pelton_power::radio::LastTraffic;
use pelton_power::{
    Choice, Interface, MeterError, Modelled, ModelledConfig, NetworkEnergyModel, PowerMeter, Radio,
    Sysfs, Traffic, auto,
};

use crate::args::EnergyArgs;
use crate::route;

/// Where joules come from, as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MeterName {
    Auto,
    None,
    Rapl,
    Battery,
    Hwmon,
    Scpi(String),
    Model,
}

/// What shells suggest for `--power-meter`.
pub(crate) const METERS: &[&str] =
    &["auto", "none", "rapl", "battery", "hwmon", "scpi:HOST:PORT", "scpi:DEVICE", "model"];

/// What shells suggest for `--radio`.
pub(crate) const RADIOS: [&str; Radio::ALL.len()] = {
    let mut names = [""; Radio::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Radio::ALL[index].name();
        index += 1;
    }
    names
};

impl FromStr for MeterName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            "rapl" => Self::Rapl,
            "battery" => Self::Battery,
            "hwmon" => Self::Hwmon,
            "model" => Self::Model,
            _ => match text.strip_prefix("scpi:") {
                Some(address) if address.contains(':') || address.starts_with('/') => {
                    Self::Scpi(address.to_owned())
                }
                _ => {
                    let known =
                        "auto, none, rapl, battery, hwmon, scpi:HOST:PORT, scpi:DEVICE or model";
                    return Err(format!("choose {known}"));
                }
            },
        })
    }
}

/// The radio that the model assumes, as people name it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RadioName {
    Known(Radio),
    /// A device's own profile, read from a file.
    Own(Box<Device>),
}

impl FromStr for RadioName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_file = [".toml", ".xml", ".xml:modem"].iter().any(|end| text.ends_with(end));
        if is_file {
            let device = Device::load(text).map_err(|error| error.to_string())?;
            return Ok(Self::Own(Box::new(device)));
        }
        let known = text.parse().map(Self::Known);
        known.map_err(|error: pelton_power::radio::UnknownRadio| {
            format!("{error}, or a file: FILE.toml, FILE.xml, FILE.xml:modem")
        })
    }
}

/// What the model assumes: the radio that was named, else Wi-Fi on a wireless route.
pub(crate) fn model(radio: Option<&RadioName>) -> ModelledConfig {
    let known = match radio {
        Some(RadioName::Own(device)) => return device.as_ref().clone().model(),
        Some(RadioName::Known(radio)) => *radio,
        None if route::is_wireless() => Radio::Wifi,
        None => Radio::None,
    };
    ModelledConfig { radio: known.profile(), ..ModelledConfig::default() }
}

/// A plan that nothing waits for may watch this long what others move.
const WATCH: Duration = Duration::from_millis(250);

/// What others move over the default route's interface from now on, until the first packet of one's own.
#[derive(Debug)]
pub(crate) struct Others {
    interface: Interface,
    since: Instant,
}

impl Others {
    /// `None` where no counter can be read.
    pub(crate) fn watch() -> Option<Self> {
        let interface =
            Interface::open(&Sysfs::default().interfaces(), &route::interface()?).ok()?;
        Some(Self { interface, since: Instant::now() })
    }

    /// What has moved, with which the radio of `config` is found. A dry run watches for as long as that
    /// radio stays fully awake without traffic; a transfer waits for nothing.
    fn seen(mut self, config: &ModelledConfig, dry_run: bool) -> Option<LastTraffic> {
        let inactivity = config.radio.as_ref()?.tail.first()?.duration;
        let mut watched = self.since.elapsed();
        if dry_run {
            let enough = inactivity.min(WATCH);
            std::thread::sleep(enough.saturating_sub(watched));
            // By what a sleep lasts too long, the radio is not found asleep.
            watched = watched.max(enough);
        }
        let moved = self.interface.traffic().ok()?;
        LastTraffic::of_others(&moved, &Traffic::default(), watched).or_else(Self::over_tcp)
    }

    /// What other connections of this machine did before it was watched.
    #[cfg(target_os = "linux")]
    fn over_tcp() -> Option<LastTraffic> {
        let quiet = pelton_power::tcp_quiet()?;
        Some(LastTraffic { quiet, bytes: Bytes::ZERO })
    }

    #[cfg(not(target_os = "linux"))]
    const fn over_tcp() -> Option<LastTraffic> {
        None
    }
}

/// `builder` with the meter and the model that were asked for, for a radio that may be awake already.
pub(crate) fn apply(
    builder: ClientBuilder,
    args: &EnergyArgs,
    others: Option<Others>,
    dry_run: bool,
) -> Result<ClientBuilder> {
    let mut config = model(args.radio.as_ref());
    config.last_traffic = others.and_then(|others| others.seen(&config, dry_run));
    let builder = builder.energy_model(NetworkEnergyModel::new(config.clone()));
    let sysfs = Sysfs::default();
    Ok(match &args.power_meter {
        MeterName::None => builder.no_meter(),
        MeterName::Model => builder.meter(Modelled::new(config)),
        MeterName::Auto => builder.meter_from(move || auto(config.clone())),
        MeterName::Rapl => named(builder, sysfs.rapl().map_err(unreadable)?, config),
        MeterName::Battery => named(builder, sysfs.battery().map_err(unreadable)?, config),
        MeterName::Hwmon => named(builder, sysfs.hwmon().map_err(unreadable)?, config),
        MeterName::Scpi(address) => {
            named(builder, Scpi::connect(address).map_err(unreadable)?, config)
        }
    })
}

fn named<M>(builder: ClientBuilder, meter: M, config: ModelledConfig) -> ClientBuilder
where
    M: PowerMeter + Clone + Sync + 'static,
{
    builder.meter_from(move || {
        let reason = meter.source().to_string();
        Choice::new(Box::new(meter.clone()), reason, config.clone())
    })
}

/// A meter that was asked for by name and gives nothing.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub(crate) fn unreadable(error: MeterError) -> Error {
    Error::new(ErrorKind::Usage, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_are_named() {
        assert_eq!("rapl".parse(), Ok(MeterName::Rapl));
        assert_eq!("scpi:wt210:10001".parse(), Ok(MeterName::Scpi("wt210:10001".to_owned())));
        let serial = MeterName::Scpi("/dev/ttyUSB0".to_owned());
        assert_eq!("scpi:/dev/ttyUSB0".parse(), Ok(serial));
        for wrong in ["scpi:", "scpi:host", "sun", ""] {
            let error = wrong.parse::<MeterName>().unwrap_err();
            assert!(error.contains("scpi:HOST:PORT"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_radio_is_known_or_a_file() {
        assert_eq!("n9-3g".parse(), Ok(RadioName::Known(Radio::N93g)));
        let error = "/nowhere/phone.toml".parse::<RadioName>().unwrap_err();
        assert!(error.contains("/nowhere/phone.toml"), "{error}");
        let error = "5g".parse::<RadioName>().unwrap_err();
        assert!(error.contains("none, wifi, lte") && error.contains("FILE.toml"), "{error}");
    }

    #[test]
    fn a_device_of_ones_own_is_what_the_model_assumes() {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        let text = "name = 'mine'\nbase_mw = 1\n[active]\nmw = 5\nup_mw_per_mbps = 1\n\
                    down_mw_per_mbps = 2\n[idle]\nmw = 3\n";
        std::fs::write(file.path(), text).unwrap();
        let radio: RadioName = file.path().to_str().unwrap().parse().unwrap();
        assert_eq!(model(Some(&radio)).radio.unwrap().name, "mine");
    }
}
