//! Words that several checks share.

use maintenance_lease::protocol::Span;

/// A length of time as kubectl prints ages, in its largest unit alone: `45s`, `9m`, `5h`, `3d`.
#[must_use]
pub fn age(span: Span) -> String {
    let seconds = (span.as_micros() / 1_000_000).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How many of many are named.
const FEW: usize = 5;

/// The first few items one behind the other, and how many there are more.
#[must_use]
pub fn few(items: &[String]) -> String {
    match items.split_at_checked(FEW) {
        Some((few, more)) if !more.is_empty() => {
            format!("{} and {} more", few.join(", "), more.len())
        }
        _ => items.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, words) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_199, "119m"),
            (7_200, "2h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(Span::seconds(seconds)), words);
        }
        assert_eq!(age(Span::micros(-5)), "0s");
    }

    #[test]
    fn of_many_the_first_few_are_named() {
        let named = |count: usize| few(&vec!["a".to_owned(); count]);
        assert_eq!(named(0), "");
        assert_eq!(named(1), "a");
        assert_eq!(named(5), "a, a, a, a, a");
        assert_eq!(named(1000), "a, a, a, a, a and 995 more");
    }
}
