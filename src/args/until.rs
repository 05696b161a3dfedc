//! Points in time as typed: with a time zone, or as a duration from now.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, NaiveTime, TimeDelta, Utc};
use maintenance_lease::LONGEST_DURATION;
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

/// The end that was requested for a lock, or is expected for a hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    OfLock(Until),
    OfHold(Until),
}

impl End {
    /// Checks that it is possible.
    ///
    /// # Errors
    /// If it is in the past, or too far ahead.
    pub(crate) fn check(self, now: Now) -> Result<(), InputError> {
        match self {
            Self::OfLock(until) => until.duration(now).map(drop),
            Self::OfHold(until) => until.after(now, "--expect-until").map(drop),
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// The last second that RFC 3339 can express.
const LAST: i64 = 253_402_300_799;

/// Parses the end of a renewed lock: a [time]. What looks like a duration may be added to what is left.
pub(crate) fn renewed_time(typed: &str) -> Result<Until, InvalidValue> {
    match time(typed) {
        Err(InvalidValue::NotATime { .. }) => Err(InvalidValue::NotATime {
            typed: typed.to_owned(),
        }),
        time => time,
    }
}

/// Parses a time with a zone, such as `18:00Z`.
pub(crate) fn time(typed: &str) -> Result<Until, InvalidValue> {
    if let Some(added) = typed.strip_prefix('+')
        && duration::length(added).is_ok()
    {
        let typed = added.to_owned();
        return Err(InvalidValue::NotATime { typed });
    }
    match until(typed) {
        Ok(Until::In(_)) => Err(InvalidValue::NotATime {
            typed: typed.to_owned(),
        }),
        Err(_) => Err(InvalidValue::UnknownTime { or_duration: false }),
        time => time,
    }
}

/// Parses a time with a zone, or a duration such as `2d`.
pub(crate) fn until(typed: &str) -> Result<Until, InvalidValue> {
    if let Some(time) = zoned(typed) {
        return Ok(Until::At(time.to_utc()));
    }
    if let Some(time) = zoned(&format!("2000-01-01T{typed}")) {
        return Ok(Until::Next(time.time(), *time.offset()));
    }
    match duration::length(typed) {
        Err(InvalidValue::NotADuration) => Err(InvalidValue::UnknownTime { or_duration: true }),
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
    /// The point in time, relative to `now`; `flag` is the flag that it was given with.
    ///
    /// # Errors
    /// If it is in the past, or too far in the future to be written.
    pub(crate) fn after(self, now: Now, flag: &'static str) -> Result<DateTime<Utc>, InputError> {
        let now = now.latest.to_chrono();
        let time = match self {
            Self::At(time) => Some(time),
            Self::Next(time, zone) => now.and_then(|now| next(time, zone, now)),
            Self::In(length) => {
                now.and_then(|now| now.checked_add_signed(TimeDelta::from_std(length).ok()?))
            }
        };
        match time {
            Some(time) if Some(time) <= now => Err(InputError::Past { flag }),
            Some(time) if time.timestamp() <= LAST => Ok(time),
            _ => Err(InputError::BeyondCalendar { flag }),
        }
    }

    /// The duration of a lock that ends then, in whole seconds.
    ///
    /// # Errors
    /// If it is in the past, or further ahead than a lock may end.
    pub(crate) fn duration(self, now: Now) -> Result<Duration, InputError> {
        let time = self.after(now, "--until")?;
        let ahead = maintenance_lease::protocol::Instant::from(time) - now.latest;
        let seconds = u64::try_from(ahead.ceil_seconds()).unwrap_or_default();
        let ahead = Duration::from_secs(seconds);
        // Somebody who types a time of the last hour has not seen that it has passed.
        let has_passed = ahead + LONGEST_DURATION >= DAY;
        match (self, has_passed) {
            _ if ahead <= LONGEST_DURATION => Ok(ahead),
            (Self::Next(..), true) => Err(InputError::Past { flag: "--until" }),
            _ => Err(InputError::FarUntil { time }),
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
            let unknown = InvalidValue::UnknownTime { or_duration: true };
            assert_eq!(until(typed), Err(unknown), "{typed}");
        }
        let typed = "90".to_owned();
        assert_eq!(until("90"), Err(InvalidValue::NoUnit { typed }));
    }

    #[test]
    fn a_time_of_day_is_the_next_one_in_its_zone() {
        let now: DateTime<Utc> = "2026-05-31T23:30:00Z".parse().expect("a time");
        let after = |typed: &str| {
            let time = time(typed).expect("readable");
            let time = time.after(Now::at(now.into()), "--until");
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
    fn only_a_time_of_the_last_hour_has_passed() {
        let now: DateTime<Utc> = "2026-05-31T02:40:00Z".parse().expect("a time");
        let duration = |typed: &str| {
            let time = time(typed).expect("readable");
            time.duration(Now::at(now.into()))
                .map_err(|error| Failure::Input(error).to_string())
        };
        assert_eq!(duration("03:10Z"), Ok(Duration::from_secs(1800)));
        let passed = duration("02:30Z").expect_err("10 minutes ago");
        assert!(passed.starts_with("--until is in the past"), "{passed}");
        for far in ["18:00Z", "01:00Z"] {
            let error = duration(far).expect_err("hours ahead");
            assert!(
                error.starts_with("--until is more than 1h from now"),
                "{far}: {error}"
            );
        }
    }

    #[test]
    fn the_end_of_a_lock_is_a_time() {
        for (typed, why) in [
            (
                "30m",
                InvalidValue::NotATime {
                    typed: "30m".to_owned(),
                },
            ),
            ("18:00", InvalidValue::UnknownTime { or_duration: false }),
            ("soon", InvalidValue::UnknownTime { or_duration: false }),
        ] {
            assert_eq!(time(typed), Err(why), "{typed:?}");
        }
    }

    #[test]
    fn it_lies_ahead_and_within_the_calendar() {
        let now: DateTime<Utc> = "2026-05-31T12:00:00Z".parse().expect("a time");
        let after = |typed: &str| {
            until(typed)
                .expect("readable")
                .after(Now::at(now.into()), "--until")
                .map(|time| time.to_rfc3339())
                .map_err(|error| Failure::Input(error).to_string())
        };
        assert_eq!(after("2d"), Ok("2026-06-02T12:00:00+00:00".to_owned()));
        assert!(after("2026-05-31T12:00:00Z").is_err(), "it is now");
        assert!(after("0s").is_err());
        assert!(until("9000y").is_err(), "no calendar reaches so far");
    }
}
