//! What Java's builders say: names and values, as they come over the border.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use pelton::algos::units::{BitRate, Bytes, Joules};
use pelton::core::connection::{Proxies, shown, shown_text};
use pelton::policy::{Eht, Fixed, FixedConfig, Hat, LowE};
use pelton::power::{
    Callback, Choice, ModelledConfig, NetworkEnergyModel, PowerMeter, Radio, Resolution, Scope,
    auto,
};
use pelton::{
    Client, ClientBuilder, Download, EngineConfig, Error, ErrorKind, FileSpec, HttpConfig, Input,
    Result, WalkOptions,
};
use url::Url;

use super::sample::LastSample;

/// A name and its value.
pub(super) type Setting = (String, String);

/// A client with these settings. Joules that Java reads come by way of `sample`.
///
/// # Errors
/// `Usage`: a setting that is unknown or malformed.
pub(super) fn client(settings: &[Setting], sample: &Arc<LastSample>) -> Result<Client> {
    let mut builder = Client::builder();
    let mut http = HttpConfig::default();
    let mut engine = EngineConfig::default();
    let mut fixed = FixedConfig::default();
    let mut policy = "eht";
    let mut energy = Energy::default();
    for (name, value) in settings {
        match name.as_str() {
            "policy" => policy = value,
            "max-files" => {
                fixed.concurrency = number(name, value)?;
                engine.limits.max_files = Some(fixed.concurrency);
            }
            "max-streams-per-file" => {
                fixed.parallelism = number(name, value)?;
                engine.limits.max_streams_per_file = Some(fixed.parallelism);
            }
            "max-connections-per-server" => {
                engine.limits.max_connections_per_origin = number(name, value)?;
            }
            "max-connections" => engine.limits.max_connections = number(name, value)?,
            "min-split-size" => engine.limits.split_floor = Some(Bytes(number(name, value)?)),
            "max-rate" => engine.limits.max_rate = rate(name, value)?,
            "max-rate-per-server" => engine.limits.max_rate_per_origin = rate(name, value)?,
            "max-memory" => engine.limits.max_memory = Bytes(number(name, value)?),
            "tries" => engine.retry.attempts = number(name, value)?,
            "retry-wait-ms" => engine.retry.first_delay = milliseconds(name, value)?,
            "timeout-ms" => engine.stall_timeout = some_time(name, value)?,
            "connect-timeout-ms" => http.connect_timeout = some_time(name, value)?,
            "overwrite" => engine.overwrite = flag(name, value)?,
            "user-agent" => http.user_agent = header_value(name, value)?,
            "header" => http.headers.push(header(value)?),
            "user" => http.user = Some(user(value)?),
            "proxy" => http.proxies = proxy(value),
            "ca-file" => http.tls.extra_ca = Some(value.into()),
            _ => energy.set(name, value)?,
        }
    }
    builder = with_policy(builder, policy, fixed)?;
    energy.apply(builder, sample).http(http).engine(engine).build()
}

fn with_policy(builder: ClientBuilder, name: &str, fixed: FixedConfig) -> Result<ClientBuilder> {
    Ok(match name {
        "lowe" => builder.policy(LowE::default()),
        "hat" => builder.policy(Hat),
        "eht" => builder.policy(Eht::default()),
        "fixed" => builder.policy(Fixed::new(fixed)),
        _ => return Err(usage(format!("{name} is no policy"))),
    })
}

/// Where joules come from.
#[derive(Default)]
struct Energy {
    meter: Option<String>,
    name: String,
    interval: Duration,
    model: ModelledConfig,
}

impl Energy {
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "meter" => self.meter = Some(value.to_owned()),
            "meter-name" => value.clone_into(&mut self.name),
            "meter-interval-ms" => self.interval = milliseconds(name, value)?,
            "radio" => {
                let radio = Radio::from_str(value).map_err(|error| usage(error.to_string()))?;
                self.model.radio = radio.profile();
            }
            _ => return Err(usage(format!("{name} is no setting"))),
        }
        Ok(())
    }

    fn apply(self, builder: ClientBuilder, sample: &Arc<LastSample>) -> ClientBuilder {
        let builder = builder.energy_model(NetworkEnergyModel::new(self.model.clone()));
        match self.meter.as_deref() {
            None => builder.meter_from(move || auto(self.model.clone())),
            Some("none") => builder.no_meter(),
            Some(_) => {
                let sample = Arc::clone(sample);
                builder.meter_from(move || self.own_meter(&sample))
            }
        }
    }

    /// A meter that shows what Java read last: its code never runs on the thread of a download.
    fn own_meter(&self, sample: &Arc<LastSample>) -> Choice {
        let sample = Arc::clone(sample);
        let resolution = Resolution { interval: self.interval, step: Joules::ZERO };
        let meter = Callback::new(&self.name, Scope::Device, resolution, move || sample.get());
        let reason = meter.source().to_string();
        Choice::new(Box::new(meter), reason, self.model.clone())
    }
}

/// What one download is asked for.
#[derive(Debug, Default)]
pub(super) struct Order {
    urls: Vec<String>,
    directory: Option<String>,
    name: Option<String>,
    digest: Option<pelton::Digest>,
    headers: Vec<(String, String)>,
    walk: WalkOptions,
    starts_over: bool,
    fsync: bool,
}

impl Order {
    /// # Errors
    /// `Usage`: a setting that is unknown or malformed.
    pub(super) fn parse(settings: &[Setting]) -> Result<Self> {
        let mut order = Self::default();
        for (name, value) in settings {
            match name.as_str() {
                "url" => order.urls.push(value.clone()),
                "directory" => order.directory = Some(value.clone()),
                "name" => order.name = Some(value.clone()),
                "digest" => order.digest = Some(pelton::Digest::parse(value)?),
                "header" => {
                    let (name, _) = header(value)?;
                    let text = value.split_once(':').map_or("", |(_, text)| text.trim());
                    order.headers.push((name.to_string(), text.to_owned()));
                }
                "recursive" => order.walk.recursive = flag(name, value)?,
                "start-over" => order.starts_over = flag(name, value)?,
                "fsync" => order.fsync = flag(name, value)?,
                _ => return Err(usage(format!("{name} is no setting of a request"))),
            }
        }
        Ok(order)
    }

    /// The download that was asked for, whose target is still the current directory when none was
    /// named.
    ///
    /// # Errors
    /// `Usage`: no URL, or what holds for one file alone was asked of many.
    pub(super) fn download(mut self, client: &Client) -> Result<Download> {
        let walk = std::mem::take(&mut self.walk);
        let directory = self.directory.take();
        let (starts_over, fsync) = (self.starts_over, self.fsync);
        let mut download =
            client.download(self.inputs()?).walk(walk).resume(!starts_over).fsync(fsync);
        if let Some(directory) = directory {
            download = download.into_dir(directory);
        }
        Ok(download)
    }

    fn inputs(self) -> Result<Vec<Input>> {
        if self.urls.is_empty() {
            return Err(usage("a request needs a URL".to_owned()));
        }
        let of_one_file = self.name.is_some() || self.digest.is_some();
        if of_one_file && self.urls.len() > 1 {
            return Err(usage("a file name or a digest belongs to one URL".to_owned()));
        }
        if !of_one_file && self.headers.is_empty() {
            return Ok(self.urls.into_iter().map(Input::Text).collect());
        }
        self.urls.iter().map(|url| self.file(url).map(Input::from)).collect()
    }

    /// The one file at `url` with what is asked of it.
    fn file(&self, url: &str) -> Result<FileSpec> {
        let parsed = Url::parse(url)
            .map_err(|error| usage(format!("{} is no URL: {error}", shown_text(url))))?;
        if parsed.path().ends_with('/') && self.name.is_none() {
            return Err(usage(format!(
                "{} is a directory listing: a digest or headers of a request belong to files; \
                 set headers for all on the client",
                shown(&parsed)
            )));
        }
        let mut spec = FileSpec::from_url(parsed)?;
        if let Some(name) = &self.name {
            spec.name = pelton::core::catalog::relative_name(name)?;
        }
        spec.digest.clone_from(&self.digest);
        spec.headers.clone_from(&self.headers);
        Ok(spec)
    }
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| usage(format!("{name}: {value} is out of range")))
}

/// Bits a second; 0 is no limit.
fn rate(name: &str, value: &str) -> Result<Option<BitRate>> {
    let rate: u64 = number(name, value)?;
    Ok((rate > 0).then(|| BitRate::from_bps(rate as f64)))
}

fn milliseconds(name: &str, value: &str) -> Result<Duration> {
    number(name, value).map(Duration::from_millis)
}

/// A time that is not over at once.
fn some_time(name: &str, value: &str) -> Result<Duration> {
    let time = milliseconds(name, value)?;
    if time.is_zero() {
        return Err(usage(format!("{name} is 0; it is a millisecond at least")));
    }
    Ok(time)
}

fn flag(name: &str, value: &str) -> Result<bool> {
    number(name, value)
}

fn user(value: &str) -> Result<(String, String)> {
    let parts = value.split_once(':');
    let (name, password) = parts.ok_or_else(|| usage("a user needs a password".to_owned()))?;
    Ok((name.to_owned(), password.to_owned()))
}

/// No proxy where `url` is empty.
fn proxy(url: &str) -> Proxies {
    if url.is_empty() {
        return Proxies::Direct;
    }
    Proxies::Explicit { url: url.to_owned(), except: None }
}

/// The value may be a secret: no message shows it.
fn header(line: &str) -> Result<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':').ok_or_else(not_a_header)?;
    let name = HeaderName::from_str(name.trim()).map_err(|_| not_a_header())?;
    let value = header_value(name.as_str(), value)?;
    Ok((name, value))
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(value.trim())
        .map_err(|_| usage(format!("the value of {name} holds what no header can")))
}

fn not_a_header() -> Error {
    usage("a header is a name and a value without control characters".to_owned())
}

#[cfg(test)]
mod tests;
