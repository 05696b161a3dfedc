//! Makes text from any source safe to print: short, without control sequences, and quoted for a shell.

use crate::platform::quoted;

/// How many characters are printed.
const MOST: usize = 80;

/// `typed` with control characters escaped, and cut if it is long.
pub(crate) fn shown(typed: &str) -> String {
    let mut beginning: String = typed.chars().take(MOST).collect();
    if beginning.len() < typed.len() {
        beginning.push('…');
    }
    escape(&beginning)
}

/// `word` quoted for a shell, so that a pasted hint runs nothing but what it shows.
pub(crate) fn for_shell(word: &str) -> String {
    quoted(&escape(word))
}

/// `text` with escapes for every character that moves the cursor, sets colors or reverses the direction of
/// the text. A reason or a holder may contain any text.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Control characters, and the invisible ones that reorder or hide text.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
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
    fn quoted_input_is_short_and_harmless() {
        assert_eq!(shown("worker-1"), "worker-1");
        assert_eq!(shown("a\x1b[31mb\r"), "a\\u{1b}[31mb\\r");
        assert_eq!(shown(&"é".repeat(81)), "é".repeat(80) + "…");
    }

    #[test]
    fn terminal_controls_are_escaped() {
        assert_eq!(escape("new kernel"), "new kernel");
        assert_eq!(escape("grün ✓"), "grün ✓");
        assert_eq!(escape("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(escape("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(escape("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(escape("a\u{9b}b"), "a\\u{9b}b");
    }
}
