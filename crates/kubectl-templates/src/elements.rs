//! An index or a slice of a list, with kubectl's bounds.

use serde_json::Value;

/// Which elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elements {
    One(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: Option<i64>,
    },
}

impl Elements {
    /// Parses what is between brackets: `0`, `-1`, `0:2`, `::2`; `None` if it is something else.
    pub(crate) fn parse(typed: &str) -> Option<Self> {
        let numbers: Option<Vec<Option<i64>>> = typed
            .split(':')
            .map(|number| match number.trim() {
                "" => Some(None),
                number => number.parse().ok().map(Some),
            })
            .collect();
        match numbers?[..] {
            [Some(index)] => Some(Self::One(index)),
            [start, end] => Some(Self::Slice {
                start,
                end,
                step: None,
            }),
            [start, end, step] => Some(Self::Slice { start, end, step }),
            _ => None,
        }
    }

    /// These elements of `value`.
    ///
    /// # Errors
    /// If it has no such elements, in kubectl's words.
    pub(crate) fn of(self, value: &Value) -> Result<Vec<&Value>, String> {
        let list = match value {
            Value::Array(list) => list,
            Value::Null => return Ok(Vec::new()),
            Value::Object(_) => return Err("map is not array or slice".to_owned()),
            Value::String(_) => return Err("string is not array or slice".to_owned()),
            Value::Number(_) => return Err("number is not array or slice".to_owned()),
            Value::Bool(_) => return Err("bool is not array or slice".to_owned()),
        };
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        let from_start = |index: i64| match index < 0 {
            true => index.saturating_add(length),
            false => index,
        };
        let (start, end, step) = match self {
            Self::One(index) => {
                let index = from_start(index);
                (index, index.saturating_add(1), 1)
            }
            Self::Slice { start, end, step } => (
                start.map_or(0, from_start),
                end.map_or(length, from_start),
                step.unwrap_or(1),
            ),
        };
        if start == end {
            return Ok(Vec::new());
        }
        let outside = |index| format!("array index out of bounds: index {index}, length {length}");
        let first = usize::try_from(start).ok().filter(|_| start < length);
        let first = first.ok_or_else(|| outside(start))?;
        let last = usize::try_from(end).ok().filter(|_| end <= length);
        let last = last.ok_or_else(|| outside(end.saturating_sub(1)))?;
        if first > last {
            return Err(format!(
                "starting index {start} is greater than ending index {end}"
            ));
        }
        match usize::try_from(step) {
            Ok(step) if step > 0 => Ok(list[first..last].iter().step_by(step).collect()),
            _ => Err("step must be > 0".to_owned()),
        }
    }
}
