//! Names, and texts that are cut to a length.

use std::borrow::Cow;

/// The end of a text that was cut.
const CUT: &str = "…";

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 253;

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

/// Whether a Node, a Lease, a Pod or most other objects may have this name: it is a DNS subdomain as in RFC 1123.
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.as_bytes();
        label.first().is_some_and(alphanumeric)
            && label.last().is_some_and(alphanumeric)
            && label.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names_are_dns_subdomains() {
        for name in ["a", "0", "worker-1", "a.b-c.d", &"a".repeat(253)] {
            assert!(is_object_name(name), "{name}");
        }
        for name in [
            "",
            "-a",
            "a-",
            "A",
            "a_b",
            "a/b",
            "a..b",
            ".a",
            "ä",
            &"a".repeat(254),
        ] {
            assert!(!is_object_name(name), "{name}");
        }
    }

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
