//! How a word is quoted for the shell that commands are pasted into.

/// A word that a shell could change or split is quoted. `word` has no control characters.
///
/// On Windows, this is for both cmd and PowerShell, which agree on double quotes alone. What could end them or run a
/// command within them, in either shell, becomes `?`.
pub fn quoted(word: &str) -> String {
    quoted_on(cfg!(windows), word)
}

fn quoted_on(windows: bool, word: &str) -> String {
    let is_plain = |c: char| match windows {
        false => c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c),
        // PowerShell separates values with commas.
        true => c.is_ascii_alphanumeric() || r"@+=:./\_-".contains(c),
    };
    // To PowerShell, @name is a list of arguments.
    let is_list = windows && word.starts_with('@');
    if !word.is_empty() && !is_list && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !windows {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // PowerShell also takes typographic quotes for quotes.
    let is_active = |c: char| "\"$`\u{201c}\u{201d}\u{201e}".contains(c);
    let harmless = word.replace(is_active, "?");
    // Programs read \" as a quote.
    let before_quote = harmless.len() - harmless.trim_end_matches('\\').len();
    format!("\"{harmless}{}\"", r"\".repeat(before_quote))
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
            ("a\" & calc", "'a\" & calc'", r#""a? & calc""#),
            ("a\u{201d}; calc", "'a\u{201d}; calc'", r#""a?; calc""#),
            ("`calc`", "'`calc`'", r#""?calc?""#),
            ("a,b", "a,b", r#""a,b""#),
            ("@all", "@all", r#""@all""#),
            (r"C:\one", r"'C:\one'", r"C:\one"),
            (r"C:\a b\", r"'C:\a b\'", r#""C:\a b\\""#),
            ("100%", "100%", r#""100%""#),
        ] {
            assert_eq!(quoted_on(false, word), elsewhere, "{word}");
            assert_eq!(quoted_on(true, word), windows, "{word}");
        }
    }
}
