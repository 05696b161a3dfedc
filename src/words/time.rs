//! Times and durations in words.

use chrono::{DateTime, Local, SecondsFormat, TimeZone, Utc};
use maintenance_lease::LONGEST_DURATION;
use maintenance_lease::protocol::{Instant, Span};
use pod_safety::words::age;

/// A duration as people set it: exact hours as `1h` or `2h`, a minute as `1m`, below a second as `250ms`, else
/// as [`age`].
pub(crate) fn length(length: Span) -> String {
    match length.as_micros() {
        micros @ 1..1000 => format!("{micros}us"),
        micros @ 1000..1_000_000 => format!("{}ms", micros / 1000),
        micros if micros > 0 && micros % 3_600_000_000 == 0 => {
            format!("{}h", micros / 3_600_000_000)
        }
        60_000_000 => "1m".to_owned(),
        _ => age(length),
    }
}

/// The longest duration of a lock.
pub(crate) fn longest_lock() -> String {
    length(LONGEST_DURATION.into())
}

/// A remaining duration, rounded to the nearest of the units that [`age`] ends in: a lock that was
/// acquired for 30 minutes a second ago has 30 minutes left, not 29.
pub(crate) fn remaining(length: Span) -> String {
    const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let micros = length.as_micros();
    let unit = match micros {
        _ if micros < 10 * MINUTE => SECOND,
        _ if micros < 8 * HOUR => MINUTE,
        _ if micros < 8 * DAY => HOUR,
        _ => DAY,
    };
    match micros.saturating_add(unit / 2).div_euclid(unit) * unit {
        // As it was typed: `1h`, not `60m`.
        micros if micros == HOUR || micros == 2 * HOUR => format!("{}h", micros / HOUR),
        micros => age(Span::micros(micros)),
    }
}

/// A point in time as kubectl prints it: `2026-11-22T18:00:00Z`.
pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A point in time in the local zone: the time of day, with the date if it is not the day of `now`.
pub(crate) fn clock(instant: Instant, now: Instant) -> String {
    in_zone(instant, now, &Local)
}

fn in_zone<Z: TimeZone>(instant: Instant, now: Instant, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let Some(time) = instant.to_chrono() else {
        return "an unreadable time".to_owned();
    };
    let local = time.with_timezone(zone);
    let today = now
        .to_chrono()
        .is_some_and(|now| now.with_timezone(zone).date_naive() == local.date_naive());
    let offset = local.offset().to_string();
    let offset = if offset == "+00:00" { "UTC" } else { &offset };
    let format = if today {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M:%S"
    };
    format!("{} {offset}", local.format(format))
}

/// A point in time in the local zone, and in UTC if that differs.
pub(crate) fn clock_and_utc(instant: Instant, now: Instant) -> String {
    let local = clock(instant, now);
    let utc = in_zone(instant, now, &Utc);
    if local == utc {
        local
    } else {
        format!("{local} ({utc})")
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, FixedOffset};

    use super::*;

    #[test]
    fn lengths_read_as_people_set_them() {
        for (seconds, words) in [(60, "1m"), (90, "90s"), (1800, "30m"), (3600, "1h")] {
            assert_eq!(length(Span::seconds(seconds)), words, "{seconds} s");
        }
        for (micros, words) in [(0, "0s"), (1, "1us"), (1000, "1ms"), (250_000, "250ms")] {
            assert_eq!(length(Span::micros(micros)), words, "{micros} microseconds");
        }
    }

    #[test]
    fn time_left_is_rounded_to_the_nearest_unit() {
        for (micros, words) in [
            (1_799_800_000, "30m"),
            (1_769_000_000, "29m"),
            (599_600_000, "10m"),
            (59_400_000, "59s"),
            (3_599_999_999, "1h"),
            (7_199_000_000, "2h"),
            (5_400_000_000, "90m"),
            (10_799_000_000, "3h"),
            (97_000_000_000, "27h"),
            (172_799_000_000, "2d"),
            (100_000, "0s"),
        ] {
            assert_eq!(
                remaining(Span::micros(micros)),
                words,
                "{micros} microseconds"
            );
        }
    }

    #[test]
    fn times_on_another_day_have_a_date() {
        let at =
            |text: &str| Instant::from(text.parse::<DateTime<Utc>>().expect("a time of the test"));
        let zone = FixedOffset::east_opt(2 * 3600).expect("an offset");
        let now = at("2026-01-02T21:00:00Z");
        assert_eq!(
            in_zone(at("2026-01-02T21:30:05Z"), now, &zone),
            "23:30:05 +02:00"
        );
        assert_eq!(
            in_zone(at("2026-01-02T22:30:05Z"), now, &zone),
            "2026-01-03 00:30:05 +02:00"
        );
        assert_eq!(
            in_zone(at("2026-01-02T22:30:05Z"), now, &Utc),
            "22:30:05 UTC"
        );
        assert_eq!(
            in_zone(Instant::UNREADABLE, now, &Utc),
            "an unreadable time"
        );
    }
}
