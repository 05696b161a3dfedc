//! Lines that fit a terminal.

use unicode_width::UnicodeWidthStr as _;

/// `words` behind `head` in lines of at most `width` columns, where the words allow it; the second and later
/// ones begin below the first word. Without a `width` it is one line.
pub(crate) fn hanging(head: &str, words: &str, width: Option<usize>) -> String {
    let mut text = head.to_owned();
    let Some(width) = width else {
        return text + words;
    };
    let indent = head.width();
    let mut column = indent;
    for (index, word) in words.split(' ').enumerate() {
        let ends = column + usize::from(index > 0) + word.width();
        if index == 0 {
            column = ends;
        } else if ends <= width {
            text.push(' ');
            column = ends;
        } else {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent + word.width();
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_goes_on_below() {
        let words = "a grün  bc defghijklm n";
        assert_eq!(hanging("ok: ", words, None), format!("ok: {words}"));
        assert_eq!(hanging("ok: ", words, Some(80)), format!("ok: {words}"));
        assert_eq!(
            hanging("ok: ", words, Some(10)),
            "ok: a grün\n     bc\n    defghijklm\n    n"
        );
        assert_eq!(hanging("ok: ", "", Some(3)), "ok: ");
    }
}
