//! The two formats of times: whole seconds, and exactly six decimals.

use chrono::{DateTime, SecondsFormat, Utc};

/// The format of creation and deletion times.
pub(crate) fn seconds(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The format of a Lease's times.
pub(crate) fn micros(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Reads a time in whole seconds. Decimals are accepted and dropped.
pub(crate) fn read_seconds(text: &str) -> Result<String, String> {
    parse(text)
        .map(seconds)
        .ok_or_else(|| cannot_parse(text, "2006-01-02T15:04:05Z07:00"))
}

/// Reads a time that must have six decimals.
pub(crate) fn read_micros(text: &str) -> Result<String, String> {
    const DECIMALS: std::ops::Range<usize> = 19..26;
    let six = text.get(DECIMALS).is_some_and(|decimals| {
        decimals.starts_with('.') && decimals[1..].bytes().all(|b| b.is_ascii_digit())
    });
    let ends_there = text.get(26..27).is_some_and(|zone| "Z+-".contains(zone));
    parse(text)
        .filter(|_| six && ends_there)
        .map(micros)
        .ok_or_else(|| cannot_parse(text, "2006-01-02T15:04:05.000000Z07:00"))
}

fn parse(text: &str) -> Option<DateTime<Utc>> {
    // Unlike the server, chrono accepts a space or a small letter between date and time, and leap
    // seconds.
    let strict = text.get(10..11) == Some("T") && text.get(17..19) != Some("60");
    DateTime::parse_from_rfc3339(text)
        .ok()
        .filter(|_| strict)
        .map(|time| time.to_utc())
}

fn cannot_parse(text: &str, layout: &str) -> String {
    format!("parsing time {text:?} as {layout:?}: cannot parse {text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_time_needs_exactly_six_decimals() {
        let read = |text| read_micros(text).ok();
        assert_eq!(
            read("2026-01-02T03:04:05.123456Z").as_deref(),
            Some("2026-01-02T03:04:05.123456Z")
        );
        assert_eq!(
            read("2026-01-02T03:04:05.123456+01:00").as_deref(),
            Some("2026-01-02T02:04:05.123456Z")
        );
        for refused in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.123Z",
            "2026-01-02T03:04:05.1234567Z",
            "2026-01-02 03:04:05.123456Z",
            "yesterday",
            "",
        ] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn the_last_year_is_a_time_too() {
        assert!(read_micros("9999-12-31T23:59:59.999999Z").is_ok());
    }
}
