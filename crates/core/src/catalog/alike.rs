//! Names for files of one list whose URLs end in the same: with what tells the URLs apart.

use std::collections::HashMap;
use std::iter;

use url::Url;

use super::names::from_part;
use super::spec::FileSpec;

/// So many parts of a path are looked at, beside the host.
const DEEPEST: usize = 16;

/// What stands between a name and its query.
const QUERY: &str = if cfg!(windows) { "@" } else { "?" };

/// Names `by_url`, those of the `specs` at these places that were given no name, anew where several would have one: with
/// their queries if those tell them apart, else with as much of their paths as does, and at last with their hosts. All that
/// had one name get the same form, so that a list gives the same names each time. What nothing tells apart, or no name can
/// hold, stays as it is.
pub(crate) fn tell_apart(specs: &mut [FileSpec], by_url: &[usize]) {
    let is_file = |at: &usize| !specs[*at].url.path().ends_with('/');
    let mut files: Vec<usize> = by_url.iter().copied().filter(is_file).collect();
    files.sort_by(|one, other| specs[*one].name.cmp(&specs[*other].name));
    let alike = files.chunk_by(|one, other| specs[*one].name == specs[*other].name);
    let names: Vec<(usize, String)> = alike
        .filter(|places| places.iter().any(|at| specs[*at].url != specs[places[0]].url))
        .flat_map(|places| iter::zip(places.iter().copied(), names_of(specs, places)))
        .collect();
    for (at, name) in names {
        specs[at].name = name;
    }
}

/// Which parts of a URL make a name.
#[derive(Clone, Copy)]
struct Form {
    /// The last ones of the path.
    parts: usize,
    host: bool,
    query: bool,
}

/// Names that tell the specs at these `places` apart; none if there are no such.
fn names_of(specs: &[FileSpec], places: &[usize]) -> Vec<String> {
    let of_paths = (2..=DEEPEST)
        .flat_map(|parts| [false, true].map(|query| Form { parts, host: false, query }));
    let by_query = Form { parts: 1, host: false, query: true };
    let by_host = Form { parts: DEEPEST, host: true, query: true };
    let names = |form: Form| {
        let names = places.iter().map(|at| form.name(&specs[*at]));
        let names = names.collect::<Option<Vec<String>>>()?;
        let mut urls: HashMap<&str, &Url> = HashMap::with_capacity(names.len());
        for (at, name) in iter::zip(places, &names) {
            let url = &specs[*at].url;
            if *urls.entry(name).or_insert(url) != url {
                return None;
            }
        }
        Some(names)
    };
    iter::once(by_query).chain(of_paths).chain([by_host]).find_map(names).unwrap_or_default()
}

impl Form {
    /// The name of `spec`, in its directory. None where no name can hold it.
    fn name(self, spec: &FileSpec) -> Option<String> {
        let url = &spec.url;
        let mut path = url.path_segments()?.rev().filter(|part| !part.is_empty());
        let last = path.next().unwrap_or_default();
        let last = match url.query().filter(|_| self.query) {
            Some(query) => from_part(&format!("{last}{QUERY}{query}"), url).ok()?,
            None => from_part(last, url).ok()?,
        };
        let mut parts = vec![last];
        for part in path.take(self.parts - 1) {
            parts.push(from_part(part, url).ok()?);
        }
        if self.host {
            let port = url.port().map(|port| format!("+{port}")).unwrap_or_default();
            parts.push(from_part(&format!("{}{port}", url.host_str()?), url).ok()?);
        }
        parts.extend(spec.name.rsplit_once('/').map(|(directory, _)| directory.to_owned()));
        parts.reverse();
        Some(parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::{collapse, input_file, names};

    fn names(list: &str) -> Vec<String> {
        let specs = collapse(input_file::parse(list).unwrap()).unwrap();
        specs.into_iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn what_tells_urls_apart_comes_with_their_names() {
        for (list, expected) in [
            ("http://h/get?id=1\nhttp://h/get?id=2\n", ["get?id=1", "get?id=2"]),
            ("http://h/get\nhttp://h/get?id=2%2F3\n", ["get", "get?id=2%2F3"]),
            ("http://h/4/x/7.png\nhttp://h/5/x/7.png\n", ["4/x/7.png", "5/x/7.png"]),
            ("http://h/4/x/7.png\nhttp://h/4/y/7.png\n", ["x/7.png", "y/7.png"]),
            ("http://h/a//f?x\nhttp://h/b/f?x\n", ["a/f", "b/f"]),
            ("http://h/f\nhttp://h:81/f\n", ["h/f", "h+81/f"]),
            ("http://h/a/f\n dir=d\nhttp://h/b/f\n dir=d\n", ["d/a/f", "d/b/f"]),
            ("http://h/a/f\n dir=d\nhttp://h/b/f\n", ["d/f", "f"]),
        ] {
            assert_eq!(names(list), expected, "{list}");
        }
    }

    #[test]
    fn all_that_had_one_name_have_one_form_and_others_are_as_they_are() {
        let list =
            "http://h/a/f?1\nhttp://h/a/f?2\nhttp://h/b/f?1\nhttp://h/b/g?1\nhttp://h/a/f?2\n";
        assert_eq!(names(list), ["a/f?1", "a/f?2", "b/f?1", "g"]);
    }

    #[test]
    fn names_that_were_given_stay() {
        let given = "http://h/a/f\n out=f\nhttp://h/b/f\n out=f\n";
        let error = collapse(input_file::parse(given).unwrap()).unwrap_err();
        assert!(error.to_string().contains("would both write \"f\""), "{error}");
    }

    #[test]
    fn what_no_name_can_hold_stays_a_clash() {
        let long = "q".repeat(300);
        let list = format!("http://h/f?1{long}\nhttp://h/f?2{long}\n");
        let error = collapse(input_file::parse(&list).unwrap()).unwrap_err();
        assert!(error.to_string().contains("give one another name"), "{error}");
    }

    proptest! {
        #[test]
        fn any_list_gives_safe_names_each_time_the_same(
            urls in proptest::collection::vec("http://[hi]/([ab]|[ab]/|\\.\\./|%2F|[?&=]){0,8}x(\\?[ab/]{0,3})?", 1..8),
        ) {
            let list = urls.join("\n");
            let specs = input_file::parse(&list).unwrap();
            prop_assert_eq!(&specs, &input_file::parse(&list).unwrap());
            // Empty parts of paths tell nothing apart; no name here is too long.
            prop_assume!(!specs.iter().any(|spec| spec.url.path().contains("//")));
            let is_file = |spec: &&FileSpec| !spec.url.path().ends_with('/');
            let files: Vec<_> = specs.iter().filter(is_file).collect();
            for (one, other) in files.iter().flat_map(|one| files.iter().map(move |other| (one, other))) {
                names::tests::assert_safe(&one.name);
                prop_assert_eq!(one.name == other.name, one.url == other.url, "{} {}", one.url, other.url);
            }
        }
    }
}
