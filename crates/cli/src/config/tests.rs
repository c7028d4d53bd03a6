use pelton_core::ErrorKind;

use super::*;
use crate::args::{Command as Chosen, GetArgs, PolicyName};

const FILE: &str = "/home/me/.config/pelton/config.toml";

fn parse_with(
    typed: &[&str],
    variables: &'static [(&'static str, &'static str)],
    file: &str,
) -> Result<GetArgs, Refusal> {
    let typed = ["pelton", "get"].iter().chain(typed).map(OsString::from).collect::<Vec<_>>();
    let surroundings = Surroundings {
        variable: Box::new(|wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into())
        }),
        file: Some((PathBuf::from(FILE), file.to_owned())),
    };
    match parse(&typed, || Ok(surroundings))?.command {
        Chosen::Get(args) => Ok(*args),
        other => panic!("{other:?}"),
    }
}

fn get(typed: &[&str], variables: &'static [(&'static str, &'static str)], file: &str) -> GetArgs {
    parse_with(typed, variables, file).unwrap_or_else(|refusal| panic!("{}", message(refusal)))
}

fn message(refusal: Refusal) -> String {
    match refusal {
        Refusal::Clap(error) => error.to_string(),
        Refusal::Setting(error) => {
            assert_eq!(error.kind(), ErrorKind::Usage);
            error.message()
        }
    }
}

fn refused(variables: &'static [(&'static str, &'static str)], file: &str) -> String {
    message(parse_with(&[], variables, file).unwrap_err())
}

#[test]
fn typed_wins_over_variables_and_variables_over_the_file() {
    let file = "policy = 'hat'\ntries = 7\nmax-redirs = 3\n";
    let args = get(&["--policy", "lowe"], &[("PELTON_TRIES", "9")], file);
    assert_eq!(args.tuning.policy, PolicyName::Lowe);
    assert_eq!(args.retry.tries, 9);
    assert_eq!(args.http.max_redirs, 3);
}

#[test]
fn precedence_holds_between_flags_that_exclude_each_other() {
    const POLITE: &[(&str, &str)] = &[("PELTON_POLITE", "true")];
    let args = get(&["-x", "9"], POLITE, "");
    assert!(!args.tuning.polite);
    assert_eq!(args.tuning.max_connection_per_server.get(), 9);
    assert!(get(&[], POLITE, "max-connection-per-server = 9").tuning.polite);
    assert!(get(&["-c"], &[], "no-continue = true").target.resume);
    let args = get(&["-4"], &[], "ipv6 = true");
    assert!(args.http.ipv4 && !args.http.ipv6);
    let args = get(&["-v"], &[("PELTON_QUIET", "1")], "");
    assert!(args.text.verbose == 1 && !args.text.quiet);
}

#[test]
fn what_one_source_sets_must_not_contradict_itself() {
    let refused = refused(&[], "http2 = true\n'http1.1' = true");
    assert!(refused.starts_with(&format!("{FILE}: http1.1 and {FILE}: http2 contradict")));
    let both = &[("PELTON_IPV4", "1"), ("PELTON_IPV6", "1")];
    assert!(self::refused(both, "").starts_with("PELTON_IPV4 and PELTON_IPV6 contradict"));
    let args = get(&[], &[("PELTON_IPV4", "1")], "ipv6 = true");
    assert!(args.http.ipv4 && !args.http.ipv6);
    let args = get(&["--http1.1"], &[("PELTON_HTTP2", "no")], "http2-prior-knowledge = true");
    assert!(args.http.http1 && !args.http.http2 && !args.http.http2_prior_knowledge);
    assert!(get(&["--depth", "2"], &[], "recursive = true").walk.recursive);
}

#[test]
fn every_kind_of_value_can_stand_in_the_file() {
    let file = "json = true\nfsync = false\nverbose = 2\nheader = ['A: 1', 'B: 2']\n\
                split = 4\nretry-wait = 0.5\nnetrc = true\nhttp2-prior-knowledge = true\n";
    let args = get(&[], &[], file);
    assert!(args.text.json && !args.target.fsync && args.http.http2_prior_knowledge);
    assert_eq!(args.text.verbose, 2);
    assert_eq!(args.http.header.len(), 2);
    assert_eq!(args.tuning.split.unwrap().get(), 4);
    assert_eq!(args.retry.retry_wait.as_millis(), 500);
    assert_eq!(args.http.netrc, Some(None));
    let args = get(&[], &[], "netrc = 'here'\nheader = 'A: 1'");
    assert_eq!(args.http.netrc, Some(Some(PathBuf::from("here"))));
    assert_eq!(args.http.header.len(), 1);
}

#[test]
fn a_typed_list_replaces_the_one_in_the_file() {
    let args = get(&["-H", "C: 3"], &[], "header = ['A: 1', 'B: 2']");
    assert_eq!(args.http.header.len(), 1);
    assert_eq!(args.http.header[0].0, "c");
}

#[test]
fn variables_have_the_name_of_their_flag() {
    let args = get(
        &[],
        &[
            ("PELTON_HTTP1_1", "yes"),
            ("PELTON_INPUT_FILE", "list"),
            ("PELTON_NETRC", "true"),
            ("PELTON_VERBOSE", "2"),
            ("PELTON_FSYNC", "off"),
        ],
        "fsync = true",
    );
    assert!(args.http.http1 && !args.target.fsync);
    assert_eq!(args.inputs.input_file, [PathBuf::from("list")]);
    assert_eq!(args.http.netrc, Some(None));
    assert_eq!(args.text.verbose, 2);
}

#[test]
fn a_mistake_in_the_file_names_the_file_and_the_key() {
    for (file, expected) in [
        ("polcy = 'eht'", format!("{FILE}: polcy: no flag has that name")),
        ("continue = true", format!("{FILE}: continue: no flag has that name")),
        ("policy = 'fast'", format!("{FILE}: policy: invalid value 'fast' for '--policy <NAME>'")),
        ("json = 'maybe'", format!("{FILE}: json: must be true or false")),
        ("policy = ['eht']", format!("{FILE}: policy: takes no array")),
        ("tries = true", format!("{FILE}: tries: takes no boolean")),
        ("verbose = -1", format!("{FILE}: verbose: -1 is no count")),
        ("json = true\npolicy 'eht'", format!("{FILE}:2: ")),
    ] {
        let refused = refused(&[], file);
        assert!(refused.starts_with(&expected), "{file:?} gave: {refused}");
    }
}

#[test]
fn a_mistake_in_a_variable_names_it() {
    let refusal = refused(&[("PELTON_POLICY", "fast")], "");
    assert!(refusal.starts_with("PELTON_POLICY: invalid value 'fast'"), "{refusal}");
    let refusal = refused(&[("PELTON_JSON", "maybe")], "");
    assert_eq!(refusal, "PELTON_JSON: maybe is neither true nor false");
    let refusal = refused(&[("PELTON_VERBOSE", "x")], "");
    assert_eq!(refusal, "PELTON_VERBOSE: x is no count");
}

#[test]
fn a_key_of_another_command_is_no_mistake() {
    let surroundings = Surroundings {
        variable: Box::new(|_| None),
        file: Some((PathBuf::from(FILE), "policy = 'hat'\njson = true".to_owned())),
    };
    let cli = parse(&["pelton".into(), "demo".into()], || Ok(surroundings));
    let Ok(Cli { command: Chosen::Demo(args) }) = cli else { panic!("refused") };
    assert!(args.text.json);
}

#[test]
fn help_and_typing_errors_need_no_surroundings() {
    for typed in [["pelton", "--version"], ["pelton", "get --help"], ["pelton", "--nonsense"]] {
        let typed = typed.iter().flat_map(|words| words.split(' ')).map(OsString::from);
        let refusal =
            parse(&typed.collect::<Vec<_>>(), || panic!("the surroundings were looked at"));
        assert!(matches!(refusal, Err(Refusal::Clap(_))));
    }
}

#[test]
fn the_file_is_where_the_specification_says() {
    let home = Some(OsString::from("/home/me"));
    let is = |path: Option<PathBuf>, expected: &str| assert_eq!(path, Some(expected.into()));
    is(path(Some("/xdg".into()), home.clone()), "/xdg/pelton/config.toml");
    is(path(None, home.clone()), FILE);
    is(path(Some("relative".into()), home), FILE);
    assert_eq!(path(None, None), None);
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}
