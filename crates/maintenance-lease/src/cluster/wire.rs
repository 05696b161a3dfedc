//! Conversion of times between the wire and the domain types.
//!
//! The only file that converts: the wire's time type comes with `k8s-openapi`, ours is `chrono`,
//! and the rules count microseconds. Everything is truncated to microseconds, because the server
//! takes exactly six decimals.

use chrono::{DateTime, NaiveDateTime, Utc};
use k8s_openapi::jiff::Timestamp;

use crate::protocol::Instant;

/// Parses a time of the wire. A time that is set but can't be parsed, such as one in year 9999, is
/// [`Instant::UNREADABLE`].
pub(crate) fn parse(text: &str) -> Instant {
    text.parse().map_or(Instant::UNREADABLE, |time: Timestamp| {
        Instant::from_micros(time.as_microsecond())
    })
}

/// The wire's form of an instant, with six decimals.
pub(crate) fn print(instant: Instant) -> serde_json::Value {
    let time =
        Timestamp::from_microsecond(instant.as_micros()).unwrap_or(if instant.as_micros() < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
    serde_json::Value::String(format!("{time:.6}"))
}

/// Reads the `Date` header of an answer (RFC 9110, section 5.6.7; servers send the first form).
pub(crate) fn parse_http_date(text: &str) -> Option<Instant> {
    NaiveDateTime::parse_from_str(text, "%a, %d %b %Y %H:%M:%S GMT")
        .ok()
        .map(|time| Instant::from_micros(time.and_utc().timestamp_micros()))
}

impl Instant {
    /// The instant in `chrono`'s type; `None` if it can't be represented.
    #[must_use]
    pub fn to_chrono(self) -> Option<DateTime<Utc>> {
        (self != Self::UNREADABLE)
            .then(|| DateTime::from_timestamp_micros(self.as_micros()))
            .flatten()
    }
}

impl From<DateTime<Utc>> for Instant {
    /// Truncates to microseconds.
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_wire_keep_six_decimals() {
        let instant = parse("2026-01-02T03:04:05.123456Z");
        assert_eq!(print(instant), "2026-01-02T03:04:05.123456Z");
        assert_eq!(
            print(parse("2026-01-02T03:04:05Z")),
            "2026-01-02T03:04:05.000000Z"
        );
        assert_eq!(
            parse("2026-01-02T03:04:05.123456789Z"),
            parse("2026-01-02T03:04:05.123456Z")
        );
        assert_eq!(
            instant.to_chrono().map(Instant::from),
            Some(instant),
            "there and back"
        );
    }

    #[test]
    fn a_time_that_cannot_be_read_is_later_than_all() {
        assert_eq!(parse("9999-12-31T23:59:59.000000Z"), Instant::UNREADABLE);
        assert_eq!(Instant::UNREADABLE.to_chrono(), None);
        assert_eq!(parse("soon"), Instant::UNREADABLE);
    }

    #[test]
    fn dates_of_http_are_read_to_the_second() {
        assert_eq!(
            parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Instant::from_micros(784_111_777_000_000))
        );
        assert_eq!(parse_http_date("yesterday"), None);
    }
}
