//! Parsers of lists.

use std::fmt::Write as _;

use pelton_core::catalog::{input_file, listing};

use crate::engine::url;

const FILES: u64 = 10_000;

/// Reads a page of nginx's autoindex: the entries in it.
pub(crate) fn listing() -> u64 {
    let mut page = "<html>\r\n<head><title>Index of /data/</title></head>\r\n<body>\r\n\
        <h1>Index of /data/</h1><hr><pre><a href=\"../\">../</a>\r\n"
        .to_owned();
    for file in 0..FILES {
        let name = format!("measured-{file:05}.nc");
        let _ = write!(
            page,
            "<a href=\"{name}\">{name}</a>        21-Nov-2026 08:15    {:>12}\r\n",
            file * 1_000
        );
    }
    page += "</pre><hr></body>\r\n</html>\r\n";
    let found = listing::parse(&url("/data/"), Some("text/html"), page.as_bytes());
    found.map_or(0, |found| found.entries.len() as u64)
}

/// Reads a list of URLs as `-i` takes it: the files in it.
pub(crate) fn urls() -> u64 {
    let mut list = String::new();
    for file in 0..FILES {
        let _ = writeln!(list, "https://files.test/data/{}/measured-{file:05}.nc", file / 100);
    }
    input_file::parse(&list).map_or(0, |files| files.len() as u64)
}
