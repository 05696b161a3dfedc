//! Draws terminals side by side as SVG, in light or dark colors as the reader prefers. Time runs downwards: later lines
//! of any terminal are further down.

use std::fmt::Write as _;

/// A terminal window.
pub(super) struct Terminal {
    pub(super) title: &'static str,
}

/// A line in a terminal.
pub(super) struct Entry {
    /// The index of the terminal.
    pub(super) terminal: usize,
    pub(super) style: Style,
    pub(super) text: String,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Prompt,
    Output,
    Error,
    Hint,
}

impl Style {
    /// Its class in the style sheet.
    fn class(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Output => "output",
            Self::Error => "error",
            Self::Hint => "hint",
        }
    }
}

/// The number of columns after which lines are wrapped.
const COLUMNS: usize = 64;
/// The width of a column in the widest monospaced fonts.
const COLUMN: f64 = 7.3;
const ROW: usize = 17;
const MARGIN: usize = 12;
const TITLE: usize = 28;
const GAP: usize = 12;

const STYLE: &str = "\
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre }
.window { fill: #f6f8fa; stroke: #d1d9e0 }
.title { fill: #59636e; font-weight: bold }
.prompt { fill: #1f2328; font-weight: bold }
.output { fill: #1f2328 }
.error { fill: #d1242f }
.hint { fill: #0969da }
@media (prefers-color-scheme: dark) {
.window { fill: #151b23; stroke: #3d444d }
.title { fill: #9198a1 }
.prompt, .output { fill: #f0f6fc }
.error { fill: #ff7b72 }
.hint { fill: #79c0ff }
}
";

/// Draws the picture. `description` is for readers who can't see it.
pub(super) fn draw(description: &str, terminals: &[Terminal], entries: &[Entry]) -> String {
    let window = (COLUMNS as f64 * COLUMN).ceil() as usize + 2 * MARGIN;
    let rows: usize = entries.iter().map(|entry| wrap(&entry.text).len()).sum();
    let changes = entries
        .windows(2)
        .filter(|pair| pair[1].style == Style::Prompt)
        .count();
    let height = TITLE + rows * ROW + changes * ROW / 2 + MARGIN;
    let width = terminals.len() * (window + GAP) - GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n",
        escape(description)
    );
    let left = |terminal: usize| terminal * (window + GAP);
    let mut add = |element: std::fmt::Arguments<'_>| {
        // Writing to a String never fails.
        let _ = writeln!(svg, "{element}");
    };
    for (index, terminal) in terminals.iter().enumerate() {
        let x = left(index);
        add(format_args!(
            "<rect class=\"window\" x=\"{}\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>",
            x as f64 + 0.5,
            window - 1,
            height - 1
        ));
        add(format_args!(
            "<text class=\"title\" x=\"{}\" y=\"19\">{}</text>",
            x + MARGIN,
            escape(terminal.title)
        ));
    }
    let mut y = TITLE + ROW * 3 / 4;
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 && entry.style == Style::Prompt {
            y += ROW / 2;
        }
        for line in wrap(&entry.text) {
            add(format_args!(
                "<text class=\"{}\" x=\"{}\" y=\"{y}\">{}</text>",
                entry.style.class(),
                left(entry.terminal) + MARGIN,
                escape(&line)
            ));
            y += ROW;
        }
    }
    add(format_args!("</svg>"));
    svg
}

/// Wraps a line between words, but never within a word.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let length = |text: &str| text.chars().count();
        if let Some(line) = lines.last_mut() {
            if line.is_empty() || length(line) + length(word.trim_end()) <= COLUMNS {
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words_and_keep_their_indentation() {
        assert_eq!(wrap("  kubectl maint renew n"), ["  kubectl maint renew n"]);
        let long = format!("{} end", "x".repeat(COLUMNS - 3));
        assert_eq!(wrap(&long), ["x".repeat(COLUMNS - 3), "end".to_owned()]);
        let fits = format!("{} end", "x".repeat(COLUMNS - 4));
        assert_eq!(wrap(&fits), [fits]);
        assert_eq!(wrap(""), [""]);
    }

    #[test]
    fn later_lines_are_further_down_and_text_is_escaped() {
        let entry = |terminal, text: &str| Entry {
            terminal,
            style: Style::Output,
            text: text.to_owned(),
        };
        let terminals = [Terminal { title: "a" }, Terminal { title: "b" }];
        let svg = draw(
            "<it>",
            &terminals,
            &[entry(1, "first"), entry(0, "a < b & c")],
        );
        let y = |text: &str| -> usize {
            let line = svg.lines().find(|line| line.contains(text)).unwrap();
            let (_, rest) = line.split_once("y=\"").unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        assert!(y(">first<") < y(">a &lt; b &amp; c<"));
        assert!(svg.contains("<title>&lt;it&gt;</title>"));
    }
}
