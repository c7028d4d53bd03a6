//! A device's own numbers: from a TOML file, or from the `power_profile.xml` that every Android
//! device carries.

use std::path::Path;
use std::{fs, io};

use pelton_algos::units::Watts;

use crate::modelled::ModelledConfig;
use crate::radio::RadioProfile;

mod android;
mod toml_file;

/// How XML begins that an Android package has in it (`RES_XML_TYPE`).
const COMPILED_XML: &[u8] = &[3, 0, 8, 0];

/// How archives begin, as Android packages are (APK): the profile is in one.
const ARCHIVE: &[u8] = b"PK\x03\x04";

/// What is known of a device. What a file leaves out stays as [`ModelledConfig::default`] has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Its radio.
    pub radio: RadioProfile,
    /// Power of one busy core.
    pub cpu_per_core: Option<Watts>,
    /// Power of being awake.
    pub base: Option<Watts>,
}

/// Which radio of a phone is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AndroidRadio {
    /// Wi-Fi.
    Wifi,
    /// The cellular modem.
    Modem,
}

/// A profile that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct ProfileError {
    /// The file.
    pub name: String,
    /// What is wrong with it, or why it can't be read.
    pub reason: String,
}

impl Device {
    /// Reads the profile `path`: `FILE.toml`, `FILE.xml` (Android's, its Wi-Fi) or `FILE.xml:modem`.
    ///
    /// # Errors
    /// The file can't be read, or is no such profile.
    pub fn load(path: &str) -> Result<Self, ProfileError> {
        let (file, radio) = match path.strip_suffix(":modem") {
            Some(file) => (file, AndroidRadio::Modem),
            None => (path, AndroidRadio::Wifi),
        };
        let failed = |reason: String| ProfileError { name: file.to_owned(), reason };
        let read = |path| {
            let is_file = fs::metadata(path)?.is_file();
            if is_file { fs::read(path) } else { Err(io::Error::other("it is no regular file")) }
        };
        let bytes = read(file).map_err(|error: io::Error| failed(error.to_string()))?;
        if bytes.starts_with(COMPILED_XML) {
            return Err(failed("it is compiled: decode it first, as apktool does".to_owned()));
        }
        if bytes.starts_with(ARCHIVE) {
            let how = "decode it, as apktool does, and name the res/xml/power_profile.xml of it";
            return Err(failed(format!("it is an archive: {how}")));
        }
        let text = String::from_utf8(bytes).map_err(|_| failed("it is no text".to_owned()))?;
        let extension = Path::new(file).extension();
        if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("xml")) {
            Self::from_android(file, &text, radio)
        } else {
            Self::from_toml(file, &text)
        }
    }

    /// Reads a profile in TOML, as `docs/energy.md` describes it. `name` is for messages.
    ///
    /// # Errors
    /// It is no TOML, a key is unknown or missing, or a number makes no sense.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, ProfileError> {
        toml_file::parse(text).map_err(|reason| ProfileError { name: name.to_owned(), reason })
    }

    /// Reads an Android power profile. `name` is for messages.
    ///
    /// # Errors
    /// It is no power profile, or lacks the values of `radio`.
    pub fn from_android(name: &str, text: &str, radio: AndroidRadio) -> Result<Self, ProfileError> {
        android::parse(text, radio).map_err(|reason| ProfileError { name: name.to_owned(), reason })
    }

    /// The model of this device.
    pub fn model(self) -> ModelledConfig {
        let defaults = ModelledConfig::default();
        ModelledConfig {
            radio: Some(self.radio),
            cpu_per_core: self.cpu_per_core.unwrap_or(defaults.cpu_per_core),
            base: self.base.unwrap_or(defaults.base),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests;
