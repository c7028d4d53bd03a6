//! Which meter and which radio are meant, and what they are for a run.

use std::str::FromStr;

use pelton_core::{ClientBuilder, Error, ErrorKind, Result};
use pelton_power::device::Device;
use pelton_power::meters::Scpi;
use pelton_power::{
    Choice, MeterError, Modelled, ModelledConfig, NetworkEnergyModel, PowerMeter, Radio, Sysfs,
    auto,
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
    &["auto", "none", "rapl", "battery", "hwmon", "scpi:HOST:PORT", "model"];

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
                Some(address) if address.contains(':') => Self::Scpi(address.to_owned()),
                _ => {
                    return Err("choose auto, none, rapl, battery, hwmon, scpi:HOST:PORT or model"
                        .to_owned());
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

/// `builder` with the meter and the model that were asked for.
pub(crate) fn apply(builder: ClientBuilder, args: &EnergyArgs) -> Result<ClientBuilder> {
    let config = model(args.radio.as_ref());
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
