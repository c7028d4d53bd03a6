//! What a client is told once.

use std::collections::hash_map::RandomState;
use std::ffi::c_char;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use pelton::algos::units::{BitRate, Bytes};
use pelton::core::connection::{ProtocolChoice, Proxies, TcpConnector, TlsOptions};
use pelton::policy::{Eht, Fixed, FixedConfig, Hat, LowE};
use pelton::{Client, ClientBuilder, EngineConfig, HttpConfig, UserLimits};

use super::error::Failure;
use super::meter::{self, PeltonMeter, UserData};
use super::pointer::{self, Versioned, text, texts};

/// What is asked for.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeltonPolicy {
    /// The most throughput per joule.
    Eht = 0,
    /// The most throughput.
    Hat = 1,
    /// The least energy.
    Lowe = 2,
    /// `max_files` files at once over `max_streams_per_file` streams each, exactly; 0 is one.
    Fixed = 3,
}

/// Which HTTP version is spoken.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeltonHttp {
    /// Over TLS what the server picks of HTTP/2 and HTTP/1.1, else HTTP/1.1.
    Auto = 0,
    /// HTTP/1.1 only.
    Http1 = 1,
    /// HTTP/2 over TLS, HTTP/1.1 in cleartext.
    Http2 = 2,
    /// HTTP/2 without asking, in cleartext too.
    Http2PriorKnowledge = 3,
}

/// A flag of pelton_client_options: replaces existing files that differ.
pub const PELTON_CLIENT_OVERWRITE: u32 = 1;
/// A flag of pelton_client_options: accepts every certificate.
pub const PELTON_CLIENT_INSECURE: u32 = 2;
/// A flag of pelton_client_options: no meter, so that no joules are reported.
pub const PELTON_CLIENT_NO_METER: u32 = 4;

/// Ceilings that bind every policy. Zero is each field's default.
///
/// Set it to zeros, then `struct_size`, then what is needed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeltonLimits {
    /// sizeof(struct pelton_limits).
    pub struct_size: usize,
    /// No range stream is made for fewer bytes. 0: two windows of a stream.
    pub split_floor_bytes: u64,
    /// Files in transfer at once. 0: as the policy says.
    pub max_files: u32,
    /// Range streams of one file. 0: as the policy says.
    pub max_streams_per_file: u32,
    /// Connections to one origin. 0: 64.
    pub max_connections_per_origin: u32,
    /// Connections over all origins. 0: 128.
    pub max_connections: u32,
    /// Bytes of bodies come no faster than this, bits a second, over all files together; files share
    /// it evenly. 0: no limit.
    pub max_rate_bps: f64,
    /// Buffers and windows of connections hold no more than this together, which bounds how many there
    /// are. 0: 512 MiB; less than 1 MiB counts as 1 MiB.
    pub max_memory_bytes: u64,
    /// The same as `max_rate_bps` for each origin, below it. 0: no limit.
    pub max_rate_per_origin_bps: f64,
}

// SAFETY: `repr(C)`, `struct_size` is first, and all fields are numbers.
unsafe impl Versioned for PeltonLimits {
    const NAME: &str = "pelton_limits";
}

impl PeltonLimits {
    /// # Safety
    /// As for [`pointer::read`].
    pub(super) unsafe fn read(pointer: *const Self) -> Result<UserLimits, Failure> {
        let defaults = UserLimits::default();
        // SAFETY: the caller's promise.
        let Some(limits) = (unsafe { pointer::read(pointer) })? else { return Ok(defaults) };
        let given = |number: u32| (number > 0).then_some(number);
        let or = |number, default| given(number).unwrap_or(default);
        Ok(UserLimits {
            max_files: given(limits.max_files),
            max_streams_per_file: given(limits.max_streams_per_file),
            max_connections_per_origin: or(
                limits.max_connections_per_origin,
                defaults.max_connections_per_origin,
            ),
            max_connections: or(limits.max_connections, defaults.max_connections),
            max_rate: hint(limits.max_rate_bps, "max_rate_bps")?.map(BitRate::from_bps),
            max_rate_per_origin: hint(limits.max_rate_per_origin_bps, "max_rate_per_origin_bps")?
                .map(BitRate::from_bps),
            max_memory: match limits.max_memory_bytes {
                0 => defaults.max_memory,
                bytes => Bytes(bytes),
            },
            split_floor: (limits.split_floor_bytes > 0).then_some(Bytes(limits.split_floor_bytes)),
        })
    }
}

/// The settings of a client. Zero is each field's default.
///
/// Set it to zeros, then `struct_size`, then what is needed. pelton copies it: it and what it points
/// to may go after pelton_client_new. Texts are UTF-8.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeltonClientOptions {
    /// sizeof(struct pelton_client_options).
    pub struct_size: usize,
    /// Ceilings. NULL: the defaults.
    pub limits: *const PeltonLimits,
    /// Where joules come from. NULL: the best that this machine has, else a model.
    pub meter: *const PeltonMeter,
    /// The value of User-Agent. NULL: pelton and its version.
    pub user_agent: *const c_char,
    /// `header_count` header fields as `Name: value`, sent with every request.
    pub headers: *const *const c_char,
    /// How many `headers` there are.
    pub header_count: usize,
    /// The user name for Basic authentication. NULL: none.
    pub user: *const c_char,
    /// Its password. NULL: empty.
    pub password: *const c_char,
    /// `http://`, `socks5://` or `socks5h://`, with user and password where it wants them. NULL: the
    /// environment's; empty: none.
    pub proxy: *const c_char,
    /// A PEM file with authorities that are trusted besides the platform's. NULL: none.
    pub ca_file: *const c_char,
    /// A PEM file with the client's certificates. NULL: none.
    pub certificate_file: *const c_char,
    /// A PEM file with its key. NULL: in `certificate_file`.
    pub key_file: *const c_char,
    /// What the link carries, bits a second, until the measurement knows better. 0: not known.
    pub bandwidth_bps: f64,
    /// Its round-trip time, seconds. 0: not known.
    pub rtt_s: f64,
    /// A value of pelton_policy.
    pub policy: i32,
    /// A value of pelton_http.
    pub http: i32,
    /// PELTON_CLIENT_... joined by `|`.
    pub flags: u32,
    /// How long opening a connection may take. 0: 30 s.
    pub connect_timeout_ms: u32,
    /// A stream that brings nothing for this long has failed. 0: 30 s.
    pub stall_timeout_ms: u32,
    /// Attempts in a row without progress before a file is given up; four times as many where the
    /// server says that it is overloaded (429, 503). 0: 5.
    pub attempts: u32,
    /// The first pause between two attempts, which doubles. 0: 250 ms.
    pub retry_wait_ms: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: `repr(C)`, `struct_size` is first, and zeros are NULLs and numbers.
unsafe impl Versioned for PeltonClientOptions {
    const NAME: &str = "pelton_client_options";
}

/// What is made of a [`PeltonClientOptions`].
pub(super) struct Made {
    pub(super) client: Client,
    pub(super) policy: &'static str,
    pub(super) meter: Option<Arc<UserData>>,
}

/// The client that C asked for.
///
/// # Safety
/// `pointer` is as [`pointer::read`] wants it, and what it holds as the header says.
pub(super) unsafe fn client(pointer: *const PeltonClientOptions) -> Result<Made, Failure> {
    // SAFETY: the caller's promise.
    let options = unsafe { pointer::read(pointer) }?.unwrap_or_else(pointer::zeros);
    pointer::unused("pelton_client_options.reserved", options.reserved == 0)?;
    known_flags(
        "pelton_client_options.flags",
        options.flags,
        PELTON_CLIENT_OVERWRITE | PELTON_CLIENT_INSECURE | PELTON_CLIENT_NO_METER,
    )?;
    // SAFETY: the caller's promise, here and below.
    let (mut builder, meter) = unsafe { meter::set(Client::builder(), options.meter) }?;
    if options.flags & PELTON_CLIENT_NO_METER != 0 {
        if meter.is_some() {
            return Err(Failure::usage("a meter is given, and PELTON_CLIENT_NO_METER is set"));
        }
        builder = builder.no_meter();
    }
    let mut engine = engine(&options, unsafe { PeltonLimits::read(options.limits) }?)?;
    let (builder, policy) = with_policy(builder, options.policy, &mut engine.limits)?;
    let http = unsafe { http(&options) }?;
    let connector = TcpConnector { connect_timeout: http.connect_timeout, ..Default::default() };
    let builder = builder.engine(engine).http(http).connector(Arc::new(connector));
    Ok(Made { client: builder.build()?, policy, meter })
}

/// Refuses flags that mean nothing.
pub(super) fn known_flags(name: &str, flags: u32, known: u32) -> Result<(), Failure> {
    match flags & !known {
        0 => Ok(()),
        unknown => Err(Failure::usage(format!("{name}: {unknown:#x} is not known"))),
    }
}

fn with_policy(
    builder: ClientBuilder,
    number: i32,
    limits: &mut UserLimits,
) -> Result<(ClientBuilder, &'static str), Failure> {
    Ok(match number {
        it if it == PeltonPolicy::Eht as i32 => (builder.policy(Eht::default()), "EHT"),
        it if it == PeltonPolicy::Hat as i32 => (builder.policy(Hat), "HAT"),
        it if it == PeltonPolicy::Lowe as i32 => (builder.policy(LowE::default()), "LowE"),
        it if it == PeltonPolicy::Fixed as i32 => {
            let exactly = |number: Option<u32>| number.unwrap_or(1);
            let config = FixedConfig {
                concurrency: exactly(limits.max_files),
                parallelism: exactly(limits.max_streams_per_file),
                ..FixedConfig::default()
            };
            limits.max_streams_per_file = Some(config.parallelism);
            (builder.policy(Fixed::new(config)), "fixed")
        }
        _ => return Err(Failure::usage(format!("policy {number} is not known"))),
    })
}

fn engine(options: &PeltonClientOptions, limits: UserLimits) -> Result<EngineConfig, Failure> {
    let mut config = EngineConfig { limits, ..EngineConfig::default() };
    config.overwrite = options.flags & PELTON_CLIENT_OVERWRITE != 0;
    // Clients that failed together must not return together: each has its own seed.
    config.seed = RandomState::new().build_hasher().finish();
    config.link.bandwidth_hint =
        hint(options.bandwidth_bps, "bandwidth_bps")?.map(BitRate::from_bps);
    let rtt = hint(options.rtt_s, "rtt_s")?.map(Duration::try_from_secs_f64).transpose();
    config.link.rtt_hint = rtt.map_err(|error| Failure::usage(format!("rtt_s: {error}")))?;
    if options.attempts > 0 {
        config.retry.attempts = options.attempts;
    }
    set(&mut config.stall_timeout, options.stall_timeout_ms);
    set(&mut config.retry.first_delay, options.retry_wait_ms);
    config.retry.longest_delay = config.retry.longest_delay.max(config.retry.first_delay);
    Ok(config)
}

/// A number above zero, or nothing for zero.
pub(super) fn hint(number: f64, name: &str) -> Result<Option<f64>, Failure> {
    if !(number.is_finite() && number >= 0.0) {
        return Err(Failure::usage(format!("{name} is {number}; it is 0 or more")));
    }
    Ok((number > 0.0).then_some(number))
}

fn set(time: &mut Duration, milliseconds: u32) {
    if milliseconds > 0 {
        *time = Duration::from_millis(milliseconds.into());
    }
}

/// # Safety
/// What `options` points to is as the header says.
unsafe fn http(options: &PeltonClientOptions) -> Result<HttpConfig, Failure> {
    // SAFETY: the caller's promise, here and below.
    let given = |pointer, name| unsafe { text(pointer, name) };
    let path = |pointer, name| Ok::<_, Failure>(given(pointer, name)?.map(Into::into));
    let mut config = HttpConfig::default();
    if let Some(agent) = given(options.user_agent, "user_agent")? {
        config.user_agent = value(agent, "user_agent")?;
    }
    for field in unsafe { texts(options.headers, options.header_count, "headers") }? {
        config.headers.push(header(field)?);
    }
    config.user = match (given(options.user, "user")?, given(options.password, "password")?) {
        (Some(user), password) => Some((user.to_owned(), password.unwrap_or_default().to_owned())),
        (None, Some(_)) => return Err(Failure::usage("a password is given, and no user")),
        (None, None) => None,
    };
    config.proxies = match given(options.proxy, "proxy")? {
        None => Proxies::default(),
        Some("") => Proxies::Direct,
        Some(url) => Proxies::Explicit { url: url.to_owned(), except: None },
    };
    let certificate = path(options.certificate_file, "certificate_file")?;
    let key = path(options.key_file, "key_file")?;
    config.tls = TlsOptions {
        extra_ca: path(options.ca_file, "ca_file")?,
        insecure: options.flags & PELTON_CLIENT_INSECURE != 0,
        client_certificate: match (certificate, key) {
            (Some(certificate), key) => Some((certificate.clone(), key.unwrap_or(certificate))),
            (None, Some(_)) => {
                return Err(Failure::usage("key_file is given, and no certificate_file"));
            }
            (None, None) => None,
        },
    };
    config.protocol = protocol(options.http)?;
    set(&mut config.connect_timeout, options.connect_timeout_ms);
    Ok(config)
}

fn protocol(number: i32) -> Result<ProtocolChoice, Failure> {
    Ok(match number {
        it if it == PeltonHttp::Auto as i32 => ProtocolChoice::Auto,
        it if it == PeltonHttp::Http1 as i32 => ProtocolChoice::Http1,
        it if it == PeltonHttp::Http2 as i32 => ProtocolChoice::Http2,
        it if it == PeltonHttp::Http2PriorKnowledge as i32 => ProtocolChoice::Http2PriorKnowledge,
        _ => return Err(Failure::usage(format!("http {number} is not known"))),
    })
}

fn header(field: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let (name, content) = field
        .split_once(':')
        .ok_or_else(|| Failure::usage(format!("header {field:?}: write it as Name: value")))?;
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| Failure::usage(format!("{name:?} is no header name")))?;
    let content = value(content.trim(), name.as_str())?;
    Ok((name, content))
}

fn value(text: &str, name: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text)
        .map_err(|_| Failure::usage(format!("the value of {name} holds control characters")))
}
