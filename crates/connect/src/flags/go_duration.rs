//! Durations in Go's notation: `1h30m`, `1.5s`, `300ms`.
//!
//! kubectl's `--request-timeout` accepts these. humantime does not parse fractions.

use std::time::Duration;

/// Go's longest duration, about 292 years.
pub(crate) const LONGEST: Duration = Duration::from_nanos(i64::MAX as u64);

/// Parses a duration in Go's notation. Returns `None` for an invalid or negative duration, and for one that
/// is longer than [`LONGEST`].
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_ends = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_ends);
        let unit_ends = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        total = total.checked_add(quantity(number, unit)?)?;
        rest = tail;
    }
    (total <= LONGEST).then_some(total)
}

fn quantity(number: &str, unit: &str) -> Option<Duration> {
    let unit = match unit {
        "ns" => Duration::from_nanos(1),
        "us" | "µs" | "μs" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(whole) = number.parse::<u32>() {
        return unit.checked_mul(whole);
    }
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit.as_secs_f64()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_go_writes() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("10s", 10_000),
            ("+10s", 10_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("300ms", 300),
            ("1m0.5s", 60_500),
            ("2000µs", 2),
            ("2562047h", 2_562_047 * 3_600_000),
        ] {
            assert_eq!(
                parse(text),
                Some(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_go_refuses_and_negative_times() {
        for text in [
            "",
            "+",
            "10",
            "s",
            ".s",
            "1.2.3s",
            "1d",
            "1 s",
            "-1s",
            "1s2",
            "99999999999999999999h",
            "2562048h",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
