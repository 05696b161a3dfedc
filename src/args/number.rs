//! Numbers as typed.

use std::str::FromStr;

use crate::error::InvalidValue;

/// A parser of whole numbers from `least` to `most`.
pub(crate) fn number<N>(
    least: u16,
    most: u16,
) -> impl Fn(&str) -> Result<N, InvalidValue> + Clone + Send + Sync
where
    N: FromStr + PartialOrd + TryFrom<u16> + Send + Sync,
{
    move |typed| {
        let of = |bound: u16| N::try_from(bound).ok();
        let number: Option<N> = typed.parse().ok();
        let number = number.filter(|number| {
            of(least).is_none_or(|least| *number >= least)
                && of(most).is_none_or(|most| *number <= most)
        });
        number.ok_or(InvalidValue::NotANumber { least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        let code = number::<u8>(1, 255);
        assert_eq!(code("255"), Ok(255));
        assert_eq!(number::<u16>(1, 512)("1"), Ok(1));
        for typed in ["0", "256", "-1", "", "x", "1.5"] {
            let refused = Err(InvalidValue::NotANumber {
                least: 1,
                most: 255,
            });
            assert_eq!(code(typed), refused, "{typed:?}");
        }
    }
}
