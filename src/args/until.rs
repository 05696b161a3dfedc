//! Points in time as typed: with a time zone, or as a duration from now.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use maintenance_lease::protocol::Instant;

use super::duration;
use crate::error::Failure;

/// When the work is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    At(DateTime<Utc>),
    In(Duration),
}

/// The last second that RFC 3339 can express.
const LAST: i64 = 253_402_300_799;

/// Parses a time with a zone, or a duration such as `2d`.
pub(crate) fn until(typed: &str) -> Result<Until, String> {
    if let Some(time) = zoned(typed) {
        return Ok(Until::At(time));
    }
    if is_local(typed) {
        return Err(
            "add a time zone, e.g. 2026-11-22T18:00Z or 2026-11-22T18:00+02:00; or give a duration, \
             e.g. 2d or 90m"
                .to_owned(),
        );
    }
    if typed.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return duration::length(typed).map(Until::In);
    }
    Err(
        "not a time with a time zone, e.g. 2026-11-22T18:00Z, or a duration, e.g. 2d or 90m"
            .to_owned(),
    )
}

/// A time with a zone; its seconds are optional.
fn zoned(typed: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(typed)
        .or_else(|_| DateTime::parse_from_str(&typed.replace(' ', "T"), "%Y-%m-%dT%H:%M%#z"))
        .ok()
        .map(|time| time.to_utc())
}

/// Whether this is a time or a date without a zone.
fn is_local(typed: &str) -> bool {
    let typed = typed.replace(' ', "T");
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .iter()
        .any(|format| NaiveDateTime::parse_from_str(&typed, format).is_ok())
        || ["%H:%M", "%H:%M:%S"]
            .iter()
            .any(|format| NaiveTime::parse_from_str(&typed, format).is_ok())
        || NaiveDate::parse_from_str(&typed, "%Y-%m-%d").is_ok()
}

impl Until {
    /// The point in time, relative to `now`.
    ///
    /// # Errors
    /// If it is in the past, or too far in the future to be written.
    pub(crate) fn after(self, now: Instant) -> Result<DateTime<Utc>, Failure> {
        let now = now.to_chrono();
        let time = match self {
            Self::At(time) => Some(time),
            Self::In(length) => now
                .and_then(|now| now.checked_add_signed(chrono::TimeDelta::from_std(length).ok()?)),
        };
        match time {
            Some(time) if Some(time) <= now => Err(Failure::usage(
                "--until is in the past, by the API server's clock",
                "use a time in the future, or a duration, e.g. 2d",
            )),
            Some(time) if time.timestamp() <= LAST => Ok(time),
            _ => Err(Failure::usage(
                "--until is after the year 9999",
                "remove --until: a hold does not expire",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Result<Until, String> {
        Ok(Until::At(text.parse().expect("a time of the test")))
    }

    #[test]
    fn times_with_a_zone_and_lengths_are_read() {
        let noon = at("2026-05-31T12:00:00Z");
        assert_eq!(until("2026-05-31T12:00:00Z"), noon);
        assert_eq!(until("2026-05-31T14:00:00+02:00"), noon);
        assert_eq!(until("2026-05-31T14:00+02:00"), noon);
        assert_eq!(until("2026-05-31 12:00Z"), noon);
        assert_eq!(until("2d"), Ok(Until::In(Duration::from_secs(172_800))));
        assert_eq!(until("90m"), Ok(Until::In(Duration::from_secs(5400))));
    }

    #[test]
    fn a_local_time_is_not_guessed_at() {
        for typed in [
            "2026-05-31T12:00:00",
            "2026-05-31 12:00",
            "2026-05-31",
            "12:00",
        ] {
            let error = until(typed).expect_err(typed);
            assert!(error.starts_with("add a time zone"), "{typed}: {error}");
        }
        assert!(
            until("tomorrow")
                .expect_err("no time")
                .starts_with("not a time")
        );
        assert_eq!(until("-2d"), Err("must not be negative".to_owned()));
        assert_eq!(until("90"), Err("add a unit, e.g. 90s or 90m".to_owned()));
    }

    #[test]
    fn it_lies_ahead_and_within_the_calendar() {
        let now: DateTime<Utc> = "2026-05-31T12:00:00Z".parse().expect("a time");
        let after = |typed: &str| {
            until(typed)
                .expect("readable")
                .after(now.into())
                .map(|time| time.to_rfc3339())
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(after("2d"), Ok("2026-06-02T12:00:00+00:00".to_owned()));
        assert!(after("2026-05-31T12:00:00Z").is_err(), "it is now");
        assert!(after("0s").is_err());
        assert!(until("9000y").is_err(), "no calendar reaches so far");
    }
}
