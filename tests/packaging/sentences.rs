//! All messages are in `words/`. The other layers of `src/` pass data.

use crate::source::{literals, sources};

/// The beginnings of texts that have more than one word, but are not messages.
const NO_MESSAGES: [&str; 17] = [
    // A shell command.
    "unset PROMPT_COMMAND; ",
    // A tip of the argument parser.
    "to pass '",
    // A right, by verb and resource.
    "get heartbeats",
    // Column headers, and a cell of typical width.
    "LAST HOLDER",
    "OTHER TOOLS",
    "new kernel, then the drivers",
    // Keys and headings of pages.
    "API user: ",
    "Client Version: ",
    "\\nServer Version: ",
    "Expected end",
    "Last holder",
    "Lock ID",
    "Next commands",
    "Other tools",
    "Set by locks",
    // The format of a time in the schema.
    "RFC 3339 in UTC",
    // The description of other values in the schema.
    "Later releases may add others.",
];

/// The functions whose texts may stay in place: help belongs to its flag, and `context` is for errors without a code of
/// their own.
const EXEMPT: [&str; 4] = ["help", "help_template", "context", "with_context"];

/// The texts of more than one word in the files of these layers. Fails if there are fewer than `most` texts in all.
fn sentences(layers: &[&str], most: usize) -> String {
    let mut found = Vec::new();
    let mut seen = 0;
    for (file, tokens) in sources() {
        let path = file.display().to_string();
        let is_in = |layer: &&str| path.starts_with(*layer);
        // The pages of the reference are made of headings.
        if !layers.iter().any(is_in) || path.starts_with("commands/reference/") {
            continue;
        }
        let literals = literals(tokens);
        seen += literals.len();
        let sentences = literals.into_iter().filter(|(callee, text)| {
            is_sentence(text)
                && !EXEMPT.contains(&&**callee)
                && !NO_MESSAGES.iter().any(|known| text.starts_with(known))
        });
        found.extend(sentences.map(|(_, text)| format!("src/{path}: {text}")));
    }
    assert!(seen > most, "only {seen} texts were found");
    found.join("\n")
}

#[test]
fn only_words_hold_sentences() {
    let found = sentences(
        &[
            "completion",
            "commands/",
            "run/",
            "args/",
            "output",
            "ui",
            "exit",
            "error",
        ],
        50,
    );
    assert!(found.is_empty(), "{found}");
}

/// Whether the text has two words or more, without placeholders.
fn is_sentence(text: &str) -> bool {
    let mut rest = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth == 0 => rest.push(c),
            _ => {}
        }
    }
    let words = rest.split_whitespace();
    let words = words.filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1);
    words.count() > 1
}

#[test]
fn a_sentence_is_found() {
    assert!(is_sentence("it is off"));
    assert!(!is_sentence("{no} one {two}"));
}
