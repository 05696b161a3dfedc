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

/// The items one behind the other.
pub(crate) fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
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
}
