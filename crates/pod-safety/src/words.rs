//! Text fragments that several checks share.

use maintenance_lease::protocol::Span;

/// A duration as kubectl prints ages. The smaller unit is shown only if it matters: `45s`, `5m30s`, `12m`,
/// `3h25m`, `26h`, `4d`.
#[must_use]
pub fn age(span: Span) -> String {
    let seconds = (span.as_micros() / 1_000_000).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |first: i64, unit: char, second: i64, smaller: char| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit}{second}{smaller}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 730 => format!("{days}d"),
        () => two(days / 365, 'y', days % 365, 'd'),
    }
}

/// The number of items that a list shows.
const FEW: usize = 5;

/// The first few items, separated by commas, and the number of the others.
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
    fn ages_read_as_in_kubectl() {
        for (seconds, words) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (1800, "30m"),
            (3600, "60m"),
            (3 * 3600 + 25 * 60, "3h25m"),
            (26 * 3600, "26h"),
            (50 * 3600, "2d2h"),
            (30 * 86_400, "30d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(age(Span::seconds(seconds)), words);
        }
        assert_eq!(age(Span::micros(-1_000_000)), "0s");
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
