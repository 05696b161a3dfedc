//! Mistakes on a command line that the argument parser can't explain, and its own messages, safe to print.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

use super::duration::length;
use crate::text::shown;
use crate::words::usage;

/// Message and hint.
type Lines = (String, String);

/// What to report if a word on the line was probably meant as the value of the flag before it. That flag takes its value
/// after `=`, or takes none, so the word would become the name of a node.
pub(crate) fn of_detached_value(line: &[OsString]) -> Option<Lines> {
    let words = line.iter().map_while(|word| word.to_str());
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    words.windows(2).find_map(|pair| match *pair {
        ["--dry-run", mode @ ("client" | "server")] => Some(usage::detached_mode(mode)),
        ["--wait", limit] if length(limit).is_ok() => Some(usage::detached_limit(limit)),
        _ => None,
    })
}

/// What to report if no `--` is on a line of `with`, which the parser refuses.
pub(crate) fn of_missing_dashes(line: &[OsString], command: Option<&str>) -> Option<Lines> {
    let has_dashes = line.iter().any(|word| word == "--");
    (command == Some("with") && !has_dashes)
        .then(|| (usage::missing("`-- COMMAND`"), usage::run_with()))
}

/// The parser's message. What was typed is shortened and escaped.
pub(crate) fn of_parser(mut error: clap::Error) -> String {
    let typed = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(typed) => Some((kind, typed.clone())),
        _ => None,
    });
    let typed: Vec<(ContextKind, String)> = typed.collect();
    for (kind, typed) in typed {
        let tamed = shown(&typed);
        if tamed != typed {
            error.insert(kind, ContextValue::String(tamed));
            // Suggestions repeat what was typed.
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.trim_end().to_owned()
}
