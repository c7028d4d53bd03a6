//! The command line with what variables and the file of settings add to it.
//!
//! Whatever sets a flag is turned into that flag and put before what was typed: the file first,
//! then the variables. So each value is read by the same parser, and the last word is the user's.
//! Of flags that exclude each other only those of the strongest source are put there.

mod together;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use pelton_core::{Error, Result};
use toml::{Table, Value};

use crate::args::Cli;
use crate::exit::{io, usage};

/// Gives the value of a variable.
type Variables = Box<dyn Fn(&str) -> Option<OsString>>;

/// What may set flags besides the command line.
pub(crate) struct Surroundings {
    /// The environment.
    pub(crate) variable: Variables,
    /// The file of settings: its path and its text, if there is one.
    pub(crate) file: Option<(PathBuf, String)>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of_process() -> Result<Self> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let path = path(variable("XDG_CONFIG_HOME"), variable("HOME"));
        let file = match path.map(|path| (std::fs::read_to_string(&path), path)) {
            None => None,
            Some((Ok(text), path)) => Some((path, text)),
            Some((Err(error), _)) if error.kind() == std::io::ErrorKind::NotFound => None,
            Some((Err(error), path)) => return Err(io(path.display(), error)),
        };
        Ok(Self { variable: Box::new(variable), file })
    }
}

/// Where the file of settings is (XDG Base Directory Specification: a relative path is ignored).
fn path(config_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let config_home = config_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = config_home.or_else(|| Some(PathBuf::from(home?).join(".config")));
    directory.map(|directory| directory.join("pelton").join("config.toml"))
}

/// Why there is no command to run.
pub(crate) enum Refusal {
    /// What was typed is malformed, or asks for help.
    Clap(Box<clap::Error>),
    /// A variable or the file is malformed.
    Setting(Error),
}

/// Reads the command line `typed`, whose first word is the program's name.
pub(crate) fn parse(
    typed: &[OsString],
    surroundings: impl FnOnce() -> Result<Surroundings>,
) -> Result<Cli, Refusal> {
    let mut command = Cli::command();
    let refuse = |error| Refusal::Clap(Box::new(error));
    let given = command.try_get_matches_from_mut(typed).map_err(refuse)?;
    let Some((name, given)) = given.subcommand() else {
        return Cli::from_arg_matches(&given).map_err(refuse);
    };
    let layers = Layers { command: &command, name, given };
    // A mistake in the settings must not keep anyone from the manual that explains them.
    let settings = if flags(&command, name).next().is_some() {
        surroundings().and_then(|s| layers.settings(&s)).map_err(Refusal::Setting)?
    } else {
        Vec::new()
    };
    // The program's name, the command's name, the settings, and then what was typed.
    let named = typed.len().min(2);
    let words = typed[..named].iter().chain(&settings).chain(&typed[named..]);
    let matches = command.clone().try_get_matches_from(words).map_err(refuse)?;
    if let Some((_, all)) = matches.subcommand() {
        together::check_needs(&layers.typed(), all, |long| layers.id_of(long))
            .map_err(Refusal::Setting)?;
    }
    Cli::from_arg_matches(&matches).map_err(refuse)
}

/// The flags of one command, and which of them were typed.
struct Layers<'a> {
    command: &'a Command,
    name: &'a str,
    given: &'a ArgMatches,
}

impl Layers<'_> {
    /// The words that set what was not typed, the weakest first.
    fn settings(&self, surroundings: &Surroundings) -> Result<Vec<OsString>> {
        let mut from_file = match &surroundings.file {
            Some((path, text)) => read_file(self.command, path, text)?,
            None => Table::new(),
        };
        let typed = self.typed();
        together::check(&typed, |long| format!("--{long}"))?;
        let (mut file_words, mut variable_words) = (Vec::new(), Vec::new());
        for flag in flags(self.command, self.name) {
            let Some(long) = flag.get_long() else { continue };
            let in_file = from_file.remove(long);
            if typed.contains(&long) {
                continue;
            }
            let variable = variable_of(long);
            if let Some(value) = (surroundings.variable)(&variable) {
                let words = words_of_variable(flag, long, &value);
                variable_words.push((long, self.checked(&variable, words)?));
            } else if let (Some(value), Some((path, _))) = (in_file, &surroundings.file) {
                let origin = format!("{}: {long}", path.display());
                let words = words_of_value(flag, long, &value);
                file_words.push((long, self.checked(&origin, words)?));
            }
        }
        let by_variable = names_of(&variable_words);
        together::check(&by_variable, variable_of)?;
        let path = surroundings.file.as_ref().map(|(path, _)| path.display().to_string());
        let path = path.unwrap_or_default();
        together::check(&names_of(&file_words), |long| format!("{path}: {long}"))?;
        let stronger = [typed.as_slice(), &by_variable].concat();
        file_words.retain(|(long, _)| !together::is_overruled(long, &stronger));
        variable_words.retain(|(long, _)| !together::is_overruled(long, &typed));
        Ok(file_words.into_iter().chain(variable_words).flat_map(|(_, words)| words).collect())
    }

    /// The long names of the flags that were typed.
    fn typed(&self) -> Vec<&str> {
        let is_typed = |flag: &&Arg| {
            let source = self.given.value_source(flag.get_id().as_str());
            source == Some(ValueSource::CommandLine)
        };
        arguments(self.command, self.name).filter(is_typed).filter_map(Arg::get_long).collect()
    }

    /// The name that clap knows the flag `--long` by.
    fn id_of(&self, long: &str) -> Option<String> {
        let mut flags = arguments(self.command, self.name);
        flags.find(|flag| flag.get_long() == Some(long)).map(|flag| flag.get_id().to_string())
    }

    /// `words`, if the command takes them; an error names their `origin`.
    fn checked(&self, origin: &str, words: Result<Vec<OsString>, String>) -> Result<Vec<OsString>> {
        let words = words.map_err(|why| usage(format!("{origin}: {why}")))?;
        let line = [OsStr::new("pelton"), OsStr::new(self.name)];
        let line = line.into_iter().chain(words.iter().map(OsString::as_os_str));
        match self.command.clone().try_get_matches_from(line) {
            Ok(_) => Ok(words),
            Err(error) => {
                let text = error.to_string();
                let first = text.lines().next().unwrap_or_default();
                let first = first.strip_prefix("error: ").unwrap_or(first);
                Err(usage(format!("{origin}: {first}")))
            }
        }
    }
}

/// The flags of the command `name` that can be set elsewhere. `--continue` can't: it is the default,
/// and exists to overrule a `no-continue` that is set elsewhere.
fn flags<'a>(command: &'a Command, name: &str) -> impl Iterator<Item = &'a Arg> {
    arguments(command, name).filter(|argument| {
        argument.get_long().is_some_and(|long| !matches!(long, "help" | "version" | "continue"))
    })
}

fn arguments<'a>(command: &'a Command, name: &str) -> impl Iterator<Item = &'a Arg> {
    command.find_subcommand(name).into_iter().flat_map(Command::get_arguments)
}

/// The flags that some words set: `fsync = false` has no word.
fn names_of<'a>(set: &[(&'a str, Vec<OsString>)]) -> Vec<&'a str> {
    set.iter().filter(|(_, words)| !words.is_empty()).map(|(long, _)| *long).collect()
}

/// The variable of the flag `--long`.
fn variable_of(long: &str) -> String {
    format!("PELTON_{}", long.replace(['-', '.'], "_").to_ascii_uppercase())
}

/// The keys of the file, each of which must be a flag of some command.
fn read_file(command: &Command, path: &Path, text: &str) -> Result<Table> {
    let path = path.display();
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().map_or("", |span| &text[..span.start.min(text.len())]);
        let line = before.matches('\n').count() + 1;
        usage(format!("{path}:{line}: {}", error.message().replace('\n', ", ")))
    })?;
    let known = |key: &str| {
        command
            .get_subcommands()
            .flat_map(|sub| flags(command, sub.get_name()))
            .any(|flag| flag.get_long() == Some(key))
    };
    match table.keys().find(|key| !known(key)) {
        Some(key) => Err(usage(format!("{path}: {key}: no flag has that name"))),
        None => Ok(table),
    }
}

fn words_of_variable(flag: &Arg, long: &str, value: &OsStr) -> Result<Vec<OsString>, String> {
    let as_bool = || match value.to_str()?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    };
    match flag.get_action() {
        ArgAction::SetTrue => repeated(
            long,
            as_bool().ok_or_else(|| format!("{} is neither true nor false", value.display()))?,
        ),
        ArgAction::Count => {
            let count = value.to_str().and_then(|text| text.parse().ok());
            let count = count.or_else(|| as_bool().map(u8::from));
            repeated(long, count.ok_or_else(|| format!("{} is no count", value.display()))?)
        }
        _ => match as_bool() {
            Some(wanted) if takes_no_value_too(flag) => repeated(long, wanted),
            _ => Ok(vec![word(long, value)]),
        },
    }
}

fn words_of_value(flag: &Arg, long: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let (action, optional) = (flag.get_action(), takes_no_value_too(flag));
    match (action, value) {
        (ArgAction::SetTrue | ArgAction::Count, Value::Boolean(wanted)) => repeated(long, *wanted),
        (ArgAction::Count, Value::Integer(count)) => {
            repeated(long, u8::try_from(*count).map_err(|_| format!("{count} is no count"))?)
        }
        (ArgAction::SetTrue, _) => Err("must be true or false".to_owned()),
        (_, Value::Boolean(wanted)) if optional => repeated(long, *wanted),
        (ArgAction::Append, Value::Array(values)) => {
            values.iter().map(|value| Ok(word(long, scalar(value)?.as_ref()))).collect()
        }
        _ => Ok(vec![word(long, scalar(value)?.as_ref())]),
    }
}

/// Whether the flag can stand without its value.
fn takes_no_value_too(flag: &Arg) -> bool {
    flag.get_num_args().is_some_and(|number| number.min_values() == 0)
}

fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!("takes no {}", other.type_str())),
    }
}

fn word(long: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{long}="));
    word.push(value);
    word
}

/// `--long` as often as `count` says. It can't fail: the type is its callers'.
#[expect(clippy::unnecessary_wraps, reason = "every arm of its callers gives a Result")]
fn repeated(long: &str, count: impl Into<u8>) -> Result<Vec<OsString>, String> {
    Ok(vec![OsString::from(format!("--{long}")); usize::from(count.into())])
}

#[cfg(test)]
mod tests;
