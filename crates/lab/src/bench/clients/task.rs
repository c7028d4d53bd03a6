//! What the command line of a client is made for, and the files that it names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pelton_power::Radio;

use crate::bench::PreparedSet;

/// Where a command line shows the directory of its run.
const WORK: &str = "WORK";

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
    /// The radio that pelton shall reckon with.
    pub radio: Radio,
    /// Programs that are no packages.
    pub programs: &'a Programs,
}

/// The programs that are built here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// The command `pelton`.
    pub pelton: PathBuf,
    /// The lab's example `reqwest_loop`.
    pub reqwest: PathBuf,
}

impl Task<'_> {
    /// Where pelton writes its report.
    pub fn report(&self) -> PathBuf {
        self.inputs.join("report.json")
    }

    /// A command line for people: the directory of the run is `WORK`, the program has no path.
    pub fn shown(&self, command: &[String]) -> Vec<String> {
        let work = self.inputs.display().to_string();
        let mut shown: Vec<_> = command.iter().map(|word| word.replace(&work, WORK)).collect();
        if let Some(program) = shown.first_mut()
            && let Some(name) = Path::new(program).file_name()
        {
            *program = name.to_string_lossy().into_owned();
        }
        shown
    }
}

/// What pelton reckons with, and where it says what it decided. The lab's machine has no radio: that
/// of the link is named, as it is known on a phone.
pub(super) fn reckoning(task: &Task<'_>) -> [String; 6] {
    let report = task.report().display().to_string();
    ["--power-meter", "model", "--radio", task.radio.name(), "--report", &report].map(str::to_owned)
}

/// curl takes many URLs with their names from a configuration file.
pub(super) fn curl_config(task: &Task<'_>, urls: &[String]) -> io::Result<PathBuf> {
    let config = task.inputs.join("curl.txt");
    let lines = urls.iter().map(|url| {
        let name = url.rsplit('/').next().unwrap_or(url);
        format!("url = \"{url}\"\noutput = \"{}\"\n", task.out.join(name).display())
    });
    fs::write(&config, lines.collect::<Vec<_>>().concat())?;
    Ok(config)
}

/// axel takes one URL: it is started for each, as a script would.
pub(super) fn axel(urls: &str, out: &str) -> Vec<String> {
    let script = r#"while read -r url; do axel -q -o "$2/${url##*/}" "$url" || exit; done < "$1""#;
    ["sh", "-c", script, "sh", urls, out].map(str::to_owned).into()
}
