//! User names and passwords by host: the `.netrc` format of ftp(1), with curl's quoted strings.

use crate::{Error, ErrorKind, Result};

/// The entries of a netrc file.
#[derive(Clone, Default)]
pub struct Netrc(Vec<Entry>);

#[derive(Clone, Default)]
struct Entry {
    /// `None` is the `default` entry.
    machine: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

impl Netrc {
    /// Reads `text`, which came from the file `source`.
    ///
    /// # Errors
    /// `Usage` with the number of the line that is malformed.
    pub fn parse(text: &str, source: &str) -> Result<Self> {
        let mut words = Words { rest: text, line: 1, at_line_start: true, source };
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(word) = words.next()? {
            match word.as_str() {
                "machine" => {
                    let machine = Some(words.value(&word)?);
                    entries.push(Entry { machine, ..Entry::default() });
                }
                "default" => entries.push(Entry::default()),
                "macdef" => words.skip_macro(),
                "login" | "password" | "account" => {
                    let value = words.value(&word)?;
                    let Some(entry) = entries.last_mut() else {
                        return Err(words.malformed(&format!("{word} before any machine")));
                    };
                    match word.as_str() {
                        "login" => entry.login = Some(value),
                        "password" => entry.password = Some(value),
                        _ => {}
                    }
                }
                // The word may be a part of a password: it is not shown.
                _ => return Err(words.malformed("expected machine, login, password or default")),
            }
        }
        Ok(Self(entries))
    }

    /// User name and password for `host`; with `login` only those of that user. An entry of the host
    /// goes before `default`, and the first one before others.
    pub fn find(&self, host: &str, login: Option<&str>) -> Option<(String, String)> {
        let names = |entry: &&Entry| match (login, &entry.login) {
            (Some(wanted), Some(own)) => wanted == own,
            (wanted, own) => wanted.is_some() || own.is_some(),
        };
        let is_for_host = |entry: &&Entry| {
            entry.machine.as_deref().is_some_and(|machine| machine.eq_ignore_ascii_case(host))
        };
        let mut entries = self.0.iter().filter(names);
        let entry = entries
            .clone()
            .find(is_for_host)
            .or_else(|| entries.find(|entry| entry.machine.is_none()))?;
        let name = entry.login.as_deref().or(login)?;
        Some((name.to_owned(), entry.password.clone().unwrap_or_default()))
    }
}

/// The words of a netrc file.
struct Words<'a> {
    rest: &'a str,
    line: usize,
    at_line_start: bool,
    source: &'a str,
}

impl Words<'_> {
    /// The next word, without quotes; `None` at the end.
    fn next(&mut self) -> Result<Option<String>> {
        loop {
            match self.rest.chars().next() {
                None => return Ok(None),
                Some('#') if self.at_line_start => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                Some(blank) if blank.is_whitespace() => {
                    self.rest = &self.rest[blank.len_utf8()..];
                    if blank == '\n' {
                        self.line += 1;
                        self.at_line_start = true;
                    }
                }
                Some(first) => {
                    self.at_line_start = false;
                    if first == '"' {
                        return self.quoted().map(Some);
                    }
                    let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
                    let (word, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    return Ok(Some(word.to_owned()));
                }
            }
        }
    }

    /// The word after `keyword`.
    fn value(&mut self, keyword: &str) -> Result<String> {
        self.next()?.ok_or_else(|| self.malformed(&format!("nothing follows {keyword}")))
    }

    fn quoted(&mut self) -> Result<String> {
        let mut word = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(word);
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => word.push('\n'),
                    Some((_, 'r')) => word.push('\r'),
                    Some((_, 't')) => word.push('\t'),
                    Some((_, escaped)) => word.push(escaped),
                    None => break,
                },
                _ => word.push(char),
            }
        }
        Err(self.malformed("a quote is not closed"))
    }

    /// Skips a macro definition: it ends with an empty line.
    fn skip_macro(&mut self) {
        let end = self.rest.find("\n\n").unwrap_or(self.rest.len());
        self.line += self.rest[..end].matches('\n').count();
        self.rest = &self.rest[end..];
    }

    fn malformed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Usage, format!("{}:{}: {why}", self.source, self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, host: &str, login: Option<&str>) -> Option<(String, String)> {
        Netrc::parse(text, "netrc").unwrap().find(host, login)
    }

    fn pair(name: &str, password: &str) -> (String, String) {
        (name.into(), password.into())
    }

    #[test]
    fn hosts_users_and_the_default() {
        let text = "# comment machine x\n\
            machine a.test login one password #1\n\
            machine A.test\n login two\n password \"2 \\\"3\\\"\"\n\
            macdef init\n machine trap login no password no\n\n\
            default login any password 0";
        assert_eq!(found(text, "A.TEST", None), Some(pair("one", "#1")));
        assert_eq!(found(text, "a.test", Some("two")), Some(pair("two", "2 \"3\"")));
        assert_eq!(found(text, "trap", None), Some(pair("any", "0")));
        assert_eq!(found(text, "a.test", Some("three")), None);
        assert_eq!(found("machine a.test password p", "a.test", None), None);
        assert_eq!(found("machine a.test password p", "a.test", Some("me")), Some(pair("me", "p")));
    }

    #[test]
    fn malformed_lines_are_named_and_secrets_are_not() {
        for (text, message) in [
            ("machine", "netrc:1: nothing follows machine"),
            ("\nlogin x", "netrc:2: login before any machine"),
            (
                "machine a\nlogin b password secret word",
                "netrc:2: expected machine, login, password or default",
            ),
            ("machine a password \"secret\nlogin", "netrc:1: a quote is not closed"),
        ] {
            let error = Netrc::parse(text, "netrc").err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert_eq!(error.message(), message);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "(machine|login|default|macdef|\"|\\\\|#|\n| |é|x){0,40}") {
            if let Ok(netrc) = Netrc::parse(&text, "netrc") {
                netrc.find("x", None);
            }
        }
    }
}
