use proptest::prelude::*;

use super::*;
use crate::catalog::Digest;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn named(url_text: &str, name: &str) -> FileSpec {
    FileSpec::with_name(url(url_text), name.to_owned()).unwrap()
}

/// What every name must be, whoever wrote it. Kept apart from `check`, which it judges.
pub(in crate::catalog) fn assert_safe(name: &str) {
    let directory = std::path::Path::new("out");
    let joined = directory.join(name);
    assert!(joined.starts_with(directory) && joined != directory, "{name:?} leaves the directory");
    for component in std::path::Path::new(name).components() {
        assert!(matches!(component, std::path::Component::Normal(_)), "{name:?}");
    }
    assert!(!name.contains(['\\', '\0']) && !name.chars().any(char::is_control), "{name:?}");
    assert!(name.split('/').all(|part| !part.is_empty() && part.len() <= 255), "{name:?}");
}

#[test]
fn url_paths_give_their_last_part() {
    for (text, name) in [
        ("http://h/a/b.txt", "b.txt"),
        ("http://h/a/b.txt?x=/y/z", "b.txt"),
        ("http://h", "index.html"),
        ("http://h/a/", "index.html"),
        ("http://h/%C3%BCber%20all.txt", "über all.txt"),
        ("http://h/100%25.txt", "100%.txt"),
        ("http://h/100%.txt", "100%.txt"),
        ("http://h/a/../..", "index.html"),
        ("http://h/.hidden", ".hidden"),
    ] {
        assert_eq!(from_url(&url(text)).unwrap(), name, "{text}");
    }
}

#[test]
fn encoded_traversal_stays_one_part() {
    for (text, name) in [
        ("http://h/a/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%2F..%2Fetc%2Fpasswd"),
        ("http://h/a/..%2fx", "..%2Fx"),
        ("http://h/a/%2Fetc", "%2Fetc"),
        ("http://h/a/..%5c..%5cx", "..%5C..%5Cx"),
        ("http://h/a/%252e%252e%252fx", "%2e%2e%2fx"),
        ("http://h/a/%00%0a%7f", "%00%0A%7F"),
        ("http://h/a/%C2%85", "%C2%85"),
        ("http://h/a/x%FFy", "x%FFy"),
        ("http://h/a/%2e%2e", "index.html"),
    ] {
        let made = from_url(&url(text)).unwrap();
        assert_eq!(made, name, "{text}");
        assert_safe(&made);
    }
}

#[test]
fn a_url_whose_name_is_too_long_is_named() {
    let long = format!("http://user:secret@h/{}", "x".repeat(256));
    let error = from_url(&url(&long)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let line = error.to_string();
    assert!(line.contains("http://h/xxx") && line.contains("longer than 255 bytes"), "{line}");
    assert!(!line.contains("secret"), "{line}");
    let most = format!("http://h/{}", "%C3%BC".repeat(127));
    assert_eq!(from_url(&url(&most)).unwrap().len(), 254);
}

#[test]
fn plain_relative_names_pass() {
    for (given, name) in [
        ("a", "a"),
        ("a/b c/d.txt", "a/b c/d.txt"),
        ("./a/./b", "a/b"),
        ("...", "..."),
        ("..a/b..", "..a/b.."),
        ("日本", "日本"),
        ("100%2f", "100%2f"),
    ] {
        assert_eq!(relative_name(given).unwrap(), name);
    }
}

#[test]
fn unsafe_names_are_refused_with_the_reason() {
    for (given, reason) in [
        ("", "empty"),
        (".", "directory"),
        ("./.", "directory"),
        ("..", "leads out"),
        ("a/../b", "leads out"),
        ("a/..", "leads out"),
        ("/etc/passwd", "absolute"),
        ("//host/share", "absolute"),
        ("a//b", "empty"),
        ("a/", "empty"),
        ("..\\x", "'\\\\'"),
        ("a\0b", "'\\0'"),
        ("a\nb", "'\\n'"),
        ("a\u{1b}[2J", "'\\u{1b}'"),
        ("a\u{85}", "'\\u{85}'"),
        (&"x".repeat(256), "255 bytes"),
        (&format!("a/{}/b", "x".repeat(256)), "255 bytes"),
    ] {
        let error = relative_name(given).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let line = error.to_string();
        assert!(line.contains(reason), "{given:?}: {line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn windows_refuses_what_it_would_not_store_as_named() {
    for name in [
        "CON", "nul", "aux.c", "Com1.txt", "lpt9", "COM¹", "a/PRN", "C:x", "a:stream", "what?",
        "a*", "x.", "x ", "con .txt", "CONOUT$",
    ] {
        assert!(check(name, true).is_err(), "{name:?}");
        assert_eq!(check(name, false).unwrap(), name);
    }
    for name in ["CONSOLE", "com", "COM0", "COM10", "nullable.txt", "a.con", "./a"] {
        assert!(check(name, true).is_ok(), "{name:?}");
    }
}

#[test]
fn one_url_given_twice_collapses_and_keeps_what_either_knows() {
    let digest = Digest::parse("crc32c=e3069283").unwrap();
    let again =
        FileSpec { digest: Some(digest.clone()), size: Some(9), ..named("http://h/a", "a") };
    let kept = collapse(vec![named("http://h/a", "a"), named("http://h/b", "b"), again]).unwrap();
    let names: Vec<&str> = kept.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!((kept[0].digest.as_ref(), kept[0].size), (Some(&digest), Some(9)));
}

#[test]
fn one_url_under_two_names_stays_two_files() {
    let kept = collapse(vec![named("http://h/a", "a"), named("http://h/a", "b")]).unwrap();
    assert_eq!(kept.len(), 2);
}

#[test]
fn one_url_with_two_digests_is_refused() {
    let with = |text: &str| FileSpec {
        digest: Some(Digest::parse(text).unwrap()),
        ..named("http://h/a", "a")
    };
    let error = collapse(vec![with("crc32c=e3069283"), with("crc32c=e3069284")]).unwrap_err();
    assert!(error.to_string().contains("http://h/a is given twice with different digests"));
}

#[test]
fn two_urls_with_one_name_are_refused_with_both() {
    let error = collapse(vec![named("http://h/1/a", "a"), named("http://h/2/a", "a")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let line = error.to_string();
    assert!(line.contains("http://h/1/a and http://h/2/a would both write \"a\""), "{line}");
}

#[test]
fn a_file_that_is_another_ones_directory_is_refused_in_either_order() {
    let (file, below) = (named("http://h/1", "d/a"), named("http://h/2", "d/a/b/c"));
    for specs in [vec![file.clone(), below.clone()], vec![below, file.clone()]] {
        let line = collapse(specs).unwrap_err().to_string();
        assert!(line.contains("http://h/1 and http://h/2"), "{line}");
        assert!(line.contains("\"d/a\" would be a file and a directory"), "{line}");
    }
    let beside = named("http://h/3", "d/a.b");
    assert_eq!(collapse(vec![file, beside]).unwrap().len(), 2);
}

#[test]
fn a_file_that_is_named_as_another_ones_part_is_refused() {
    for suffix in [".part", ".part.state"] {
        let (file, part) =
            (named("http://h/1", "d/a"), named("http://h/2", &format!("d/a{suffix}")));
        for specs in [vec![file.clone(), part.clone()], vec![part.clone(), file]] {
            let error = collapse(specs).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains("until it is complete"), "{error}");
        }
        assert_eq!(collapse(vec![part]).unwrap().len(), 1);
    }
}

#[test]
fn of_a_listing_only_what_clashes_is_left_out() {
    let listed = ["d/a", "d/b", "d/a/x", "d/b.part", "d/c.part", "d/a"];
    let urls = ["1", "2", "3", "4", "5", "6"];
    let specs = listed.iter().zip(urls).map(|(name, url)| named(&format!("http://h/{url}"), name));
    let (kept, clashing) = separate(specs.collect());
    let again =
        [named("http://h/x", "d/a/x"), named("http://h/x", "d/a/x"), named("http://h/a", "d/a")];
    let (files, left_out) = separate(again.into());
    assert_eq!((files.len(), left_out.len()), (1, 1), "what clashes is told once");
    let names: Vec<&str> = kept.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["d/a", "d/b", "d/c.part"]);
    let urls: Vec<&str> = clashing.iter().map(|(url, _)| url.path()).collect();
    assert_eq!(urls, ["/3", "/4", "/6"]);
    assert!(clashing.iter().all(|(_, error)| error.message().contains("`exclude`")));
}

#[test]
fn a_million_entries_take_one_pass() {
    let location = url("http://h/x");
    let specs: Vec<FileSpec> = (0..1_000_000)
        .map(|i| FileSpec::with_name(location.clone(), format!("d{}/f{i}", i % 1000)).unwrap())
        .collect();
    let start = std::time::Instant::now();
    assert_eq!(collapse(specs).unwrap().len(), 1_000_000);
    // Quadratic work would take hours; the bound only tells the two apart on a slow machine.
    assert!(start.elapsed().as_secs() < 60, "took {:?}", start.elapsed());
}

proptest! {
    #[test]
    fn every_accepted_name_is_safe(name in "[a./\\\\\u{0}\u{1b}é:%2e ]{0,12}|\\PC*|(?s).*") {
        if let Ok(name) = relative_name(&name) {
            assert_safe(&name);
        }
    }

    #[test]
    fn every_url_name_is_safe(path in "([a-z.]|%[0-9a-f]{2}|%25|%2e|%2f|%5c|/|\\PC){0,40}") {
        if let Ok(url) = Url::parse(&format!("http://h/{path}"))
            && let Ok(name) = from_url(&url)
        {
            assert_safe(&name);
            prop_assert!(!name.contains('/'));
        }
    }

    #[test]
    fn collapsed_names_never_collide(names in prop::collection::vec("[ab](/[ab]){0,2}", 0..6)) {
        let specs = names.iter().map(|name| named("http://h/x", name)).collect();
        if let Ok(kept) = collapse(specs) {
            for (i, one) in kept.iter().enumerate() {
                for (j, other) in kept.iter().enumerate() {
                    let below = other.name.strip_prefix(&one.name);
                    prop_assert!(i == j || below.is_none_or(|rest| !rest.is_empty() && !rest.starts_with('/')));
                }
            }
        }
    }
}
