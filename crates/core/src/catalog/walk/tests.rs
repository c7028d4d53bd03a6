use std::cell::{Cell, RefCell};

use super::*;

fn root() -> Url {
    "http://h/r/".parse().unwrap()
}

fn page(url: Url, links: &[&str]) -> ListingPage {
    let links: Vec<String> =
        links.iter().map(|href| format!("<a href=\"{href}\">x</a> 5\n")).collect();
    let links = links.concat();
    let body = format!("<title>Index of /</title><pre>{links}</pre>");
    ListingPage { url, content_type: Some("text/html".into()), body: body.into() }
}

/// A small tree below [`root`].
const TREE: [(&str, &[&str]); 4] = [
    ("/r/", &["../", "a/", "b/", "x.csv", "y.txt"]),
    ("/r/a/", &["../", "c/", "1.csv", "2.txt"]),
    ("/r/a/c/", &["../", "deep.csv"]),
    ("/r/b/", &["../", "1.csv"]),
];

async fn fetch_tree(url: Url) -> Result<ListingPage> {
    match TREE.iter().find(|(path, _)| *path == url.path()) {
        Some((_, links)) => Ok(page(url, links)),
        None => Err(Error::new(ErrorKind::NotFound, "404 Not Found")),
    }
}

async fn names_with(options: WalkOptions) -> Vec<String> {
    let files = walk(root(), &options, fetch_tree).await.unwrap().files;
    files.into_iter().map(|file| file.name).collect()
}

fn recursive() -> WalkOptions {
    WalkOptions { recursive: true, ..WalkOptions::default() }
}

#[tokio::test]
async fn without_recursion_only_the_files_of_the_level() {
    assert_eq!(names_with(WalkOptions::default()).await, ["x.csv", "y.txt"]);
}

#[tokio::test]
async fn recursion_keeps_the_structure_and_the_order_of_levels() {
    let files = walk(root(), &recursive(), fetch_tree).await.unwrap().files;
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["x.csv", "y.txt", "a/1.csv", "a/2.txt", "b/1.csv", "a/c/deep.csv"]);
    assert_eq!(files[2].url.as_str(), "http://h/r/a/1.csv");
    assert_eq!((files[2].size, files[2].size_hint), (None, Some(5)));
}

#[tokio::test]
async fn depth_counts_levels_from_the_root() {
    for (depth, count) in [(1, 2), (2, 5), (3, 6), (9, 6)] {
        let options = WalkOptions { depth: NonZeroU32::new(depth), ..recursive() };
        assert_eq!(names_with(options).await.len(), count, "depth {depth}");
    }
}

#[tokio::test]
async fn globs_choose_files_and_prune_directories() {
    let globs = |patterns: &[&str]| Globs::parse(patterns).unwrap();
    for (include, exclude, names) in [
        (&["*.txt"][..], &[][..], &["y.txt", "a/2.txt"][..]),
        (&["a/*"], &[], &["a/1.csv", "a/2.txt"]),
        (&["a/**"], &[], &["a/1.csv", "a/2.txt", "a/c/deep.csv"]),
        (&["*.csv"], &["1.*"], &["x.csv", "a/c/deep.csv"]),
        (&[], &["a/"], &["x.csv", "y.txt", "b/1.csv"]),
        (&["[xy].*"], &["y*"], &["x.csv"]),
    ] {
        let options =
            WalkOptions { include: globs(include), exclude: globs(exclude), ..recursive() };
        assert_eq!(names_with(options).await, names, "{include:?} {exclude:?}");
    }
}

#[tokio::test]
async fn an_excluded_directory_is_not_fetched() {
    let fetched = RefCell::new(Vec::new());
    let options = WalkOptions { exclude: Globs::parse(["a"]).unwrap(), ..recursive() };
    let fetch = async |url: Url| {
        fetched.borrow_mut().push(url.path().to_owned());
        fetch_tree(url).await
    };
    walk(root(), &options, fetch).await.unwrap();
    assert_eq!(*fetched.borrow(), ["/r/", "/r/b/"]);
}

#[test]
fn a_malformed_glob_is_named() {
    let error = Globs::parse(["ok", "a[b"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("a[b"), "{error}");
}

#[tokio::test]
async fn pages_that_come_in_any_order_give_one_order_and_few_are_in_flight() {
    let (now, most) = (Cell::new(0), Cell::new(0));
    let fetch = async |url: Url| {
        now.set(now.get() + 1);
        most.set(most.get().max(now.get()));
        let number: usize =
            url.path().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        for _ in 0..(number * 7) % 13 {
            tokio::task::yield_now().await;
        }
        now.set(now.get() - 1);
        if url == root() {
            let links: Vec<String> = (0..40).map(|i| format!("d{i}/")).collect();
            Ok(page(url, &links.iter().map(String::as_str).collect::<Vec<_>>()))
        } else {
            Ok(page(url, &["f"]))
        }
    };
    let files = walk(root(), &recursive(), fetch).await.unwrap().files;
    let names: Vec<String> = files.into_iter().map(|file| file.name).collect();
    assert_eq!(names, (0..40).map(|i| format!("d{i}/f")).collect::<Vec<_>>());
    assert_eq!(most.get(), PAGES_IN_FLIGHT);
}

#[tokio::test]
async fn a_loop_of_links_fails_alone_and_says_how_to_go_on() {
    let pages = Cell::new(0);
    let fetch = async |url: Url| {
        pages.set(pages.get() + 1);
        Ok(page(url, &["self/", "f"]))
    };
    let found = walk(root(), &recursive(), fetch).await.unwrap();
    assert_eq!((found.files.len(), found.failed.len()), (DEEPEST as usize, 1));
    let error = &found.failed[0].1;
    assert_eq!(error.kind(), ErrorKind::Listing);
    assert!(error.to_string().contains("http://h/r/self/self/"), "{error}");
    assert!(error.to_string().contains("`depth`"), "{error}");
    assert_eq!(pages.get(), DEEPEST);

    let options = WalkOptions { depth: NonZeroU32::new(3), ..recursive() };
    let files =
        walk(root(), &options, async |url| Ok(page(url, &["self/", "f"]))).await.unwrap().files;
    assert_eq!(files.len(), 3);
}

#[tokio::test]
async fn redirects_to_a_directory_already_read_are_not_read_again() {
    let fetch = async |url: Url| match url.path() {
        "/r/" => Ok(page(url, &["back/", "moved/", "f"])),
        "/r/back/" => Ok(page(root(), &["back/", "moved/", "f"])),
        _ => Ok(page("http://h/elsewhere/".parse().unwrap(), &["g", "/r/h"])),
    };
    let files = walk(root(), &recursive(), fetch).await.unwrap().files;
    let urls: Vec<(&str, &str)> =
        files.iter().map(|file| (file.name.as_str(), file.url.path())).collect();
    assert_eq!(urls, [("f", "/r/f"), ("moved/g", "/elsewhere/g")]);
}

#[tokio::test]
async fn a_failed_page_is_named_once() {
    let options = recursive();
    let fetch = async |url: Url| match url.path() {
        "/r/" => Ok(page(url, &["gone/", "f"])),
        _ => Err(Error::new(ErrorKind::NotFound, "404 Not Found")),
    };
    let error = walk(root(), &options, fetch).await.unwrap().failed.remove(0).1;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "http://h/r/gone/: 404 Not Found");

    let fetch = async |url: Url| Err(Error::new(ErrorKind::Timeout, format!("{url}: too slow")));
    let error = walk(root(), &options, fetch).await.unwrap_err();
    assert_eq!(error.to_string(), "http://h/r/: too slow");
}

#[tokio::test]
async fn a_sub_directory_that_shows_a_page_of_its_own_is_named() {
    let fetch = async |url: Url| match url.path() {
        "/r/" => Ok(page(url, &["site/"])),
        _ => Ok(ListingPage { body: "<title>Home</title>".into(), ..page(url, &[]) }),
    };
    let error = walk(root(), &recursive(), fetch).await.unwrap().failed.remove(0).1;
    assert_eq!(error.kind(), ErrorKind::Listing);
    assert!(error.to_string().starts_with("http://h/r/site/ is no directory listing"), "{error}");
}
