//! Directory listings as HTML: nginx autoindex and fancyindex, Apache `mod_autoindex` in its three
//! looks, Caddy `file_server browse`, Python's `http.server` and Go's `http.FileServer`.
//!
//! The links say what there is: their targets are exact where the shown names are cut. What
//! stands after a link in its row gives a hint of the size; nginx, fancyindex and Caddy show
//! bytes, Apache rounds (`1.2M`).

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use lol_html::{HtmlRewriter, Settings, element, end_tag, errors::RewritingError, text};
use url::Url;

use super::names;
use crate::connection::shown;
use crate::{Error, ErrorKind, Result};

/// A file or directory that a listing shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// Where it is; that of a directory ends in `/`.
    pub url: Url,
    /// Its name: one safe part of a path, without `/`.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Its size in bytes as the listing shows it, perhaps rounded.
    pub size_hint: Option<u64>,
}

/// What a listing shows.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files and directories, in the page's order.
    pub entries: Vec<ListingEntry>,
    /// What can't be stored, each with why: its name is too long, or one that this system keeps for
    /// itself.
    pub refused: Vec<(Url, Error)>,
}

/// The direct children of the directory at `base` (the page's final URL). Links to elsewhere, to the
/// parent and to other sort orders are skipped.
///
/// # Errors
/// `Listing`: the page is no directory listing.
pub fn parse(base: &Url, content_type: Option<&str>, body: &[u8]) -> Result<Listing> {
    if let Some(other) = content_type.filter(|content_type| !is_html(content_type)) {
        return Err(no_listing(base, &format!("its type is {}", names::excerpt(other))));
    }
    let page = Page::read(body)
        .map_err(|error| no_listing(base, "it can't be read as HTML").with_source(error))?;
    if !page.is_listing() && !page.is_bare_listing(base) {
        return Err(no_listing(base, "it is some other page"));
    }
    let Listing { mut entries, mut refused } = Listing::default();
    let mut by_url: HashMap<Url, usize> = HashMap::new();
    for row in &page.rows {
        let entry = match child(base, row) {
            Ok(Some(entry)) => entry,
            Ok(None) => continue,
            Err(refusal) => {
                refused.push(*refusal);
                continue;
            }
        };
        // A row may link twice to its file: from an icon, then from the name.
        match by_url.entry(entry.url.clone()) {
            Entry::Occupied(at) => {
                let first = &mut entries[*at.get()];
                first.size_hint = first.size_hint.or(entry.size_hint);
            }
            Entry::Vacant(at) => {
                at.insert(entries.len());
                entries.push(entry);
            }
        }
    }
    Ok(Listing { entries, refused })
}

fn is_html(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
}

fn no_listing(url: &Url, why: &str) -> Error {
    let line = format!(
        "{} is no directory listing: {why}; if it is a file, name it with `out`, else give the file's own URL, without the \
         trailing /, or a list with `input-file`",
        shown(url)
    );
    Error::new(ErrorKind::Listing, line)
}

/// What `row` links to, where that is directly below the directory of `base`.
fn child(base: &Url, row: &Row) -> Result<Option<ListingEntry>, Box<(Url, Error)>> {
    let Ok(mut url) = base.join(&unescape(&row.href)) else {
        return Ok(None);
    };
    url.set_fragment(None);
    let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
    let below = url.path().strip_prefix(directory).and_then(|path| path.strip_prefix('/'));
    let part = below.map(|path| path.strip_suffix('/').unwrap_or(path));
    let Some(part) = part.filter(|part| !part.is_empty() && !part.contains('/')) else {
        return Ok(None);
    };
    if url.origin() != base.origin() || url.query().is_some() {
        return Ok(None);
    }
    let name = match names::from_part(part, &url) {
        Ok(name) => name,
        Err(error) => return Err(Box::new((url, error))),
    };
    let is_dir = url.path().ends_with('/');
    let size_hint = if is_dir { None } else { size_hint(&unescape(&row.after)) };
    Ok(Some(ListingEntry { url, name, is_dir, size_hint }))
}

/// A page as far as listings need it.
#[derive(Default)]
struct Page {
    /// The text of title, first-level headings and footer.
    marks: String,
    rows: Vec<Row>,
    /// Links that are in preformatted text.
    preformatted: usize,
}

/// A link and what stands after it until the next one, both with their HTML entities.
struct Row {
    href: String,
    after: String,
}

impl Page {
    fn read(body: &[u8]) -> Result<Self, RewritingError> {
        let page = Rc::new(RefCell::new(Self::default()));
        let after_link = |text: &str| {
            if let Some(row) = page.borrow_mut().rows.last_mut() {
                row.after.push_str(text);
            }
        };
        let settings = Settings::new()
            .with_strict(false)
            .append_element_content_handler(element!("a[href]", |link| {
                let href = link.get_attribute("href").unwrap_or_default();
                page.borrow_mut().rows.push(Row { href, after: String::new() });
                // The link's own text, a name that may look like a size, is not kept.
                let page = Rc::clone(&page);
                link.on_end_tag(end_tag!(move |_| {
                    if let Some(row) = page.borrow_mut().rows.last_mut() {
                        row.after.clear();
                    }
                    Ok(())
                }))
            }))
            .append_element_content_handler(element!("pre a[href]", |_| {
                page.borrow_mut().preformatted += 1;
                Ok(())
            }))
            // Caddy has the exact bytes in data-order, since 2.7 in data-size.
            .append_element_content_handler(element!("td", |cell| {
                let exact = cell.get_attribute("data-order").or(cell.get_attribute("data-size"));
                after_link(&format!(" {} ", exact.unwrap_or_default()));
                Ok(())
            }))
            .append_element_content_handler(text!("pre, td", |text| {
                after_link(text.as_str());
                Ok(())
            }))
            .append_element_content_handler(text!("title, h1, footer", |text| {
                page.borrow_mut().marks.push_str(text.as_str());
                Ok(())
            }));
        let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
        rewriter.write(body)?;
        rewriter.end()?;
        Ok(page.take())
    }

    /// Whether there is nothing but links to what is below `base`, as Go writes it.
    fn is_bare_listing(&self, base: &Url) -> bool {
        let is_bare =
            |row: &Row| row.after.trim().is_empty() && !matches!(child(base, row), Ok(None));
        self.marks.is_empty()
            && self.preformatted > 0
            && self.preformatted == self.rows.len()
            && self.rows.iter().all(is_bare)
    }

    fn is_listing(&self) -> bool {
        let has = |mark: &str| self.marks.contains(mark);
        has("Index of /")
            || has("Directory listing for /")
            || has("Served with")
                && self.rows.iter().any(|row| row.href.starts_with("https://caddyserver.com"))
    }
}

/// The first size in `text`: bytes, or a number with a unit (`1.2M`, `3.0 GiB`). Dates and times
/// are passed over.
fn size_hint(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (number, unit) = word.split_at(digits);
        let factor = match unit {
            "" => Some(words.peek().copied().and_then(unit_bytes).unwrap_or(1)),
            _ => unit_bytes(unit),
        };
        if let (Ok(number), Some(factor)) = (number.parse::<f64>(), factor) {
            return Some((number * factor as f64).round() as u64);
        }
    }
    None
}

/// Bytes in a unit; all of these servers count in powers of 1024.
fn unit_bytes(unit: &str) -> Option<u64> {
    let (prefix, rest) = unit.split_at_checked(1)?;
    let power = "BKMGTPE".find(&prefix.to_ascii_uppercase())?;
    matches!(rest, "" | "B" | "iB").then(|| 1 << (10 * power))
}

/// `text` with its HTML entities replaced: the numeric ones and those that servers use to escape
/// names. Others stay as they are.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('&') {
        plain.push_str(before);
        rest = tail;
        if let Some((entity, tail)) = tail.split_once(';')
            && let Some(c) = entity_char(entity)
        {
            plain.push(c);
            rest = tail;
        } else {
            plain.push('&');
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn entity_char(entity: &str) -> Option<char> {
    if let Some(number) = entity.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
