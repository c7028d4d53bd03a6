//! Which flags mean something for which figure.

use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};

use super::{Figure, ReproduceArgs};

/// The flags that were given, by their names.
#[derive(Debug, Default)]
pub(super) struct Given(Vec<String>);

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().map(clap::Id::as_str).filter(is_given).map(str::to_owned).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It has no flags of its own.
impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// For which figures a flag means something.
struct Meaning {
    figures: &'static [Figure],
    /// Of fig2 and fig3 only on real packets.
    needs_real: bool,
    words: &'static str,
}

const MEASURED: Meaning = Meaning {
    figures: &[Figure::Fig2, Figure::Fig3, Figure::Fig4],
    needs_real: true,
    words: "fig4, and for fig2 and fig3 with --real",
};

impl Meaning {
    /// What the flag `name` is for; none where it is no such flag.
    fn of(name: &str) -> Option<Self> {
        use Figure::{Fig2, Fig3, Fig4, Papers003};
        let meaning = match name {
            "real" | "repeats" | "seed" => Self {
                figures: &[Fig2, Fig3, Fig4, Papers003],
                needs_real: false,
                words: "fig2, fig3, fig4 and papers-003",
            },
            "page" => Self {
                figures: &[Fig2, Fig3, Fig4],
                needs_real: false,
                words: "fig2, fig3 and fig4",
            },
            "packets" => Self {
                figures: &[Fig2, Fig3, Fig4, Papers003],
                words: "fig4 and papers-003, and for fig2 and fig3 with --real",
                ..MEASURED
            },
            "jobs" | "congestion_control" | "timeout" | "out" | "resume" | "skip_missing"
            | "work" | "pelton" => MEASURED,
            _ => return None,
        };
        Some(meaning)
    }

    fn includes(&self, args: &ReproduceArgs) -> bool {
        let is_simulated = matches!(args.figure, Figure::Fig2 | Figure::Fig3) && !args.real;
        self.figures.contains(&args.figure) && !(self.needs_real && is_simulated)
    }
}

/// Fails where a flag was given that means nothing for the figure: what it asks for would not be done.
pub(super) fn refuse_meaningless(args: &ReproduceArgs) -> Result<()> {
    for name in &args.given.0 {
        let Some(meaning) = Meaning::of(name) else { continue };
        if !meaning.includes(args) {
            let figure = args.figure.to_possible_value();
            let figure = figure.as_ref().map_or("this figure", |value| value.get_name());
            bail!(
                "--{} means nothing for {figure}: it is for {}",
                name.replace('_', "-"),
                meaning.words
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ReproduceArgs,
    }

    fn command() -> Command {
        Line::augment_args(Command::new("reproduce"))
    }

    /// The complaint about a call.
    fn told(line: &str) -> Option<String> {
        let matches = command().get_matches_from(format!("reproduce {line}").split(' '));
        let args = Line::from_arg_matches(&matches).unwrap().args;
        refuse_meaningless(&args).err().map(|error| error.to_string())
    }

    #[test]
    fn each_flag_has_a_figure() {
        for argument in command().get_arguments().filter(|argument| argument.get_id() != "figure") {
            let id = argument.get_id().as_str();
            assert!(Meaning::of(id).is_some(), "{id}");
        }
    }

    #[test]
    fn what_is_not_given_is_not_refused() {
        for figure in ["papers-000", "papers-003", "papers-004", "fig2", "fig3", "fig4"] {
            assert_eq!(told(figure), None);
        }
        assert_eq!(told("fig2 --page a.html --seed 3 --repeats 1"), None);
        assert_eq!(told("papers-003 --real --repeats 6 --seed 2"), None);
    }

    #[test]
    fn flags_that_mean_nothing_for_a_figure_are_refused() {
        let page = "--page means nothing for papers-000: it is for fig2, fig3 and fig4";
        assert_eq!(told("papers-000 --page a.html").unwrap(), page);
        for line in ["papers-004 --page a", "papers-004 --seed 1", "papers-000 --repeats 5"] {
            assert!(told(line).unwrap().contains("means nothing for papers-00"), "{line}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn flags_of_measurements_need_real_packets() {
        let out =
            "--out means nothing for papers-000: it is for fig4, and for fig2 and fig3 with --real";
        assert_eq!(told("papers-000 --out /nonexist/x.json").unwrap(), out);
        assert!(told("fig2 --skip-missing").unwrap().starts_with("--skip-missing means nothing"));
        for line in ["papers-003 --jobs 1", "papers-003 --resume a.json", "fig3 --packets a"] {
            assert!(told(line).is_some(), "{line}");
        }
        for line in ["fig2 --real --out a.json", "fig4 --jobs 2", "papers-003 --packets a"] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
