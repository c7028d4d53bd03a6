use proptest::prelude::*;

use super::*;
use crate::catalog::names::tests::assert_safe;

fn base() -> Url {
    "http://127.0.0.1:8080/data/".parse().unwrap()
}

fn read(sample: &str) -> Vec<ListingEntry> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/listings");
    let body = std::fs::read(format!("{folder}/{sample}.html")).unwrap();
    parse(&base(), Some("text/html;charset=utf-8"), &body).unwrap().entries
}

fn page(links: &[&str]) -> Vec<u8> {
    let links: Vec<String> =
        links.iter().map(|href| format!("<a href=\"{href}\">x</a> 1\n")).collect();
    let links = links.concat();
    format!("<title>Index of /data/</title><pre>{links}</pre>").into_bytes()
}

fn names_of(entries: &[ListingEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

/// The folder that every sample shows: name, and size in bytes of a file.
const FOLDER: [(&str, Option<u64>); 21] = [
    ("plain", None),
    ("sub dir & more", None),
    ("%2e%2e%2fdouble.txt", Some(11)),
    (".hidden", Some(77)),
    ("100%.txt", Some(1000)),
    ("2024", Some(14)),
    ("<b>tag.txt", Some(8)),
    ("a&b.txt", Some(1234)),
    ("a+b;c=d,e@f.txt", Some(7)),
    ("back%5Cslash.txt", Some(9)),
    ("co:lon.txt", Some(10)),
    ("empty.bin", Some(0)),
    ("hash#tag.txt", Some(5)),
    ("large.img", Some(3_221_225_472)),
    (LONG, Some(1_258_291)),
    ("new%0Aline.txt", Some(13)),
    ("quote\"double.txt", Some(99)),
    ("quote'single.txt", Some(12_345)),
    ("what?query=1.txt", Some(6)),
    ("with space.txt", Some(12)),
    ("übergröße 日本.txt", Some(2048)),
];

const LONG: &str = "long-name-long-name-long-name-long-name-long-name-long-name-long-name-\
                    long-name-long-name-long-name-long-name-long-name-.tar";

#[test]
fn nothing_but_links_to_what_is_below_is_a_listing() {
    let bare = |links: &str| {
        let head = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n";
        let page = format!("{head}<pre>\n{links}</pre>\n");
        parse(&base(), Some("text/html; charset=utf-8"), page.as_bytes())
    };
    let links = "<a href=\"a/\">a/</a>\n<a href=\"b%20c.txt\">b c.txt</a>\n";
    let entries = bare(links).unwrap().entries;
    assert_eq!(names_of(&entries), ["a", "b c.txt"]);
    assert!(entries[0].is_dir && !entries[1].is_dir);
    for other in [
        "",
        "<a href=\"a\">a</a>\n<a href=\"/login\">sign in</a>\n",
        "<a href=\"a\">a</a> is what you want\n",
        "</pre><a href=\"a\">a</a><pre>",
    ] {
        assert!(bare(other).is_err(), "{other}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Sizes {
    Exact,
    Rounded,
    Absent,
}

#[test]
fn every_server_shows_the_same_folder() {
    for (server, sizes, shows_hidden) in [
        ("nginx", Sizes::Exact, false),
        ("fancyindex", Sizes::Exact, false),
        ("fancyindex-short", Sizes::Rounded, false),
        ("apache-plain", Sizes::Absent, true),
        ("apache-fancy", Sizes::Rounded, true),
        ("apache-table", Sizes::Rounded, true),
        ("caddy", Sizes::Exact, true),
        ("python", Sizes::Absent, true),
    ] {
        let entries = read(&format!("{server}-data"));
        let expected: Vec<_> =
            FOLDER.iter().filter(|(name, _)| shows_hidden || !name.starts_with('.')).collect();
        assert_eq!(entries.len(), expected.len(), "{server}: {:?}", names_of(&entries));
        for (name, size) in expected {
            let entry = entries.iter().find(|entry| entry.name == *name);
            let entry = entry.unwrap_or_else(|| panic!("{server} lacks {name:?}"));
            assert_eq!(entry.is_dir, size.is_none(), "{server}: {name:?}");
            assert_eq!(entry.is_dir, entry.url.path().ends_with('/'));
            match (sizes, size, entry.size_hint) {
                (Sizes::Absent, _, hint) | (_, None, hint) => assert_eq!(hint, None),
                (Sizes::Exact, size, hint) => assert_eq!(hint, *size, "{server}: {name:?}"),
                (Sizes::Rounded, Some(size), Some(hint)) => {
                    // Two digits at least are shown.
                    let off = hint.abs_diff(*size) as f64;
                    assert!(off <= 0.05 * *size as f64, "{server}: {name:?} {hint}");
                }
                (Sizes::Rounded, Some(_), None) => panic!("{server}: no size of {name:?}"),
            }
        }
    }
}

#[test]
fn urls_lead_back_to_the_files() {
    for server in ["nginx", "apache-table", "caddy", "python"] {
        let entries = read(&format!("{server}-data"));
        let url_of = |name: &str| {
            let entry = entries.iter().find(|entry| entry.name == name).unwrap();
            entry.url.as_str().replace("%26", "&")
        };
        assert_eq!(url_of("100%.txt"), "http://127.0.0.1:8080/data/100%25.txt");
        assert_eq!(url_of("sub dir & more"), "http://127.0.0.1:8080/data/sub%20dir%20&%20more/");
        assert_eq!(url_of("hash#tag.txt"), "http://127.0.0.1:8080/data/hash%23tag.txt");
        assert_eq!(
            url_of("%2e%2e%2fdouble.txt"),
            "http://127.0.0.1:8080/data/%252e%252e%252fdouble.txt"
        );
    }
}

#[test]
fn an_empty_directory_is_a_listing_without_entries() {
    for server in [
        "nginx",
        "fancyindex",
        "fancyindex-short",
        "apache-plain",
        "apache-fancy",
        "apache-table",
        "caddy",
        "python",
    ] {
        // The empty folder's page links to its parent, which from here is a page elsewhere.
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/listings");
        let body = std::fs::read(format!("{folder}/{server}-empty.html")).unwrap();
        let base = "http://127.0.0.1:8080/empty/".parse().unwrap();
        assert_eq!(parse(&base, Some("text/html"), &body).unwrap().entries, [], "{server}");
    }
}

#[test]
fn only_direct_children_are_taken() {
    let body = page(&[
        "a",
        "../",
        "/",
        "/data/",
        "./",
        "?C=M;O=D",
        "a?x",
        "#top",
        "d/",
        "d/below",
        "/data/b",
        "/database",
        "http://127.0.0.1:8080/data/c",
        "http://127.0.0.1/data/other-port",
        "https://127.0.0.1:8080/data/other-scheme",
        "//evil.example/data/x",
        "mailto:a@b",
        "javascript:void(0)",
        "../data/e",
        "http://[",
        "",
        "a#again",
        "f//",
    ]);
    let entries = parse(&base(), None, &body).unwrap().entries;
    assert_eq!(names_of(&entries), ["a", "d", "b", "c", "e"]);
}

#[test]
fn hostile_links_stay_one_safe_part() {
    let body = page(&[
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%2fx",
        "%2e%2e/",
        "%2e%2e",
        "..%5cx",
        "%00",
        "a%0ab",
        "&#46;&#46;&#47;x",
        "&#x2e;&#x2e;/",
        "..\\x",
        "%2fetc",
    ]);
    let entries = parse(&base(), None, &body).unwrap().entries;
    let names = names_of(&entries);
    let safe = ["..%2F..%2Fetc%2Fpasswd", "..%2Fx", "..%5Cx", "%00", "a%0Ab", "%2Fetc"];
    assert_eq!(names, safe);
    names.into_iter().for_each(assert_safe);
}

#[test]
fn a_name_too_long_to_store_is_named_and_the_others_are_there() {
    let listing = parse(&base(), None, &page(&["a", &"x".repeat(300), "b"])).unwrap();
    assert_eq!(names_of(&listing.entries), ["a", "b"]);
    let (url, error) = &listing.refused[0];
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(url.path().starts_with("/data/xxx") && error.to_string().contains("/data/xxx"));
}

#[test]
fn the_directory_of_a_page_without_a_slash_is_the_one_it_is_in() {
    let page_url = "http://127.0.0.1:8080/data/index.html".parse().unwrap();
    let entries = parse(&page_url, None, &page(&["a", "/data/b", "/c"])).unwrap().entries;
    assert_eq!(names_of(&entries), ["a", "b"]);
}

#[test]
fn other_pages_are_no_listings() {
    for (content_type, body) in [
        (Some("application/octet-stream"), "<title>Index of /</title>"),
        (Some("text/plain"), "<title>Index of /</title>"),
        (Some("text/html"), "<title>Welcome</title><a href=a>a</a>"),
        (Some("text/html"), "<title>Index of Economic Freedom</title>"),
        (Some("text/html"), "<p>Index of /</p>"),
        (None, "Served with <a href='https://caddyserver.com'>Caddy</a>"),
        (None, "\u{0}\u{1}\u{2}"),
        (None, ""),
    ] {
        let error = parse(&base(), content_type, body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Listing);
        let line = error.to_string();
        assert!(line.starts_with("http://127.0.0.1:8080/data/ is no directory listing"), "{line}");
        assert!(line.contains("without the trailing /, or a list with `input-file`"), "{line}");
    }
}

#[test]
fn content_types_of_html_with_parameters_and_case() {
    for content_type in ["text/html", "Text/HTML; charset=UTF-8", "application/xhtml+xml ;a=b"] {
        assert_eq!(parse(&base(), Some(content_type), &page(&["a"])).unwrap().entries.len(), 1);
    }
}

#[test]
fn sizes_are_found_between_dates_and_descriptions() {
    for (text, size) in [
        ("  29-Feb-2024 12:34       1258291\n", Some(1_258_291)),
        (" 2024-02-29 12:34  1.2M  300 things", Some(1_258_291)),
        (" 2024-02-29 12:34   14   the year", Some(14)),
        ("  3.0 GiB 2024-Feb-29 12:34", Some(3 << 30)),
        ("\u{a0}12 B\u{a0}", Some(12)),
        ("1K", Some(1024)),
        ("2024-02-29 12:34    -   ", None),
        ("— 02/29/2024 12:34:56 PM +00:00", None),
        ("-1", None),
        (". .. 1.2.3", None),
        ("99999999999999999999999 E", Some(u64::MAX)),
        ("", None),
    ] {
        assert_eq!(size_hint(text), size, "{text:?}");
    }
}

#[test]
fn entities_are_replaced_and_others_kept() {
    assert_eq!(unescape("a&amp;b&#39;c&#x2F;&quot;"), "a&b'c/\"");
    assert_eq!(unescape("&amp;amp; & &; &nope; &#xD800; &#;"), "&amp; & &; &nope; &#xD800; &#;");
}

proptest! {
    #[test]
    fn any_body_gives_safe_names_or_an_error(
        noise in prop::collection::vec(any::<u8>(), 0..100),
        links in prop::collection::vec("([a.%&;#/?:<>'\\\\ ]|%2[ef]|%5c|\\PC){0,12}", 0..5),
        tags in "(<a href=|<pre>|</a>|<td|>|[ 0-9.KMG\"]|\\PC){0,30}",
    ) {
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let mut body = page(&links);
        body.extend_from_slice(tags.as_bytes());
        body.extend_from_slice(&noise);
        for entry in parse(&base(), None, &body).unwrap_or_default().entries {
            assert_safe(&entry.name);
            prop_assert!(!entry.name.contains('/'));
            prop_assert!(entry.url.path().starts_with("/data/"));
        }
    }
}
