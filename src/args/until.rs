//! Points in time as typed: with a time zone, or as a duration from now.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, NaiveTime, TimeDelta, Utc};
use maintenance_lease::protocol::Now;

use super::duration;
use crate::error::{InputError, InvalidValue};

/// When the work is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    At(DateTime<Utc>),
    /// The next time that a clock in this zone shows this.
    Next(NaiveTime, FixedOffset),
    In(Duration),
}

/// The last second that RFC 3339 can express.
const LAST: i64 = 253_402_300_799;

/// Parses a time with a zone, or a duration such as `2d`.
pub(crate) fn until(typed: &str) -> Result<Until, InvalidValue> {
    if let Some(time) = zoned(typed) {
        return Ok(Until::At(time.to_utc()));
    }
    if let Some(time) = zoned(&format!("2000-01-01T{typed}")) {
        return Ok(Until::Next(time.time(), *time.offset()));
    }
    match duration::length(typed) {
        Err(InvalidValue::NotADuration) => Err(InvalidValue::UnknownTime),
        length => length.map(Until::In),
    }
}

/// A time with a zone; its seconds are optional.
fn zoned(typed: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(typed)
        .or_else(|_| DateTime::parse_from_str(&typed.replace(' ', "T"), "%Y-%m-%dT%H:%M%#z"))
        .ok()
}

impl Until {
    /// The point in time, relative to `now`.
    ///
    /// # Errors
    /// If it is in the past, or too far in the future to be written.
    pub(crate) fn after(self, now: Now) -> Result<DateTime<Utc>, InputError> {
        let now = now.latest.to_chrono();
        let time = match self {
            Self::At(time) => Some(time),
            Self::Next(time, zone) => now.and_then(|now| next(time, zone, now)),
            Self::In(length) => {
                now.and_then(|now| now.checked_add_signed(TimeDelta::from_std(length).ok()?))
            }
        };
        match time {
            Some(time) if Some(time) <= now => Err(InputError::Past),
            Some(time) if time.timestamp() <= LAST => Ok(time),
            _ => Err(InputError::BeyondCalendar),
        }
    }
}

/// The first time after `now` when a clock in `zone` shows `time`.
fn next(time: NaiveTime, zone: FixedOffset, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let today = now.with_timezone(&zone).date_naive().and_time(time);
    let today = today.and_local_timezone(zone).single()?.to_utc();
    match today > now {
        true => Some(today),
        false => today.checked_add_signed(TimeDelta::days(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;

    fn at(text: &str) -> Result<Until, InvalidValue> {
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
            "tomorrow",
            "-2d",
        ] {
            let unknown = InvalidValue::UnknownTime;
            assert_eq!(until(typed), Err(unknown), "{typed}");
        }
        let typed = "90".to_owned();
        assert_eq!(until("90"), Err(InvalidValue::NoUnit { typed }));
    }

    #[test]
    fn a_time_of_day_is_the_next_one_in_its_zone() {
        let now: DateTime<Utc> = "2026-05-31T23:30:00Z".parse().expect("a time");
        let after = |typed: &str| {
            let time = until(typed).expect("readable");
            let time = time.after(Now::at(now.into()));
            time.map(|time| time.to_rfc3339())
                .map_err(|error| Failure::Input(error).to_string())
        };
        let tomorrow = Ok("2026-06-01T00:15:00+00:00".to_owned());
        assert_eq!(after("00:15Z"), tomorrow);
        assert_eq!(after("00:15:00Z"), tomorrow);
        assert_eq!(after("02:15+02:00"), tomorrow);
        let next = Ok("2026-06-01T23:30:00+00:00".to_owned());
        assert_eq!(after("23:30Z"), next, "not now");
    }

    #[test]
    fn it_lies_ahead_and_within_the_calendar() {
        let now: DateTime<Utc> = "2026-05-31T12:00:00Z".parse().expect("a time");
        let after = |typed: &str| {
            until(typed)
                .expect("readable")
                .after(Now::at(now.into()))
                .map(|time| time.to_rfc3339())
                .map_err(|error| Failure::Input(error).to_string())
        };
        assert_eq!(after("2d"), Ok("2026-06-02T12:00:00+00:00".to_owned()));
        assert!(after("2026-05-31T12:00:00Z").is_err(), "it is now");
        assert!(after("0s").is_err());
        assert!(until("9000y").is_err(), "no calendar reaches so far");
    }
}
