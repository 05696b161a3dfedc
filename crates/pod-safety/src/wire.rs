//! Converts times between the API types and the rules' `Instant`. The only file that does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use maintenance_lease::protocol::Instant;

/// An API time as an instant, truncated to microseconds.
#[must_use]
pub fn instant(time: &Time) -> Instant {
    Instant::from_micros(time.0.as_microsecond())
}

/// An API time with microseconds as an instant.
#[must_use]
pub fn micro_instant(time: &MicroTime) -> Instant {
    Instant::from_micros(time.0.as_microsecond())
}

/// An instant as an API time in whole seconds (RFC 3339).
#[must_use]
pub fn rfc3339(instant: Instant) -> String {
    let time = Timestamp::from_microsecond(instant.as_micros()).unwrap_or(Timestamp::MAX);
    format!("{time:.0}")
}

/// Serializes instants in JSON, in whole seconds.
pub mod seconds {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Instant, Timestamp, rfc3339};

    /// Writes an instant as RFC 3339.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(instant: &Instant, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&rfc3339(*instant))
    }

    /// Reads an instant in RFC 3339.
    ///
    /// # Errors
    /// If the text is not a valid time.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        let text = String::deserialize(from)?;
        let time: Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(Instant::from_micros(time.as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_time_are_the_same_instant() {
        let seconds: Time = serde_json::from_str(r#""1970-01-01T00:00:05Z""#).expect("a time");
        let micros: MicroTime =
            serde_json::from_str(r#""1970-01-01T00:00:05.000000Z""#).expect("a time");
        assert_eq!(instant(&seconds), Instant::from_micros(5_000_000));
        assert_eq!(micro_instant(&micros), instant(&seconds));
        assert_eq!(rfc3339(instant(&seconds)), "1970-01-01T00:00:05Z");
    }
}
