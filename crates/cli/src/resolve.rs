//! From flags to the types of pelton-core: what the values mean together.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pelton_algos::link::LinkConfig;
use pelton_algos::policy::{Eht, Fixed, FixedConfig, Hat, LowE};
use pelton_algos::retries::RetryConfig;
use pelton_core::catalog::{self, FileSpec, Globs, WalkOptions};
use pelton_core::connection::{
    AddressFamily, Cookies, HttpConfig, Netrc, ProtocolChoice, Proxies, TcpConnector, TlsOptions,
    shown, shown_text,
};
use pelton_core::engine::{EngineConfig, UserLimits};
use pelton_core::{ClientBuilder, Input, Result};
use url::Url;

use crate::args::{HttpArgs, InputArgs, PolicyName, RetryArgs, TargetArgs, TuningArgs, WalkArgs};
use crate::exit;
use crate::exit::usage;

/// What is to be fetched.
pub(crate) fn inputs(args: &InputArgs) -> Result<Vec<Input>> {
    if args.urls.is_empty() && args.input_file.is_empty() {
        return Err(usage("no URL: give one, or a list of them with -i FILE (see --help)"));
    }
    if args.input_file.iter().filter(|path| is_standard(path)).count() > 1 {
        return Err(usage("-i -: standard input can only be read once"));
    }
    let base = args.base_url.as_deref().map(parse_url).transpose()?;
    let mut inputs = Vec::with_capacity(args.urls.len());
    for url in &args.urls {
        inputs.push(parse_url(url)?.into());
    }
    for path in &args.input_file {
        let files = read_list(path, base.as_ref())?;
        // Collected apart, they stay where they are in memory.
        let mut listed: Vec<Input> = files.into_iter().map(listed).collect();
        if inputs.is_empty() {
            inputs = listed;
        } else {
            inputs.append(&mut listed);
        }
    }
    Ok(inputs)
}

/// Whether `path` is how people write standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn parse_url(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| {
        usage(format!("{:?} is no URL ({error}): write https://host/path", shown_text(text)))
    })
}

fn read_list(path: &Path, base: Option<&Url>) -> Result<Vec<FileSpec>> {
    let (name, bytes) = if is_standard(path) {
        let mut bytes = Vec::new();
        let read = io::stdin().read_to_end(&mut bytes);
        ("standard input".to_owned(), read.map(|_| bytes))
    } else {
        (path.display().to_string(), fs::read(path))
    };
    let bytes = bytes.map_err(|error| exit::io(&name, error))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        usage(format!("{name}: line {line}: not UTF-8; convert the list, e.g. with iconv"))
    })?;
    let files = catalog::parse_list(text, base).map_err(|error| error.prefixed(&name))?;
    if files.is_empty() {
        return Err(usage(format!("{name}: the list names no file")));
    }
    Ok(files)
}

/// An entry of a list. Like a URL on the command line, one that ends in `/` is a directory listing.
fn listed(spec: FileSpec) -> Input {
    let is_plain = FileSpec::from_url(spec.url.clone()).is_ok_and(|plain| plain == spec);
    if is_plain && spec.url.path().ends_with('/') { spec.url.into() } else { spec.into() }
}

/// What a file is called until -o says how.
const UNNAMED: &str = "download";

/// The only file among `inputs`, for flags that make sense for one file alone. With -o, which `names_it`, it is one whatever
/// its URL ends in.
pub(crate) fn only_file(inputs: Vec<Input>, flag: &str, names_it: bool) -> Result<FileSpec> {
    let [input] = <[Input; 1]>::try_from(inputs).map_err(|inputs| {
        usage(format!("{flag} is for one URL, and there are {}", inputs.len()))
    })?;
    let url = match input {
        Input::File(spec) => return Ok(spec),
        Input::Url(url) => url,
        Input::Text(text) => parse_url(&text)?,
    };
    if !url.path().ends_with('/') {
        return FileSpec::from_url(url);
    }
    if names_it {
        return FileSpec::with_name(url, UNNAMED.to_owned());
    }
    let url = shown(&url);
    let why = "is a directory listing: if it is a file, name it with -o";
    Err(usage(format!("{flag} is for one file, and {url} {why}")))
}

/// The directory and the name of the file `out` below `dir`.
pub(crate) fn directory_and_name(dir: &Path, out: &Path) -> Result<(PathBuf, String)> {
    let path = dir.join(out);
    let shown = out.display();
    let names_directory = shown.to_string().ends_with(std::path::is_separator) || path.is_dir();
    let name = path.file_name().filter(|_| !names_directory);
    let (Some(directory), Some(name)) = (path.parent(), name) else {
        let line = format!("-o {shown}: a directory and not a file's name; write -d {shown}");
        return Err(usage(line));
    };
    let name = name.to_str().ok_or_else(|| usage(format!("-o {shown}: not UTF-8")))?;
    Ok((directory.to_owned(), catalog::relative_name(name)?))
}

/// What of a tree is wanted.
pub(crate) fn walk(args: &WalkArgs) -> Result<WalkOptions> {
    Ok(WalkOptions {
        recursive: args.recursive,
        depth: args.depth,
        include: Globs::parse(&args.include)?,
        exclude: Globs::parse(&args.exclude)?,
    })
}

/// How servers are reached.
pub(crate) fn connector(http: &HttpArgs, retry: &RetryArgs) -> TcpConnector {
    let family = match (http.ipv4, http.ipv6) {
        (true, _) => AddressFamily::V4,
        (_, true) => AddressFamily::V6,
        _ => AddressFamily::Any,
    };
    let connect_to = http.connect_to.clone();
    TcpConnector { connect_to, family, connect_timeout: retry.connect_timeout }
}

/// How HTTP is spoken.
pub(crate) fn http(http: &HttpArgs, retry: &RetryArgs) -> Result<HttpConfig> {
    let defaults = HttpConfig::default();
    Ok(HttpConfig {
        user_agent: http.user_agent.clone().unwrap_or(defaults.user_agent),
        headers: http.header.clone(),
        user: http.user.clone(),
        netrc: netrc(http)?,
        cookies: match &http.cookie_file {
            Some(path) => read(path, Cookies::parse)?,
            None => Cookies::default(),
        },
        proxies: proxies(http),
        tls: tls(http)?,
        protocol: match (http.http1, http.http2, http.http2_prior_knowledge) {
            (true, ..) => ProtocolChoice::Http1,
            (_, true, _) => ProtocolChoice::Http2,
            (.., true) => ProtocolChoice::Http2PriorKnowledge,
            _ => ProtocolChoice::Auto,
        },
        max_redirects: http.max_redirs,
        allow_downgrade: http.allow_downgrade,
        connect_timeout: retry.connect_timeout,
    })
}

fn netrc(http: &HttpArgs) -> Result<Netrc> {
    match &http.netrc {
        None => Ok(Netrc::default()),
        Some(Some(path)) => read(path, Netrc::parse),
        Some(None) => {
            let home = std::env::home_dir()
                .ok_or_else(|| usage("--netrc: there is no home directory; use --netrc=FILE"))?;
            read(&home.join(".netrc"), Netrc::parse)
        }
    }
}

/// Reads the file at `path` and parses it; the parser is told its name.
fn read<T>(path: &Path, parse: impl Fn(&str, &str) -> Result<T>) -> Result<T> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| exit::io(&name, error))?;
    parse(&text, &name)
}

fn proxies(http: &HttpArgs) -> Proxies {
    match (&http.proxy, &http.noproxy) {
        (_, Some(except)) if except.trim() == "*" => Proxies::Direct,
        (Some(url), _) if url.is_empty() => Proxies::Direct,
        (Some(url), except) => Proxies::Explicit { url: url.clone(), except: except.clone() },
        (None, except) => Proxies::Environment { except: except.clone() },
    }
}

fn tls(http: &HttpArgs) -> Result<TlsOptions> {
    let client_certificate = match (&http.cert, &http.key) {
        (Some(cert), key) => Some((cert.clone(), key.as_ref().unwrap_or(cert).clone())),
        (None, Some(_)) => return Err(usage("--key is the key of --cert, which is missing")),
        (None, None) => None,
    };
    let (extra_ca, insecure) = (http.cacert.clone(), http.insecure);
    Ok(TlsOptions { extra_ca, insecure, client_certificate })
}

/// Ceilings, hints and retries.
pub(crate) fn engine(tuning: &TuningArgs, retry: &RetryArgs, target: &TargetArgs) -> EngineConfig {
    let defaults = RetryConfig::default();
    let lanes = tuning.max_concurrent_downloads.map(Into::into);
    let per_origin = if tuning.polite { 1 } else { tuning.max_connection_per_server.get() };
    EngineConfig {
        limits: UserLimits {
            // A lane of `fixed` bears as many files as its requests outstanding.
            max_files: lanes
                .map(|lanes: u32| lanes.saturating_mul(tuning.pipelining.map_or(1, Into::into))),
            // The numbers of `fixed` are exact: what was not given is one.
            max_streams_per_file: match tuning.policy {
                PolicyName::Fixed => Some(tuning.split.map_or(1, Into::into)),
                _ => tuning.split.map(Into::into),
            },
            max_connections_per_origin: per_origin,
            max_connections: tuning.max_total_connections.get(),
            split_floor: tuning.min_split_size,
            max_rate: tuning.limit_rate,
            max_rate_per_origin: tuning.limit_rate_per_origin,
            max_memory: tuning.memory_limit,
        },
        link: LinkConfig {
            bandwidth_hint: tuning.bandwidth,
            rtt_hint: tuning.rtt,
            ..LinkConfig::default()
        },
        retry: RetryConfig {
            attempts: if retry.tries == 0 { u32::MAX } else { retry.tries },
            first_delay: retry.retry_wait,
            longest_delay: defaults.longest_delay.max(retry.retry_wait),
            ..defaults
        },
        stall_timeout: retry.timeout,
        min_rate: retry.min_speed,
        disk_patience: target.disk_wait,
        overwrite: target.overwrite,
        verify: target.verify,
        assume_unchanged: target.assume_unchanged,
        // Clients that failed together must not return together: each run has its own seed.
        seed: RandomState::new().build_hasher().finish(),
        ..EngineConfig::default()
    }
}

/// `builder` with the origin memory that was asked for.
pub(crate) fn origin_memory(builder: ClientBuilder, tuning: &TuningArgs) -> Result<ClientBuilder> {
    let path = match &tuning.origin_memory {
        None => return Ok(builder),
        Some(Some(path)) => path.clone(),
        Some(None) => cache_directory()?.join("pelton").join("origins"),
    };
    Ok(builder.origin_memory(path))
}

/// XDG Base Directory Specification: a relative path is ignored.
fn cache_directory() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let of_home = || Some(std::env::home_dir()?.join(".cache"));
    named.filter(|path| path.is_absolute()).or_else(of_home).ok_or_else(|| {
        usage("--origin-memory: there is no home directory; use --origin-memory=FILE")
    })
}

/// `builder` with the policy that was asked for.
pub(crate) fn policy(builder: ClientBuilder, tuning: &TuningArgs) -> ClientBuilder {
    let exactly = |number: Option<std::num::NonZeroU32>| number.map_or(1, Into::into);
    match tuning.policy {
        PolicyName::Lowe => builder.policy(LowE::default()),
        PolicyName::Hat => builder.policy(Hat),
        PolicyName::Eht => builder.policy(Eht::default()),
        PolicyName::Fixed => builder.policy(Fixed::new(FixedConfig {
            concurrency: exactly(tuning.max_concurrent_downloads),
            parallelism: exactly(tuning.split),
            pipelining: exactly(tuning.pipelining),
        })),
    }
}

#[cfg(test)]
mod tests;
