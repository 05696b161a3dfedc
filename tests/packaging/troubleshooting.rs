//! Every message in docs/troubleshooting.md is one that a test of the plugin expects.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::source::files;

/// Details that differ between an example and a test: times, lengths of time, holders, reasons and
/// nodes.
const DETAILS: [(&str, &str); 8] = [
    (r#"\\""#, "\""),
    (r"\[time\]|\d\d:\d\d:\d\d UTC", ""),
    (r"\[length\]|\b\d+[smh]\b", "LENGTH"),
    (r"\b(alice|bob)(@\w+)?\b", "HOLDER"),
    (r"\b\w+-\d\b|\{node\}", "NODE"),
    (r#"([\w:]) "[^"\n]*""#, "$1"),
    (r": \(since", " (since"),
    (r" -m ('[^']*'|\w+)", ""),
];

fn without_details(text: &str) -> String {
    let mut text = text.to_owned();
    for (detail, instead) in DETAILS {
        let detail = Regex::new(detail).expect("a regex of the test");
        text = detail.replace_all(&text, instead).into_owned();
    }
    text
}

/// The messages in the `console` blocks of a page.
fn messages(page: &str) -> Vec<&str> {
    let blocks = page.split("```console\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let starts = ["error: ", "hint: ", "Warning: ", "Error from server"];
    lines
        .filter(|line| starts.iter().any(|start| line.starts_with(start)))
        .collect()
}

#[test]
fn every_message_is_one_that_a_test_expects() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = Vec::new();
    for directory in ["tests/cli", "tests/fencing", "tests/policy", "tests/safety"] {
        files(&root.join(directory), &mut tests);
    }
    let tests = tests
        .iter()
        .map(|file| fs::read_to_string(file).expect("text"));
    let expected: Vec<String> = tests.map(|text| without_details(&text)).collect();
    let page = fs::read_to_string(root.join("docs/troubleshooting.md")).expect("the page");
    let messages = messages(&page);
    assert!(messages.len() > 15, "only {} messages", messages.len());
    let unknown = messages.into_iter().filter(|message| {
        let message = without_details(message);
        // The page may leave out any part of a message.
        let is_expected = |part: &str| expected.iter().any(|test| test.contains(part));
        !message.split('…').all(is_expected)
    });
    let unknown: Vec<&str> = unknown.collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}
