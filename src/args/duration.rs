//! Durations as typed.

use std::time::Duration;

use crate::error::InvalidValue;

/// The longest duration that is accepted, ten years. More is a typo, or out of a clock's range.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Parses a duration such as `30m`, `1h` or `1m30s`. A bare number is refused because its unit is unknown.
pub(crate) fn length(typed: &str) -> Result<Duration, InvalidValue> {
    if !typed.is_empty() && typed.bytes().all(|byte| byte == b'0') {
        return Ok(Duration::ZERO);
    }
    if !typed.is_empty() && typed.bytes().all(|byte| byte.is_ascii_digit()) {
        let typed = typed.to_owned();
        return Err(InvalidValue::NoUnit { typed });
    }
    let length = humantime::parse_duration(typed).map_err(|_| InvalidValue::NotADuration)?;
    // An M stands for months. Nobody locks a node for months, but some people write M for minutes.
    if typed.contains('M') {
        return Err(InvalidValue::NotADuration);
    }
    if length > LONGEST {
        return Err(InvalidValue::BeyondClocks);
    }
    Ok(length)
}

/// How long a renewal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Until so long from now.
    FromNow(Duration),
    /// So much longer than what is left.
    Added(Duration),
}

/// Parses the duration of a renewal. `+20m` is added to what is left.
pub(crate) fn extension(typed: &str) -> Result<Extension, InvalidValue> {
    match typed.strip_prefix('+') {
        Some(added) => lease(added).map(Extension::Added),
        None => lease(typed).map(Extension::FromNow),
    }
}

/// Parses the duration of an acquisition.
pub(crate) fn lease(typed: &str) -> Result<Duration, InvalidValue> {
    let length = length(typed)?;
    if length > maintenance_lease::LONGEST_DURATION {
        return Err(InvalidValue::LongLock);
    }
    maintenance_lease::check_duration(length)
        .map(|_| length)
        .map_err(|_| InvalidValue::NotALockDuration)
}

/// Parses the lease duration that `with` renews with.
pub(crate) fn renewal(typed: &str) -> Result<Duration, InvalidValue> {
    match length(typed) {
        Ok(length) if length > maintenance_lease::LONGEST_DURATION => Err(InvalidValue::LongLease),
        _ => lease(typed),
    }
}

/// The shortest lease duration of at least `seconds` that is easy to type: whole minutes from 10 minutes on.
pub(crate) fn shortest_lease(seconds: u32) -> Duration {
    const MINUTE: u64 = 60;
    let seconds = match u64::from(seconds) {
        seconds if seconds < 10 * MINUTE => seconds,
        seconds => seconds.next_multiple_of(MINUTE),
    };
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_unit(typed: &str) -> InvalidValue {
        let typed = typed.to_owned();
        InvalidValue::NoUnit { typed }
    }

    #[test]
    fn lengths_are_read_as_people_type_them() {
        assert_eq!(lease("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(lease("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(lease("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(length("3d"), Ok(Duration::from_secs(3 * 86_400)));
    }

    #[test]
    fn the_shortest_lease_is_easy_to_type() {
        let seconds = |seconds| shortest_lease(seconds).as_secs();
        assert_eq!(seconds(599), 599);
        assert_eq!(seconds(600), 600);
        assert_eq!(seconds(601), 660);
    }

    #[test]
    fn a_renewal_may_add_time() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        assert_eq!(extension("20m"), Ok(Extension::FromNow(minutes(20))));
        assert_eq!(extension("+20m"), Ok(Extension::Added(minutes(20))));
        for typed in ["+", "++20m", "+-20m", "+61m", "+0"] {
            assert!(extension(typed).is_err(), "{typed:?}");
        }
        assert!(lease("+20m").is_err());
    }

    #[test]
    fn durations_beyond_the_calendar_are_refused() {
        let refused = Err(InvalidValue::BeyondClocks);
        for typed in ["3651d", "200000years", "18446744073709551615s"] {
            assert_eq!(length(typed), refused, "{typed:?}");
        }
        assert_eq!(length("3650d"), Ok(LONGEST));
    }

    #[test]
    fn impossible_durations_are_refused_with_the_reason() {
        for (typed, why) in [
            ("", InvalidValue::NotADuration),
            ("0s", InvalidValue::NotALockDuration),
            ("30", no_unit("30")),
            ("0", InvalidValue::NotALockDuration),
            ("0.5s", InvalidValue::NotALockDuration),
            ("500ms", InvalidValue::NotALockDuration),
            ("30M", InvalidValue::NotADuration),
            ("-5m", InvalidValue::NotADuration),
            ("+5m", InvalidValue::NotADuration),
            ("61m", InvalidValue::LongLock),
            ("soon", InvalidValue::NotADuration),
        ] {
            assert_eq!(lease(typed), Err(why), "{typed:?}");
        }
    }
}
