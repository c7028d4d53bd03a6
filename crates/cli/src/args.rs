//! The command line as people type it. Everything here is syntax: what the values mean together
//! is [`crate::resolve`]'s.

mod http;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::catalog::Digest;

pub(crate) use http::HttpArgs;

use crate::energy::{self, MeterName, RadioName};
use crate::exit;
use crate::values;

const SETTINGS: &str = "Every flag is also a variable, PELTON_ and its name in capitals with _ for \
     - and . (PELTON_MAX_REDIRS=3), and a key in $XDG_CONFIG_HOME/pelton/config.toml \
     (max-redirs = 3). Flags win over variables, and variables over the file.";

/// Downloads many files over HTTP, adapting to the link, and says what it cost in joules.
#[derive(Debug, Parser)]
#[command(name = "pelton", version, arg_required_else_help = true, args_override_self = true)]
#[command(after_help = SETTINGS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Get(Box<GetArgs>),
    List(Box<ListArgs>),
    Meter(Box<MeterArgs>),
    Demo(DemoArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell that will read it.
        shell: Shell,
    },
    /// Print a manual page in roff: pelton(1), or the page of one command.
    Man {
        /// The command whose page is wanted, e.g. `get`.
        command: Option<String>,
    },
}

/// Download files.
#[derive(Debug, Args)]
#[command(after_help = SETTINGS, after_long_help = format!("{SETTINGS}\n\n{}", exit::CODES))]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) walk: WalkArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
    #[command(flatten)]
    pub(crate) energy: EnergyArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) text: TextArgs,
}

/// Show the files that `get` would fetch, with their sizes.
#[derive(Debug, Args)]
#[command(after_help = SETTINGS)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) walk: WalkArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    #[command(flatten)]
    pub(crate) text: TextArgs,
}

/// See the policies at work on this machine: own origin, shaped link, no network needed.
///
/// Downloads the same files over the same link (50 Mbit/s, 200 ms) four times: one after the other
/// as a plain client does, then as LowE, HAT and EHT decide. Takes less than a minute.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) text: TextArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// What to fetch; a URL that ends in `/` is a directory listing and means its files.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,
    /// Read URLs from FILE (`-` = standard input); may be given several times.
    ///
    /// Understood are URLs one a line with TAB-separated mirrors and indented `out=`, `dir=`,
    /// `checksum=` and `header=` lines, Metalinks (version 4), checksum lists such as `SHA256SUMS` (with
    /// `--base-url`), and JSON manifests.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) input_file: Vec<PathBuf>,
    /// The directory that the names in a checksum list or manifest are relative to.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Directory listings")]
pub(crate) struct WalkArgs {
    /// Go into the sub-directories of listings, and into URLs that the server gives a `/`.
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Take only files that match; may be given several times.
    ///
    /// A pattern without `/` is matched against the last part of a path (`*.csv` at any level), one
    /// with `/` against the whole path, where `*` stays within a part and `**` crosses them.
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Leave out files and directories that match; may be given several times.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Read at most N levels of listings, the first being the URL's own; more than 32 only if that is said.
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) depth: Option<NonZeroU32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that people type")]
pub(crate) struct TargetArgs {
    /// Store files under DIR.
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Store the only file as FILE under DIR, whatever its URL ends in; `-` = standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Go on where an earlier run stopped: the default.
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume: bool,
    /// Start over instead of going on where an earlier run stopped.
    #[arg(long)]
    pub(crate) no_continue: bool,
    /// Replace existing files that differ; without it they are kept, and that is exit 13.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// What the only file must hash to: md5, sha-1, sha-256, sha-512, blake3 or crc32c.
    #[arg(long, value_name = "ALGO=HEX", value_parser = values::digest)]
    pub(crate) checksum: Option<Digest>,
    /// Check what servers say that files hash to, where nothing else does.
    ///
    /// Understood are `SHA256SUMS` in the file's directory, `NAME.sha256` beside it, and in the
    /// answer `Repr-Digest`, `Digest`, `Content-Digest` and `Content-MD5`. What is there and is no list
    /// of digests, such as a page for people, is said, and files are judged without it.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Split files whose servers tell no version of them (no `ETag`, no `Last-Modified`).
    ///
    /// They are taken to stay as they are while they come. Where one changes meanwhile and keeps its size, its
    /// parts are of two versions, and nothing shows that. Without this flag such files come over one stream
    /// each, unless a digest of them is known (`--checksum`, lists of digests), which is checked.
    #[arg(long)]
    pub(crate) assume_unchanged: bool,
    /// How room for a file is made before its bytes come.
    #[arg(long, value_name = "HOW", default_value = "none")]
    pub(crate) file_allocation: FileAllocation,
    /// Wait so long for space on a full disk; 0 = fail at once.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time_or_none)]
    pub(crate) disk_wait: Duration,
    /// Wait until each finished file is on the disk.
    #[arg(long)]
    pub(crate) fsync: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileAllocation {
    /// The file grows as bytes come.
    None,
    /// The file has its length from the start, as a hole.
    Trunc,
    /// Its blocks are reserved from the start.
    Falloc,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct TuningArgs {
    /// Who decides how many files and streams at once.
    #[arg(long, value_name = "NAME", default_value = "eht")]
    pub(crate) policy: PolicyName,
    /// Files at once at most; exactly, with `fixed` (1 there if not given).
    #[arg(short = 'j', long, value_name = "N", value_parser = values::count)]
    pub(crate) max_concurrent_downloads: Option<NonZeroU32>,
    /// Range streams of one file at most; exactly, with `fixed` (1 there if not given).
    #[arg(short, long, value_name = "N", value_parser = values::count)]
    pub(crate) split: Option<NonZeroU32>,
    /// With `fixed` over HTTP/2: requests under way in each of the -j lanes (1 if not given).
    ///
    /// The other policies decide it themselves, for each cluster.
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) pipelining: Option<NonZeroU32>,
    /// Make no range stream for fewer bytes, 1K at least; K, M and G are powers of 1024.
    #[arg(short = 'k', long, value_name = "SIZE", value_parser = values::split_size)]
    pub(crate) min_split_size: Option<Bytes>,
    /// Connections to one origin at most, over all files.
    #[arg(short = 'x', long, value_name = "N", default_value = "64")]
    #[arg(value_parser = values::count)]
    pub(crate) max_connection_per_server: NonZeroU32,
    /// Connections at most, over all origins.
    #[arg(long, value_name = "N", default_value = "128", value_parser = values::count)]
    pub(crate) max_total_connections: NonZeroU32,
    /// One connection to each origin: `-x 1`.
    #[arg(long)]
    pub(crate) polite: bool,
    /// Bytes of files come no faster than RATE together, in bit/s: `500K`, `20M`; files share it
    /// evenly.
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) limit_rate: Option<BitRate>,
    /// Those of each origin come no faster than RATE, below --limit-rate.
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) limit_rate_per_origin: Option<BitRate>,
    /// Remember in FILE what servers bear, and start from what is there; without `=FILE`, in
    /// `$XDG_CACHE_HOME/pelton/origins`.
    ///
    /// Remembered for each scheme, host and port: how many connections it bears, round-trip time,
    /// bandwidth. They are measured again; --bandwidth and --rtt count for more.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    #[expect(clippy::option_option, reason = "clap's form of a flag whose value may be missing")]
    pub(crate) origin_memory: Option<Option<PathBuf>>,
    /// Buffers and windows of connections hold no more than SIZE together; K, M and G are powers of 1024.
    ///
    /// It bounds how many connections there are and how much each may have under way. Less than 1M
    /// counts as 1M. Outside of it: about 2 KiB for each file of the list, and the program itself.
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = values::size)]
    pub(crate) memory_limit: Bytes,
    /// The link's bandwidth, if you know it: a hint in bit/s, e.g. `50M` or `1G`.
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) bandwidth: Option<BitRate>,
    /// The link's round-trip time, if you know it: a hint, e.g. `200ms`.
    #[arg(long, value_name = "TIME", value_parser = values::rtt)]
    pub(crate) rtt: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// The least energy.
    Lowe,
    /// The most throughput.
    Hat,
    /// The most throughput per joule.
    Eht,
    /// Exactly -j files at once with -s streams each.
    Fixed,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Energy")]
pub(crate) struct EnergyArgs {
    /// Where joules come from.
    ///
    /// `auto` is the best meter that this machine has and this user may read, else the model; the
    /// plan says which and why.
    #[arg(long, value_name = "METER", default_value = "auto", value_parser = values::Suggesting::<MeterName>::new(energy::METERS))]
    pub(crate) power_meter: MeterName,
    /// The radio that the model assumes, or a file that describes one.
    ///
    /// A file is FILE.toml, a device's own profile, or FILE.xml, the `power_profile.xml` of an Android
    /// device (FILE.xml:modem for its modem). By default wifi when the default route goes over a
    /// wireless interface, else none.
    #[arg(long, value_name = "PROFILE", value_parser = values::Suggesting::<RadioName>::new(&energy::RADIOS))]
    pub(crate) radio: Option<RadioName>,
}

/// Show what this machine draws: watts and joules of every meter, once a second, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = SETTINGS)]
pub(crate) struct MeterArgs {
    #[command(flatten)]
    pub(crate) energy: EnergyArgs,
    /// The time between two readings.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time)]
    pub(crate) interval: Duration,
    /// Stop after TIME.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) text: TextArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Failures")]
pub(crate) struct RetryArgs {
    /// A stream that brings nothing for so long has failed: seconds, or e.g. `2m`.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    pub(crate) timeout: Duration,
    /// A stream that brings less than RATE over --timeout has failed, in bit/s; 0 = none is too slow.
    #[arg(long, value_name = "RATE", default_value = "1K", value_parser = values::rate_or_none)]
    pub(crate) min_speed: BitRate,
    /// How long opening a connection may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    pub(crate) connect_timeout: Duration,
    /// Attempts at a file in a row without progress; 0 = no limit.
    ///
    /// A server that is overloaded (429, 503) is asked four times as often, twice for a file
    /// where it answers for others; one that says 500, 502 or 504 to all is waited for up to a
    /// minute, and one that has answered and can't be reached now a minute for each attempt; not
    /// where N is 1.
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) tries: u32,
    /// The pause after the first failure; it doubles with each further one.
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = values::time)]
    pub(crate) retry_wait: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct RunArgs {
    /// Show what would be done and why, and fetch no file.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the files that failed to FILE, as a list that `-i` reads; none failed, none are in it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) failed_list: Option<PathBuf>,
    /// Write the run's report to FILE, whose name ends in `.json`.
    #[arg(long, value_name = "FILE", value_parser = values::report, value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct TextArgs {
    /// Write JSON to standard output, one event a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say each decision and each file; twice: connections, answers, redirects and failures too.
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Draw no progress bars. They are only drawn on a terminal.
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// Append a detailed log to FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::exit;

    const GUIDE: &str = include_str!("../../../docs/command.md");

    #[test]
    fn the_guide_names_every_command_and_flag() {
        for command in Cli::command().get_subcommands() {
            assert!(GUIDE.contains(&format!("`pelton {}", command.get_name())));
            for flag in command.get_arguments().filter(|argument| !argument.is_positional()) {
                let long = flag.get_long().unwrap();
                assert!(GUIDE.contains(&format!("`--{long}")), "--{long}");
                if let Some(short) = flag.get_short() {
                    assert!(GUIDE.contains(&format!("`-{short}`")), "-{short}");
                }
            }
        }
    }

    #[test]
    fn the_guide_has_the_exit_codes_of_the_help() {
        for line in exit::CODES.lines().skip(1) {
            let (code, meaning) = line.trim().split_once("  ").unwrap();
            assert!(GUIDE.contains(&format!("| {code} | {meaning} |")), "{code}");
        }
    }
}
