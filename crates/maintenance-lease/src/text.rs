//! Texts that are cut to a length.

use std::borrow::Cow;

/// The end of a text that was cut.
const CUT: &str = "…";

/// Cuts `text` to at most `limit` bytes (three or more). A longer text is cut between characters and ends
/// in an ellipsis.
#[must_use]
pub fn shortened(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let end = (0..=limit.saturating_sub(CUT.len()))
        .rev()
        .find(|&index| text.is_char_boundary(index))
        .unwrap_or(0);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_say_so() {
        for (limit, expected) in [
            (13, "grün ist gut"),
            (12, "grün ist…"),
            (11, "grün is…"),
            (7, "grü…"),
            (6, "gr…"),
            (5, "gr…"),
            (3, "…"),
        ] {
            assert_eq!(shortened("grün ist gut", limit), expected, "{limit}");
        }
    }
}
