//! The API server's `Warning` headers, which kubectl shows.
//!
//! Gap in kube: it drops them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, header::WARNING};

use super::{Notice, Notices};

/// Reports each warning once.
#[derive(Clone)]
pub(super) struct Warnings {
    notices: Notices,
    seen: Arc<Mutex<HashSet<String>>>,
}

impl Warnings {
    pub(super) fn new(notices: Notices) -> Self {
        Self {
            notices,
            seen: Arc::default(),
        }
    }

    /// Reports the warnings in the headers of a response.
    pub(super) fn observe(&self, headers: &HeaderMap) {
        for header in headers.get_all(WARNING) {
            let Ok(header) = std::str::from_utf8(header.as_bytes()) else {
                continue;
            };
            for text in texts(header) {
                if self
                    .seen
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(text.clone())
                {
                    (self.notices)(Notice::ApiWarning(text));
                }
            }
        }
    }
}

/// The texts of the warnings with code 299 in one header: `299 agent "text" "date", 299 …`. Parsing stops at
/// the first malformed warning.
fn texts(header: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = header;
    while let Some((code, text, tail)) = warning(rest) {
        if code == "299" && !text.is_empty() {
            texts.push(text);
        }
        let tail = tail.trim_start();
        let tail = quoted(tail).map_or(tail, |(_, after)| after).trim_start();
        rest = tail.strip_prefix(',').unwrap_or_default();
    }
    texts
}

/// Splits off one warning. Returns its code, its text and the rest.
fn warning(text: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = text.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (text, rest) = quoted(rest)?;
    Some((code, text, rest))
}

/// Splits off a quoted string. A backslash escapes the next character.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut unquoted = String::new();
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((unquoted, &inner[at + 1..])),
            '\\' => unquoted.push(characters.next()?.1),
            other => unquoted.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_the_server_writes_them() {
        for (header, expected) in [
            (
                r#"299 - "unknown field \"spec.x\"""#,
                vec![r#"unknown field "spec.x""#],
            ),
            (r#"299 - "one", 299 agent/1.0 "two""#, vec!["one", "two"]),
            (
                r#"299 - "dated" "Sat, 21 Nov 2026 08:00:00 GMT", 299 - "next""#,
                vec!["dated", "next"],
            ),
            (r#"110 - "stale", 299 - "mine""#, vec!["mine"]),
            (r#"299 - "back\\slash""#, vec![r"back\slash"]),
            (r#"299 - """#, vec![]),
            (r#"299 - "unfinished"#, vec![]),
            ("nonsense", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(texts(header), expected, "{header}");
        }
    }

    #[test]
    fn a_warning_is_printed_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let warnings = Warnings::new(Arc::new(move |notice| sink.lock().unwrap().push(notice)));
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "deprecated""#.parse().unwrap());
        headers.append(
            WARNING,
            r#"299 - "deprecated", 299 - "other""#.parse().unwrap(),
        );
        warnings.observe(&headers);
        warnings.clone().observe(&headers);
        let expected = ["deprecated", "other"].map(|text| Notice::ApiWarning(text.to_owned()));
        assert_eq!(*told.lock().unwrap(), expected);
    }
}
