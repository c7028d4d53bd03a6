//! A page and its parts.

use std::fmt::Write as _;

use crate::drawing::escaped;

/// Light and dark, as the reader's system is; charts take their colours from the same variables.
const STYLE: &str = "
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #59636e; --grid: #e4e7eb;
  --lead: #b4bbc4; --best: #d8f0dd; --bad: #b3261e; --series-0: #0072b2; --series-1: #c44900;
  --series-2: #00805e; --series-3: #b0568a; --series-4: #a06c00; --series-5: #2a87bd;
  --series-6: #6f5f00; --series-7: #5d5d5d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e6e9ed; --soft: #9aa4af;
  --grid: #2b323a; --lead: #56606b; --best: #1d4a2b; --bad: #ff8a80; --series-0: #58b4f0;
  --series-1: #ff8c4b; --series-2: #3ecf9f; --series-3: #e39cc5; --series-4: #f0b429;
  --series-5: #8fd3ff; --series-6: #d9c94a; --series-7: #b5b5b5; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--grid); padding-top: 1rem; }
a { color: var(--series-0); } .soft, figcaption { color: var(--soft); }
figure { margin: 1.5rem 0; } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; margin: .5rem 0;
  font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--grid);
  white-space: nowrap; } th:first-child, td:first-child { text-align: left; } thead th { vertical-align: bottom; }
.turned thead th:not(:first-child) { writing-mode: sideways-lr; text-align: left; padding: .4rem .15rem; }
.prose th, .prose td { text-align: left; white-space: normal; vertical-align: top; }
.best { background: var(--best); font-weight: 600; } .bad { color: var(--bad); }
code, pre { font: 12.5px/1.45 ui-monospace, monospace; } pre { white-space: pre-wrap; word-break: break-word;
  background: var(--grid); padding: .6rem .8rem; border-radius: 4px; }
summary { cursor: pointer; color: var(--soft); }
";

/// A page under way.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

/// A table: texts, the first column of which names its row.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    /// The names of its columns.
    pub header: Vec<String>,
    /// Its rows; a text may be marked by [`best`](Grid::best) or [`bad`](Grid::bad).
    pub rows: Vec<Vec<String>>,
    /// Names of columns stand upright, where they are many.
    pub is_turned: bool,
    /// It holds sentences, which are broken into lines.
    pub is_prose: bool,
}

/// A chart with what stands behind it.
#[derive(Debug)]
pub struct Figure {
    /// What it shows.
    pub caption: String,
    /// The chart.
    pub svg: String,
    /// Its data.
    pub data: Grid,
    /// What makes it again.
    pub command: String,
}

impl Grid {
    /// An empty table with these columns.
    pub fn new(header: &[&str]) -> Self {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Self { header, ..Self::default() }
    }

    /// Marks a cell as the best of its row.
    pub fn best(text: &str) -> String {
        format!("\u{1}{text}")
    }

    /// Marks a cell as a failure.
    pub fn bad(text: &str) -> String {
        format!("\u{2}{text}")
    }

    /// How a cell is marked, as a class of CSS, and its text.
    pub(super) fn mark(cell: &str) -> (Option<&'static str>, &str) {
        let marks = [("best", '\u{1}'), ("bad", '\u{2}')];
        let found =
            marks.iter().find_map(|(class, mark)| Some((Some(*class), cell.strip_prefix(*mark)?)));
        found.unwrap_or((None, cell))
    }

    fn html(&self) -> String {
        let class = match (self.is_turned, self.is_prose) {
            (true, _) => " class=\"turned\"",
            (_, true) => " class=\"prose\"",
            _ => "",
        };
        let mut html = format!("<div class=\"wide\"><table{class}><thead><tr>");
        for name in &self.header {
            let _ = write!(html, "<th>{}</th>", escaped(name));
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for cell in row {
                let (mark, text) = Self::mark(cell);
                let class = mark.map(|mark| format!(" class=\"{mark}\"")).unwrap_or_default();
                let _ = write!(html, "<td{class}>{}</td>", escaped(text));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

impl Page {
    /// A page without parts.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), body: String::new() }
    }

    /// A heading; links to it end in `#id`.
    pub fn heading(&mut self, id: &str, text: &str) {
        let _ = writeln!(self.body, "<h2 id=\"{}\">{}</h2>", escaped(id), escaped(text));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escaped(text));
    }

    /// Links to headings of this page.
    pub fn links(&mut self, links: impl IntoIterator<Item = (String, String)>) {
        let links = links.into_iter();
        let links =
            links.map(|(id, text)| format!("<a href=\"#{}\">{}</a>", escaped(&id), escaped(&text)));
        let _ = writeln!(self.body, "<p>{}</p>", links.collect::<Vec<_>>().join(" · "));
    }

    /// A command or another text whose lines and spaces stay.
    pub fn preformatted(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre>{}</pre>", escaped(text));
    }

    /// A table.
    pub fn table(&mut self, grid: &Grid) {
        self.body.push_str(&grid.html());
    }

    /// A chart; its data and command open below it.
    pub fn figure(&mut self, figure: &Figure) {
        let _ = writeln!(
            self.body,
            "<figure>\n{}<figcaption>{}</figcaption>\n<details><summary>Data and command</summary>\n{}\
             <pre>{}</pre></details>\n</figure>",
            figure.svg,
            escaped(&figure.caption),
            figure.data.html(),
            escaped(&figure.command),
        );
    }

    /// The whole page.
    pub fn finish(self) -> String {
        let title = escaped(&self.title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{}</body>\n</html>\n",
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_and_takes_nothing_literally() {
        let mut page = Page::new("a < b");
        page.heading("x", "R&D");
        let mut grid = Grid::new(&["client", "<s>"]);
        grid.rows.push(vec!["curl".to_owned(), Grid::best("1.0")]);
        grid.rows.push(vec!["wget".to_owned(), Grid::bad("failed")]);
        page.figure(&Figure {
            caption: "c".to_owned(),
            svg: "<svg></svg>".to_owned(),
            data: grid,
            command: "a && b".to_owned(),
        });
        let html = page.finish();
        assert!(html.contains("<title>a &lt; b</title>") && html.contains("R&amp;D"));
        assert!(html.contains("<th>&lt;s&gt;</th>") && html.contains("<pre>a &amp;&amp; b</pre>"));
        assert!(html.contains("<td class=\"best\">1.0</td>"), "{html}");
        assert!(html.contains("<td class=\"bad\">failed</td>"), "{html}");
        for outside in ["http://", "https://", "src=", "@import", "<script", "<link"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
