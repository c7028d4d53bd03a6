//! The programs that are compared, and their command lines.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use thiserror::Error;

mod task;

pub use task::{Programs, Task};
use task::{axel, curl_config, reckoning};

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 in the clear.
    Http1,
    /// HTTP/1.1 over TLS: names that end in `-tls`.
    Http1Tls,
    /// HTTP/2 over TLS, as browsers speak it: names that end in `-h2`.
    Http2,
}

/// A program with its way to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// As in a matrix: `curl`, `pelton-eht-h2`, `fixed:1,2,8`.
    pub name: String,
    pub(crate) kind: Kind,
    /// What it speaks.
    pub protocol: Protocol,
}

/// Which program, and with which numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pelton(&'static str),
    Fixed { pipelining: u32, parallelism: u32, concurrency: u32 },
    Curl { at_once: Option<u32> },
    Wget,
    Wget2,
    Aria2 { tuned: bool },
    Axel,
    Lftp,
    Reqwest { at_once: u32 },
}

/// Adaptive policies, by which pelton is named in a matrix.
const POLICIES: [&str; 3] = ["lowe", "hat", "eht"];

/// The clients of `all` besides pelton.
const PEERS: [&str; 20] = [
    "curl",
    "curl-tls",
    "curl-h2",
    "curl-six",
    "curl-parallel",
    "curl-parallel-tls",
    "curl-parallel-h2",
    "wget",
    "wget-tls",
    "wget2",
    "wget2-h2",
    "aria2",
    "aria2-tuned",
    "aria2-tuned-tls",
    "axel",
    "lftp",
    "reqwest",
    "reqwest-h2",
    "reqwest-parallel",
    "reqwest-parallel-h2",
];

/// What `curl --parallel` has under way if nothing is said.
const CURL_PARALLEL: u32 = 50;

/// Connections to one host that browsers open over HTTP/1.1.
const BROWSER: u32 = 6;

/// Requests that the concurrent reqwest program has under way.
const REQWEST_PARALLEL: u32 = 16;

/// A name that is no client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no client {0:?}; there are {known}, fixed:PP,P,CC, and `all`", known = known().join(", "))]
pub struct UnknownClient(String);

impl Client {
    /// The clients that a list means: names separated by commas, `fixed:PP,P,CC`, `all`.
    ///
    /// # Errors
    /// The first name that is none.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, UnknownClient> {
        let mut clients: Vec<Self> = Vec::new();
        let mut words = list.split(',').map(str::trim);
        while let Some(word) = words.next() {
            if word == "all" {
                for name in known() {
                    clients.push(Self::parse(&name)?);
                }
            } else if word.starts_with("fixed:") {
                let rest = [words.next(), words.next()].map(Option::unwrap_or_default);
                clients.push(Self::parse(&format!("{word},{}", rest.join(",")))?);
            } else {
                clients.push(Self::parse(word)?);
            }
        }
        Ok(clients)
    }

    fn parse(name: &str) -> Result<Self, UnknownClient> {
        let (program, protocol) = match name {
            _ if name.ends_with("-h2") => (name.trim_end_matches("-h2"), Protocol::Http2),
            _ if name.ends_with("-tls") => (name.trim_end_matches("-tls"), Protocol::Http1Tls),
            _ => (name, Protocol::Http1),
        };
        let unknown = || UnknownClient(name.to_owned());
        if let Some(numbers) = name.strip_prefix("fixed:") {
            return Self::fixed(name, numbers).ok_or_else(unknown);
        }
        if let Some(policy) = program.strip_prefix("pelton-") {
            let policy = POLICIES.into_iter().find(|known| *known == policy).ok_or_else(unknown)?;
            return Ok(Self { name: name.to_owned(), kind: Kind::Pelton(policy), protocol });
        }
        if !PEERS.contains(&name) {
            return Err(unknown());
        }
        let kind = match program {
            "curl" => Kind::Curl { at_once: None },
            "curl-six" => Kind::Curl { at_once: Some(BROWSER) },
            "curl-parallel" => Kind::Curl { at_once: Some(CURL_PARALLEL) },
            "wget" => Kind::Wget,
            "wget2" => Kind::Wget2,
            "aria2" => Kind::Aria2 { tuned: false },
            "aria2-tuned" => Kind::Aria2 { tuned: true },
            "axel" => Kind::Axel,
            "lftp" => Kind::Lftp,
            "reqwest" => Kind::Reqwest { at_once: 1 },
            "reqwest-parallel" => Kind::Reqwest { at_once: REQWEST_PARALLEL },
            _ => return Err(unknown()),
        };
        Ok(Self { name: name.to_owned(), kind, protocol })
    }

    /// `numbers` are pipelining, parallelism, concurrency. More than one request at a time on a
    /// connection takes HTTP/2.
    fn fixed(name: &str, numbers: &str) -> Option<Self> {
        let numbers: Vec<u32> =
            numbers.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [pipelining, parallelism, concurrency] = numbers[..] else { return None };
        let product = pipelining.checked_mul(concurrency)?.checked_mul(parallelism)?;
        let kind = Kind::Fixed { pipelining, parallelism, concurrency };
        let protocol = if pipelining > 1 { Protocol::Http2 } else { Protocol::Http1 };
        (product > 0).then(|| Self { name: name.to_owned(), kind, protocol })
    }

    /// The static cells that are searched for the best one: concurrency 1 to 32 with parallelism 1
    /// to 8, at most 64 connections, and HTTP/2 with 8 requests outstanding on each of them.
    pub fn sweep() -> Vec<Self> {
        let cells = [1, 2, 4, 8, 16, 32].into_iter().flat_map(|concurrency| {
            let http1 = [1, 2, 4, 8].map(|parallelism| (1, parallelism, concurrency));
            http1.into_iter().chain([(8, 1, concurrency)])
        });
        cells
            .filter(|(_, parallelism, concurrency)| parallelism * concurrency <= 64)
            .filter_map(|(pipelining, parallelism, concurrency)| {
                let numbers = format!("{pipelining},{parallelism},{concurrency}");
                Self::fixed(&format!("fixed:{numbers}"), &numbers)
            })
            .collect()
    }

    /// The program, and what to do where it is missing.
    pub fn program(&self, programs: &Programs) -> (PathBuf, String) {
        let built = |path: &Path, what: &str| {
            (path.to_owned(), format!("build it with `cargo build --release {what}`"))
        };
        let (name, package) = match self.kind {
            Kind::Pelton(_) | Kind::Fixed { .. } => {
                let (path, remedy) = built(&programs.pelton, "-p pelton-cli");
                return (path, format!("{remedy}, or say where it is with --pelton"));
            }
            Kind::Reqwest { .. } => {
                return built(&programs.reqwest, "-p pelton-lab --example reqwest_loop");
            }
            Kind::Curl { .. } => ("curl", "curl"),
            Kind::Wget => ("wget", "wget"),
            Kind::Wget2 => ("wget2", "wget2"),
            Kind::Aria2 { .. } => ("aria2c", "aria2"),
            Kind::Axel => ("axel", "axel"),
            Kind::Lftp => ("lftp", "lftp"),
        };
        (name.into(), format!("install the Debian package {package}"))
    }

    /// The first line of what the program says of its version.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn version(&self, programs: &Programs) -> io::Result<String> {
        let output = Command::new(self.program(programs).0).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().find(|line| !line.is_empty()).unwrap_or_default().trim().to_owned())
    }

    /// Whether it writes a report with decisions, to [`Task::report`].
    pub fn reports(&self) -> bool {
        matches!(self.kind, Kind::Pelton(_) | Kind::Fixed { .. })
    }

    /// About how long it takes, for estimates: the floor, and a round trip for each file of a lane.
    pub fn estimate(&self, floor: Duration, rtt: Duration, files: usize) -> Duration {
        let (lanes, round_trips) = match self.kind {
            Kind::Pelton(_) => (32.0, 1.0),
            Kind::Fixed { pipelining, concurrency, .. } => {
                (f64::from(pipelining * concurrency), 1.0)
            }
            Kind::Curl { at_once } => (f64::from(at_once.unwrap_or(1)), 1.0),
            Kind::Reqwest { at_once } => (f64::from(at_once), 1.0),
            Kind::Wget => (1.0, 1.0),
            Kind::Wget2 => (5.0, 1.0),
            Kind::Aria2 { tuned } => (if tuned { 16.0 } else { 5.0 }, 1.5),
            // A process and a connection for each file.
            Kind::Axel => (1.0, 3.0),
            Kind::Lftp => (4.0, 2.0),
        };
        floor.mul_f64(1.2) + rtt.mul_f64(files as f64 * round_trips / lanes)
    }

    /// The command line for `task`; writes the input files that it names.
    ///
    /// # Errors
    /// What the file system says.
    pub fn command(&self, task: &Task<'_>) -> io::Result<Vec<String>> {
        let base = match self.protocol {
            Protocol::Http1 => format!("http://{}", task.server),
            Protocol::Http1Tls | Protocol::Http2 => format!("https://{}", task.server),
        };
        let urls = task.inputs.join("urls.txt");
        let list: Vec<String> =
            task.set.files.iter().map(|file| format!("{base}{}", file.path)).collect();
        fs::write(&urls, list.join("\n") + "\n")?;
        let (urls, out) = (urls.display().to_string(), task.out.display().to_string());
        let mut line = vec![self.program(task.programs).0.display().to_string()];
        let mut add = |words: &[&str]| line.extend(words.iter().map(|&word| word.to_owned()));
        match self.kind {
            Kind::Pelton(policy) => {
                add(&["get", "-q", "--policy", policy, "-i", &urls, "-d", &out]);
                line.extend(self.protocol_flags(task));
                line.extend(reckoning(task));
            }
            Kind::Fixed { pipelining, parallelism, concurrency } => {
                let [files, streams, outstanding] =
                    [concurrency, parallelism, pipelining].map(|number| number.to_string());
                let connections = (concurrency * parallelism).to_string();
                add(&["get", "-q", "--policy", "fixed", "-j", &files, "-s", &streams]);
                add(&["--pipelining", &outstanding, "-x", &connections]);
                add(&["--max-total-connections", &connections]);
                add(&["-i", &urls, "-d", &out]);
                line.extend(self.protocol_flags(task));
                line.extend(reckoning(task));
            }
            Kind::Curl { at_once } => {
                let config = curl_config(task, &list)?.display().to_string();
                add(&["-sS", "--fail", "-K", &config]);
                if let Some(at_once) = at_once {
                    add(&["--parallel"]);
                    if at_once != CURL_PARALLEL {
                        add(&["--parallel-max", &at_once.to_string()]);
                    }
                }
                line.extend(self.protocol_flags(task));
            }
            Kind::Wget => {
                add(&["-q", "-nd", "-P", &out, "-i", &urls]);
                line.extend(self.ca_certificate(task));
            }
            Kind::Wget2 => {
                add(&["-q", "-nd", "--no-robots", "-P", &out, "-i", &urls]);
                line.extend(self.ca_certificate(task));
            }
            Kind::Aria2 { tuned } => {
                add(&["-q", "--no-conf", "-d", &out, "-i", &urls]);
                if tuned {
                    add(&["-j16", "-x16", "-s16", "-k1M", "--file-allocation=none"]);
                }
                line.extend(self.ca_certificate(task));
            }
            Kind::Axel => line = axel(&urls, &out),
            Kind::Lftp => {
                add(&["-c", &format!("mirror --parallel=4 --use-pget-n=4 {base}/ \"{out}\"")]);
            }
            Kind::Reqwest { at_once } => {
                add(&["-j", &at_once.to_string(), "-i", &urls, "-d", &out]);
                line.extend(self.protocol_flags(task));
            }
        }
        Ok(line)
    }

    /// Flags of pelton, curl and the reqwest program for what is not the default.
    fn protocol_flags(&self, task: &Task<'_>) -> Vec<String> {
        let authority = task.authority.display().to_string();
        match self.protocol {
            Protocol::Http1 => Vec::new(),
            Protocol::Http1Tls => vec!["--http1.1".to_owned(), "--cacert".to_owned(), authority],
            Protocol::Http2 => vec!["--http2".to_owned(), "--cacert".to_owned(), authority],
        }
    }

    /// The flag of wget, wget2 and aria2, which choose between HTTP/1.1 and HTTP/2 themselves.
    fn ca_certificate(&self, task: &Task<'_>) -> Option<String> {
        let authority = format!("--ca-certificate={}", task.authority.display());
        (self.protocol != Protocol::Http1).then_some(authority)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// The names of all clients.
fn known() -> Vec<String> {
    let pelton = ["", "-tls", "-h2"]
        .into_iter()
        .flat_map(|suffix| POLICIES.map(|policy| format!("pelton-{policy}{suffix}")));
    pelton.chain(PEERS.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
