//! Ages in kubectl's format: at most two units, and larger units for older objects.

use chrono::{DateTime, Utc};

/// How long ago `time` (RFC 3339) was. `<unknown>` if it is missing.
pub(super) fn since(time: &str, now: DateTime<Utc>) -> String {
    match DateTime::parse_from_rfc3339(time) {
        Ok(time) => human((now - time.to_utc()).num_seconds()),
        Err(_) => "<unknown>".to_owned(),
    }
}

fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn ages_get_coarser_as_they_grow() {
        let hour = 3600;
        let day = 24 * hour;
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * hour, "3h"),
            (3 * hour + 60, "3h1m"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (2 * day + hour, "2d1h"),
            (9 * day, "9d"),
            (2 * 365 * day, "2y"),
            (2 * 365 * day + day, "2y1d"),
            (9 * 365 * day, "9y"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
