//! Cuts text to a width.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `text`, or the part of it that fits into `width` columns with `…` at the end.
#[must_use]
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return text.into();
    }
    let mut room = width.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    });
    format!("{}…", kept.collect::<String>().trim_end()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_ends_in_an_ellipsis_and_fits() {
        assert_eq!(cut("alice@bastion", 13), "alice@bastion");
        assert_eq!(cut("alice@bastion", 12), "alice@basti…");
        assert_eq!(cut("alice and bob", 7), "alice…", "no space before it");
        assert_eq!(cut("新しいカーネル", 14), "新しいカーネル");
        assert_eq!(cut("新しいカーネル", 8), "新しい…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }
}
