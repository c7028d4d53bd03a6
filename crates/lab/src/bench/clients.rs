//! The programs that are compared, and their command lines.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use super::PreparedSet;

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
    Curl { parallel: bool },
    Wget,
    Wget2,
    Aria2 { tuned: bool },
    Axel,
    Lftp,
}

/// Adaptive policies, by which pelton is named in a matrix.
const POLICIES: [&str; 3] = ["lowe", "hat", "eht"];

/// The clients of `all` besides pelton.
const PEERS: [&str; 14] = [
    "curl",
    "curl-tls",
    "curl-h2",
    "curl-parallel",
    "curl-parallel-tls",
    "curl-parallel-h2",
    "wget",
    "wget-tls",
    "wget2",
    "wget2-h2",
    "aria2",
    "aria2-tuned",
    "axel",
    "lftp",
];

/// A name that is no client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no client {0:?}; there are {known}, fixed:PP,P,CC, and `all`", known = known().join(", "))]
pub struct UnknownClient(String);

/// What a command line is made for.
#[derive(Debug)]
pub struct Task<'a> {
    /// The files to fetch.
    pub set: &'a PreparedSet,
    /// The server's address.
    pub server: &'a str,
    /// Where they shall be stored.
    pub out: &'a Path,
    /// A directory for the client's input files.
    pub inputs: &'a Path,
    /// The authority that signed the server's certificate, as PEM.
    pub authority: &'a Path,
    /// The program `pelton`.
    pub pelton: &'a Path,
}

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
            "curl" => Kind::Curl { parallel: false },
            "curl-parallel" => Kind::Curl { parallel: true },
            "wget" => Kind::Wget,
            "wget2" => Kind::Wget2,
            "aria2" => Kind::Aria2 { tuned: false },
            "aria2-tuned" => Kind::Aria2 { tuned: true },
            "axel" => Kind::Axel,
            "lftp" => Kind::Lftp,
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

    /// The program, `pelton` being where `pelton` says, and what to do where it is missing.
    pub fn program(&self, pelton: &Path) -> (PathBuf, String) {
        let (name, package) = match self.kind {
            Kind::Pelton(_) | Kind::Fixed { .. } => {
                let remedy = "build it with `cargo build --release -p pelton-cli`, or say where it is with --pelton";
                return (pelton.to_owned(), remedy.to_owned());
            }
            Kind::Curl { .. } => ("curl", "curl"),
            Kind::Wget => ("wget", "wget"),
            Kind::Wget2 => ("wget2", "wget2"),
            Kind::Aria2 { .. } => ("aria2c", "aria2"),
            Kind::Axel => ("axel", "axel"),
            Kind::Lftp => ("lftp", "lftp"),
        };
        (name.into(), format!("install the package {package}"))
    }

    /// The first line of what the program says of its version.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn version(&self, pelton: &Path) -> io::Result<String> {
        let output = Command::new(self.program(pelton).0).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().find(|line| !line.is_empty()).unwrap_or_default().trim().to_owned())
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
        let mut line = vec![self.program(task.pelton).0.display().to_string()];
        let mut add = |words: &[&str]| line.extend(words.iter().map(|&word| word.to_owned()));
        match self.kind {
            Kind::Pelton(policy) => {
                add(&["get", "-q", "--policy", policy, "-i", &urls, "-d", &out]);
                line.extend(self.protocol_flags(task));
            }
            Kind::Fixed { pipelining, parallelism, concurrency } => {
                let [files, streams, outstanding] =
                    [concurrency, parallelism, pipelining].map(|number| number.to_string());
                add(&["get", "-q", "--policy", "fixed", "-j", &files, "-s", &streams]);
                add(&["--pipelining", &outstanding, "-i", &urls, "-d", &out]);
                line.extend(self.protocol_flags(task));
            }
            Kind::Curl { parallel } => {
                let config = curl_config(task, &list)?.display().to_string();
                add(&["-sS", "--fail", "-K", &config]);
                if parallel {
                    add(&["--parallel"]);
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
            }
            Kind::Axel => line = axel(&urls, &out),
            Kind::Lftp => {
                add(&["-c", &format!("mirror --parallel=4 --use-pget-n=4 {base}/ \"{out}\"")]);
            }
        }
        Ok(line)
    }

    /// Flags of pelton and curl for what is not the default.
    fn protocol_flags(&self, task: &Task<'_>) -> Vec<String> {
        let authority = task.authority.display().to_string();
        match self.protocol {
            Protocol::Http1 => Vec::new(),
            Protocol::Http1Tls => vec!["--http1.1".to_owned(), "--cacert".to_owned(), authority],
            Protocol::Http2 => vec!["--http2".to_owned(), "--cacert".to_owned(), authority],
        }
    }

    /// The flag of wget and wget2, which choose between HTTP/1.1 and HTTP/2 themselves.
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

/// curl takes many URLs with their names from a configuration file.
fn curl_config(task: &Task<'_>, urls: &[String]) -> io::Result<PathBuf> {
    let config = task.inputs.join("curl.txt");
    let lines = urls.iter().map(|url| {
        let name = url.rsplit('/').next().unwrap_or(url);
        format!("url = \"{url}\"\noutput = \"{}\"\n", task.out.join(name).display())
    });
    fs::write(&config, lines.collect::<Vec<_>>().concat())?;
    Ok(config)
}

/// axel takes one URL: it is started for each, as a script would.
fn axel(urls: &str, out: &str) -> Vec<String> {
    let script = r#"while read -r url; do axel -q -o "$2/${url##*/}" "$url" || exit; done < "$1""#;
    ["sh", "-c", script, "sh", urls, out].map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Workspace;
    use crate::content::VirtualFile;

    fn names(list: &str) -> Vec<String> {
        Client::parse_list(list).unwrap().into_iter().map(|client| client.name).collect()
    }

    #[test]
    fn a_list_has_names_triples_and_all() {
        assert_eq!(names("curl,fixed:1,2,8,wget"), ["curl", "fixed:1,2,8", "wget"]);
        assert_eq!(names("all").len(), 9 + PEERS.len());
        for wrong in ["curlx", "pelton-fast", "fixed:1,2", "fixed:0,1,1", "axel-tls", "", "lftp-h2"]
        {
            let error = Client::parse_list(wrong).unwrap_err().to_string();
            assert!(error.starts_with("there is no client"), "{wrong}");
            assert!(error.contains("pelton-eht-h2, curl, "), "{error}");
        }
    }

    #[test]
    fn command_lines() {
        let base = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(base.path()).unwrap();
        let set = workspace.prepare("set", vec![VirtualFile::new("/a/one.txt", 1, 1)]).unwrap();
        let task = Task {
            set: &set,
            server: "10.77.0.1",
            out: Path::new("/out"),
            inputs: base.path(),
            authority: Path::new("/ca.pem"),
            pelton: Path::new("/bin/pelton"),
        };
        let inputs = base.path().display().to_string();
        let line = |name: &str| {
            let client = &Client::parse_list(name).unwrap()[0];
            client.command(&task).unwrap().join(" ").replace(&inputs, "")
        };
        assert_eq!(
            line("fixed:8,1,4"),
            "/bin/pelton get -q --policy fixed -j 4 -s 1 --pipelining 8 -i /urls.txt -d /out --http2 --cacert /ca.pem"
        );
        assert_eq!(
            line("fixed:1,2,4"),
            "/bin/pelton get -q --policy fixed -j 4 -s 2 --pipelining 1 -i /urls.txt -d /out"
        );
        assert_eq!(
            line("curl-parallel-tls"),
            "curl -sS --fail -K /curl.txt --parallel --http1.1 --cacert /ca.pem"
        );
        let config = fs::read_to_string(base.path().join("curl.txt")).unwrap();
        assert_eq!(config, "url = \"https://10.77.0.1/a/one.txt\"\noutput = \"/out/one.txt\"\n");
        assert_eq!(line("wget"), "wget -q -nd -P /out -i /urls.txt");
    }

    #[test]
    fn the_sweep_stays_within_64_connections() {
        let sweep: Vec<String> = Client::sweep().into_iter().map(|client| client.name).collect();
        assert!(sweep.contains(&"fixed:1,2,32".to_owned()));
        assert!(sweep.contains(&"fixed:8,1,32".to_owned()));
        assert!(!sweep.contains(&"fixed:1,4,32".to_owned()));
        assert_eq!(sweep.len(), 27);
    }
}
