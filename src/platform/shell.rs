//! Quotes words for the shell that the user pastes commands into.

/// Quotes `word` if a shell could change or split it. `word` has no control characters.
///
/// On Windows, the result is for both cmd and PowerShell. Double quotes are the only quotes that they share.
/// A character that could end the quotes or be expanded within them becomes `?`.
pub(crate) fn quoted(word: &str) -> String {
    quoted_on(cfg!(windows), word)
}

/// Whether [`quoted`] preserves all of `word`.
pub(crate) fn is_quotable(word: &str) -> bool {
    is_quotable_on(cfg!(windows), word)
}

/// These characters are special within double quotes. PowerShell also accepts typographic quotes. cmd expands
/// variables and parts of them, and a part may be a quote.
const ACTIVE: &[char] = &['"', '$', '`', '%', '\u{201c}', '\u{201d}', '\u{201e}'];

fn is_quotable_on(windows: bool, word: &str) -> bool {
    // cmd and PowerShell treat backslashes before a quote differently.
    !windows || !(word.contains(ACTIVE) || word.ends_with('\\'))
}

fn quoted_on(windows: bool, word: &str) -> String {
    match windows {
        true => for_windows(word),
        false => for_unix(word),
    }
}

fn for_windows(word: &str) -> String {
    // PowerShell expands @name to a list of arguments, and separates values with commas.
    if !word.starts_with('@') && is_plain(word, r"@+=:./\_-") {
        return word.to_owned();
    }
    let harmless = word.replace(ACTIVE, "?");
    // Programs treat \" as a literal quote, so backslashes before the closing quote are doubled.
    let before_quote = harmless.len() - harmless.trim_end_matches('\\').len();
    format!("\"{harmless}{}\"", r"\".repeat(before_quote))
}

fn for_unix(word: &str) -> String {
    // zsh expands =name to the path of a program.
    if !word.starts_with('=') && is_plain(word, "@%+=:,./_-") {
        return word.to_owned();
    }
    let quoted = word.chars().map(|c| match c {
        '\'' => r"'\''".to_owned(),
        // In fish, a backslash also escapes within quotes.
        '\\' => r"'\\'".to_owned(),
        c => c.to_string(),
    });
    format!("'{}'", quoted.collect::<String>())
}

/// Whether `word` needs no quotes. Besides letters and digits, only the characters in `others` need none.
fn is_plain(word: &str, others: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !word.is_empty() && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_word_runs_nothing() {
        for (word, elsewhere, windows) in [
            (
                "alice@host.example",
                "alice@host.example",
                "alice@host.example",
            ),
            ("new kernel", "'new kernel'", r#""new kernel""#),
            ("", "''", r#""""#),
            ("$(id)", "'$(id)'", r#""?(id)""#),
            ("it's", r"'it'\''s'", r#""it's""#),
            (r"\';id;\'", r"''\\''\'';id;'\\''\'''", r#""\';id;\'""#),
            ("a\" & calc", "'a\" & calc'", r#""a? & calc""#),
            ("a\u{201d}; calc", "'a\u{201d}; calc'", r#""a?; calc""#),
            ("`calc`", "'`calc`'", r#""?calc?""#),
            ("%X:~0,1%&calc", "'%X:~0,1%&calc'", r#""?X:~0,1?&calc""#),
            ("--%", "--%", r#""--?""#),
            ("a,b", "a,b", r#""a,b""#),
            ("@all", "@all", r#""@all""#),
            ("=ls", "'=ls'", "=ls"),
            (r"C:\one", r"'C:'\\'one'", r"C:\one"),
            (r"C:\a b\", r"'C:'\\'a b'\\''", r#""C:\a b\\""#),
        ] {
            assert_eq!(quoted_on(false, word), elsewhere, "{word}");
            assert_eq!(quoted_on(true, word), windows, "{word}");
        }
    }

    #[test]
    fn what_becomes_another_word_is_not_quotable() {
        for (word, on_windows) in [
            ("new kernel", true),
            (r"C:\one", true),
            ("it's", true),
            ("100% full", false),
            ("\"sda\" failed", false),
            (r"C:\a b\", false),
        ] {
            assert!(is_quotable_on(false, word), "{word}");
            assert_eq!(is_quotable_on(true, word), on_windows, "{word}");
        }
    }
}
