//! What was typed, as it can be repeated in a message: short, and without anything that acts on a
//! terminal.

use clap::error::{ContextKind, ContextValue};

use crate::terminal::escape;

/// How many characters are repeated.
const MOST: usize = 80;

/// `typed` with control characters escaped, and cut where it is long.
pub(crate) fn shown(typed: &str) -> String {
    let mut beginning: String = typed.chars().take(MOST).collect();
    if beginning.len() < typed.len() {
        beginning.push('…');
    }
    escape(&beginning)
}

/// `word` as a shell takes it: whoever copies a hint runs nothing but what it shows.
pub(crate) fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", escape(word).replace('\'', r"'\''"))
    }
}

/// What the argument parser repeats, [`shown`], and without its advice to put `--` before an unknown flag:
/// no flag is a node's name.
pub(crate) fn tame(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass '"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    let repeated: Vec<(ContextKind, String)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(typed) => Some((kind, typed.clone())),
            _ => None,
        })
        .collect();
    for (kind, typed) in repeated {
        let tamed = shown(&typed);
        if tamed != typed {
            error.insert(kind, ContextValue::String(tamed));
            // Suggestions are ready-made text, which repeats it as it is.
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_runs_nothing_but_what_it_shows() {
        assert_eq!(for_shell("alice@bastion.example"), "alice@bastion.example");
        assert_eq!(for_shell("alice@$(id)"), "'alice@$(id)'");
        assert_eq!(for_shell("alice@a'b"), r"'alice@a'\''b'");
        assert_eq!(for_shell(""), "''");
    }

    #[test]
    fn what_is_repeated_is_short_and_harmless() {
        assert_eq!(shown("worker-1"), "worker-1");
        assert_eq!(shown("a\x1b[31mb\r"), "a\\u{1b}[31mb\\r");
        assert_eq!(shown(&"é".repeat(81)), "é".repeat(80) + "…");
    }
}
