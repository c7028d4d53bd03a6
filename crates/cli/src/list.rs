//! `pelton list`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use pelton_algos::units::Bytes;
use pelton_core::catalog::FileSpec;
use pelton_core::events::{ErrorReport, FileReport};
use pelton_core::{Client, Result};
use serde::Serialize;

use crate::args::ListArgs;
use crate::output::count;
use crate::{logging, output, resolve, stop};

/// One line of `pelton list --json`.
#[derive(Serialize)]
struct Entry<'a> {
    event: &'static str,
    name: &'a str,
    url: &'a str,
    /// Bytes; nothing where no one tells.
    size: Option<u64>,
    digest: Option<String>,
    /// Why it is not there.
    error: Option<&'a ErrorReport>,
}

/// Shows what `get` would fetch.
pub(crate) fn run(args: &ListArgs) -> Result<ExitCode> {
    logging::start(&args.text, None)?;
    let client = Client::builder()
        .connector(Arc::new(resolve::connector(&args.http, &args.retry)))
        .http(resolve::http(&args.http, &args.retry)?)
        .build()?;
    let download = client.download(resolve::inputs(&args.inputs)?).walk(resolve::walk(&args.walk)?);
    let catalog = stop::runtime()?.block_on(download.catalog())?;
    let (files, failed) = (&catalog.files, &catalog.failed);
    if args.text.json {
        for entry in files.iter().map(entry).chain(failed.iter().map(missing)) {
            if !output::json_line(&entry)? {
                break;
            }
        }
    } else {
        output::print(table(files).as_bytes())?;
        if !args.text.quiet {
            output::tell(&total(files));
        }
    }
    output::tell(&output::failures(failed, (files.len() + failed.len()) as u64));
    Ok(ExitCode::from(catalog.exit_code()))
}

fn size(file: &FileSpec) -> Option<u64> {
    file.size.or(file.size_hint)
}

fn entry(file: &FileSpec) -> Entry<'_> {
    let digest = file.digest.as_ref().map(ToString::to_string);
    let (name, url) = (&file.name, file.url.as_str());
    Entry { event: "entry", name, url, size: size(file), digest, error: None }
}

fn missing(file: &FileReport) -> Entry<'_> {
    let FileReport { name, url, error, .. } = file;
    Entry { event: "entry", name, url, size: None, digest: None, error: error.as_deref() }
}

fn table(files: &[FileSpec]) -> String {
    let mut text = String::new();
    for file in files {
        let size = size(file).map_or_else(|| "?".to_owned(), |size| Bytes(size).to_string());
        // Writing to a String can't fail.
        let _ = writeln!(text, "{size:>9}  {}", file.name);
    }
    text
}

fn total(files: &[FileSpec]) -> String {
    let bytes: u64 = files.iter().filter_map(size).sum();
    let unknown = files.iter().filter(|file| size(file).is_none()).count();
    let mut line = format!("{}, {}", count(files.len() as u64, "file"), Bytes(bytes));
    if unknown > 0 {
        // Writing to a String can't fail.
        let _ = write!(line, " and {unknown} of unknown size");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(url: &str, size: Option<u64>) -> FileSpec {
        FileSpec { size_hint: size, ..FileSpec::from_url(url.parse().unwrap()).unwrap() }
    }

    #[test]
    fn sizes_stand_beside_names_and_unknown_ones_are_said() {
        let files = [file("http://h/a.iso", Some(12_000)), file("http://h/b", None)];
        assert_eq!(table(&files), "  12.0 kB  a.iso\n        ?  b\n");
        assert_eq!(total(&files), "2 files, 12.0 kB and 1 of unknown size");
        assert_eq!(total(&files[..1]), "1 file, 12.0 kB");
    }

    #[test]
    fn an_entry_has_the_form_that_the_guide_shows() {
        let json = serde_json::to_string(&entry(&file("http://h/a.iso", Some(12_000)))).unwrap();
        assert_eq!(
            json,
            r#"{"event":"entry","name":"a.iso","url":"http://h/a.iso","size":12000,"digest":null,"error":null}"#
        );
    }
}
