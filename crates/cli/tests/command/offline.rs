//! The command as people run it, without a network.

use crate::common::{Run, pelton};

#[test]
fn help_names_every_command_and_the_settings() {
    let help = pelton(&["--help"]);
    assert_eq!(help.code, 0);
    for word in ["get", "list", "meter", "demo", "completions", "man", "PELTON_"] {
        assert!(help.stdout.contains(word), "{word} is not in:\n{}", help.stdout);
    }
    let version = pelton(&["--version"]);
    assert_eq!(version.stdout, concat!("pelton ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_help_of_get_explains_its_flags_and_exit_codes() {
    let help = pelton(&["get", "--help"]);
    for word in ["--policy", "--input-file", "-x, --max-connection-per-server", "130  interrupted"]
    {
        assert!(help.stdout.contains(word), "{word} is not in:\n{}", help.stdout);
    }
}

#[test]
fn a_flag_that_is_not_there_is_a_usage_error() {
    for flag in ["--deadline=1h", "--mirror-list=x"] {
        let run = pelton(&["get", flag, "http://127.0.0.1:9/x"]);
        assert_eq!(run.code, 2, "{flag}");
        assert!(run.stderr.contains("unexpected argument"), "{}", run.stderr);
    }
}

#[test]
fn a_url_in_place_of_a_command_is_told_what_to_write() {
    let run = pelton(&["http://127.0.0.1:9/x"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("pelton get 'http://127.0.0.1:9/x'"), "{}", run.stderr);
}

#[test]
fn what_keeps_the_report_from_being_written_is_said_once() {
    let run = pelton(&["get", "--report", "/nonexistent/r.json", "http://127.0.0.1:9/x"]);
    assert_eq!(run.stderr.matches("/nonexistent/r.json").count(), 1, "{}", run.stderr);
}

#[test]
fn bad_values_are_usage_errors_that_say_how_to_write_it() {
    for (flag, hint) in [
        ("--min-split-size=1.5M", "64K"),
        ("--bandwidth=fast", "50M"),
        ("--rtt=200", "200ms"),
        ("--timeout=soon", "250ms"),
        ("--header=X", "Name: value"),
        ("--checksum=md5=00", "32 hexadecimal digits"),
        ("--connect-to=a:b", "HOST:PORT:ADDR:PORT"),
        ("--report=run.html", ".json"),
        ("--policy=fast", "lowe, hat, eht, fixed"),
        ("--power-meter=sun", "scpi:HOST:PORT, scpi:DEVICE or model"),
        ("--radio=5g", "none, wifi, lte"),
        ("--max-concurrent-downloads=0", "from 1 to"),
        ("-s0", "from 1 to"),
        ("-x0", "from 1 to"),
        ("--max-total-connections=0", "from 1 to"),
        ("--depth=0", "from 1 to"),
    ] {
        let run = pelton(&["get", flag, "http://127.0.0.1:9/x"]);
        assert_eq!(run.code, 2, "{flag}");
        assert!(run.stderr.contains(hint), "{flag} gave: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn no_url_is_a_usage_error() {
    let run = pelton(&["get"]);
    assert_eq!(run.code, 2);
    assert_eq!(
        run.stderr,
        "pelton: no URL: give one, or a list of them with -i FILE (see --help)\n"
    );
}

#[test]
fn a_url_without_its_scheme_is_shown_with_it() {
    for place in ["localhost:9/x", "localhost:9/d/"] {
        let run = pelton(&["get", place]);
        assert_eq!(run.code, 2);
        let expected = format!(
            "pelton: {place}: only http and https URLs can be fetched; write http://{place} or \
             https://{place}\n"
        );
        assert_eq!(run.stderr, expected);
    }
}

#[test]
fn a_bad_line_of_an_input_file_is_named() {
    let run =
        Run::new().stdin("http://127.0.0.1:9/a\n\nexample.org/b\n").pelton(&["get", "-i", "-"]);
    assert_eq!(run.code, 2);
    let expected = "pelton: standard input: line 3: \"example.org/b\" is no URL";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
}

#[test]
fn a_list_that_is_not_utf_8_or_empty_is_named() {
    let run = Run::new();
    let list = run.folder().join("list");
    for (bytes, expected) in [
        (&b"http://127.0.0.1:9/a\n\nhttp://127.0.0.1:9/\xe9\n"[..], "list: line 3: not UTF-8"),
        (b"\xff\xfeh\0", "list: line 1: not UTF-8"),
        (b"", "list: the list names no file"),
        (b"# nothing yet\n\n", "list: the list names no file"),
        (b"{\"files\": []}", "list: the list names no file"),
    ] {
        std::fs::write(&list, bytes).unwrap();
        let told = run.pelton(&["get", "-i", "list"]);
        assert_eq!(told.code, 2, "{}", told.stderr);
        assert!(told.stderr.starts_with(&format!("pelton: {expected}")), "{}", told.stderr);
    }
    let told = Run::new().pelton(&["get", "-i", "-"]);
    assert_eq!(told.stderr, "pelton: standard input: the list names no file\n");
}

#[test]
fn a_missing_input_file_is_a_file_error() {
    let run = pelton(&["get", "-i", "nowhere/urls"]);
    assert_eq!(run.code, 17);
    assert!(run.stderr.starts_with("pelton: nowhere/urls: "), "{}", run.stderr);
}

#[test]
fn flags_that_contradict_are_refused() {
    for (flags, hint) in [
        (&["--json", "-o", "-"][..], "standard output"),
        (&["-o", "x", "http://127.0.0.1:9/y"], "for one URL"),
        (&["--key", "k.pem"], "--cert"),
        (&["--include", "a{"], "a{"),
        (&["--http2", "--http1.1"], "--http1.1 and --http2 contradict each other"),
        (&["--http2-prior-knowledge", "--http1.1"], "--http1.1 and --http2-prior-knowledge"),
        (&["--http2-prior-knowledge", "--http2"], "--http2 and --http2-prior-knowledge"),
        (&["--polite", "-x", "4"], "--polite and --max-connection-per-server"),
        (&["-4", "-6"], "--ipv4 and --ipv6"),
        (&["-c", "--no-continue"], "--continue and --no-continue"),
        (&["-q", "-v"], "--quiet and --verbose"),
        (&["--depth", "2"], "--depth means nothing without --recursive"),
        (&["--base-url", "http://127.0.0.1:9/"], "--base-url means nothing without --input-file"),
        (&["-o", "new/"], "-d new/"),
        (&["-o", "."], "-d ."),
    ] {
        let run = pelton(&[&["get", "http://127.0.0.1:9/x"], flags].concat());
        assert_eq!(run.code, 2, "{flags:?}");
        assert!(run.stderr.contains(hint), "{flags:?} gave: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{flags:?} gave: {}", run.stderr);
    }
}

#[test]
fn the_file_of_settings_is_read_and_its_mistakes_are_named() {
    let run = Run::new().settings("polcy = 'hat'\n").pelton(&["get", "http://127.0.0.1:9/x"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.ends_with("pelton/config.toml: polcy: no flag has that name\n"));
    let run = Run::new().variable("PELTON_POLICY", "fast").pelton(&["get", "http://127.0.0.1:9/x"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("pelton: PELTON_POLICY: invalid value 'fast'"));
}

#[test]
fn a_mistake_in_the_settings_breaks_no_help() {
    let run = Run::new().settings("polcy = ").variable("PELTON_POLICY", "fast");
    for arguments in
        [&["man"][..], &["man", "get"], &["completions", "bash"], &["--help"], &["get", "--help"]]
    {
        let told = run.pelton(arguments);
        assert_eq!(told.code, 0, "{arguments:?}: {}", told.stderr);
        assert!(told.stdout.contains("pelton"), "{arguments:?}");
    }
    assert_eq!(run.pelton(&["--version"]).code, 0);
    assert_eq!(run.pelton(&["list", "http://127.0.0.1:9/x"]).code, 2);
}

#[test]
fn completions_know_the_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let run = pelton(&["completions", shell]);
        assert_eq!(run.code, 0, "{shell}");
        for word in ["demo", "max-connection-per-server", "lowe", "n9-3g", "battery"] {
            assert!(run.stdout.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(pelton(&["completions", "cmd.exe"]).code, 2);
}

#[test]
fn manual_pages_are_roff() {
    let run = pelton(&["man"]);
    assert!(run.stdout.contains(".TH pelton 1"), "{}", run.stdout);
    let run = pelton(&["man", "get"]);
    assert!(run.stdout.contains(".TH pelton-get 1"), "{}", run.stdout);
    assert!(run.stdout.contains("min\\-split\\-size"));
    let run = pelton(&["man", "put"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("no command put"), "{}", run.stderr);
}
