//! Wraps text beside the start of its line.

use unicode_width::UnicodeWidthStr as _;

/// `words` after `head`, wrapped to at most `width` columns. Later lines are aligned with the first word.
/// Line breaks are kept. A word is never split. A command in backticks is not split either, because it may be
/// pasted.
#[must_use]
pub(crate) fn hanging(head: &str, words: &str, width: Option<usize>) -> String {
    let indent = head.width();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
    let lines: Vec<String> = words.lines().flat_map(|line| wrapped(line, room)).collect();
    let lines = lines.join(&format!("\n{:indent$}", ""));
    format!("{head}{lines}").trim_end().to_owned()
}

/// A line, wrapped to at most `room` columns if its words are short enough.
fn wrapped(line: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_command = false;
    for word in line.split(' ') {
        let fits = |line: &String| is_command || line.width() + 1 + word.width() <= room;
        match lines.last_mut() {
            Some(line) if fits(line) => *line = format!("{line} {word}"),
            Some(_) if word.is_empty() => {}
            _ => lines.push(word.to_owned()),
        }
        is_command ^= word.matches('`').count() % 2 == 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_continues_on_the_next_line() {
        let words = "a grün  bc defghijklm n";
        assert_eq!(hanging("ok: ", words, None), format!("ok: {words}"));
        assert_eq!(hanging("ok: ", words, Some(80)), format!("ok: {words}"));
        assert_eq!(
            hanging("ok: ", words, Some(16)),
            "ok: a grün  bc\n    defghijklm n"
        );
        assert_eq!(
            hanging("ok: ", words, Some(10)),
            "ok: a grün\n    bc\n    defghijklm\n    n",
            "no word is cut"
        );
        assert_eq!(hanging("ok: ", "", Some(3)), "ok:");
        assert_eq!(
            hanging("", "run `a b c` now", Some(5)),
            "run\n`a b c`\nnow",
            "a command is pasted"
        );
    }
}
