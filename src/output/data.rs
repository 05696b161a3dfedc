//! What JSON and YAML of all kinds have in common.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now, Span, State};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::words::time::rfc3339;

/// The version of the shapes. Fields may be added to it; none is removed or changes its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum ApiVersion {
    #[default]
    #[serde(rename = "kubectl-maint.dev/v2")]
    V2,
}

/// The values of `kind`: a type for each.
pub(crate) mod kind {
    use schemars::JsonSchema;
    use serde::Serialize;

    macro_rules! kinds {
        ($($kind:ident),*) => {$(
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
            #[schemars(inline)]
            pub(crate) enum $kind {
                #[default]
                $kind,
            }
        )*};
    }

    kinds!(
        NodeMaintenance,
        NodeMaintenanceList,
        Fencing,
        FencingList,
        StuckPod,
        PendingReplacement,
        StuckVolume,
        StuckList,
        LeaseSummary,
        LeaseSummaryList,
        ForceDeletion,
        ForceDeletionList,
        Diagnosis,
        DiagnosisList,
        Checkup,
        CheckupList,
        LockRecord,
        LockRecordList
    );
}

/// A list, which every command prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{K}")]
pub(crate) struct List<K, T> {
    api_version: ApiVersion,
    kind: K,
    items: Vec<T>,
    /// Whether exactly one node was named.
    #[serde(skip)]
    single: bool,
}

impl<K: Default, T> List<K, T> {
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self {
            api_version: ApiVersion::V2,
            kind: K::default(),
            items,
            single: false,
        }
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Prints a lock id without its node, if exactly one node was named.
    pub(crate) fn single(self, single: bool) -> Self {
        Self { single, ..self }
    }
}

/// Data that can be printed in every format for programs.
pub(crate) trait Data: Serialize {
    /// The lines of `-o name`.
    fn names(&self) -> Vec<String>;

    /// The lines of `-o lock-id`.
    fn lock_ids(&self) -> Vec<String>;
}

/// An item of a list.
pub(crate) trait ListEntry: Serialize {
    /// The name in kubectl's form; `None` if the command failed for it.
    fn name(&self) -> Option<String>;

    /// The node and its lock id, if it has one and the command did not fail for it.
    fn lock_id(&self) -> Option<(&str, &str)> {
        None
    }
}

impl<K: Serialize, T: ListEntry> Data for List<K, T> {
    fn names(&self) -> Vec<String> {
        self.items.iter().filter_map(ListEntry::name).collect()
    }

    fn lock_ids(&self) -> Vec<String> {
        let ids = self.items.iter().filter_map(ListEntry::lock_id);
        ids.map(|(node, id)| match self.single {
            true => id.to_owned(),
            false => format!("{node} {id}"),
        })
        .collect()
    }
}

/// A time, as `jq`'s `fromdateiso8601` reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Time(String);

impl Time {
    /// `None` if it can't be written as a date.
    pub(crate) fn of(instant: Instant) -> Option<Self> {
        instant.to_chrono().map(Self::from)
    }

    /// A time that somebody wrote as RFC 3339; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let time = DateTime::parse_from_rfc3339(text).ok()?;
        Some(time.with_timezone(&Utc).into())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<DateTime<Utc>> for Time {
    fn from(time: DateTime<Utc>) -> Self {
        Self(rfc3339(time))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "RFC 3339 in UTC, with whole seconds.",
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        })
    }
}

/// When a lock ends, and how far away that is.
#[derive(Debug, Default)]
pub(crate) struct Term {
    pub(crate) until: Option<Time>,
    pub(crate) seconds_left: Option<u64>,
    pub(crate) seconds_expired: Option<u64>,
}

impl Term {
    pub(crate) fn of(state: State, now: Now) -> Self {
        let Some(until) = state.end().and_then(Time::of) else {
            return Self::default();
        };
        Self {
            until: Some(until),
            seconds_left: state.left(now).map(seconds),
            seconds_expired: state.expired_for(now).map(seconds),
        }
    }
}

/// Whole seconds, and 0 if negative: a lock that has ended, but that others can't acquire yet, has none left.
fn seconds(span: Span) -> u64 {
    u64::try_from(span.as_micros() / 1_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_whole_seconds_in_utc() {
        let text = |time: Option<Time>| time.map(|Time(text)| text);
        let written = |text: &str| Some(text.to_owned());
        let at = Instant::from_micros(1_772_366_400_999_999);
        assert_eq!(text(Time::of(at)), written("2026-03-01T12:00:00Z"));
        assert_eq!(
            text(Time::parse("2026-03-01T13:00:00.25+01:00")),
            written("2026-03-01T12:00:00Z")
        );
        assert_eq!(text(Time::parse("yesterday")), None);
        assert_eq!(text(Time::of(Instant::UNREADABLE)), None);
    }

    #[test]
    fn seconds_count_to_the_end_of_a_lock_or_from_it() {
        let noon = Instant::from_micros(1_772_366_400_000_000);
        let now = Now::at(noon);
        let of = |state| {
            let term = Term::of(state, now);
            (term.seconds_left, term.seconds_expired)
        };
        let later = noon + Span::micros(90_999_999);
        assert_eq!(of(State::Held { until: later }), (Some(90), None));
        let before = noon - Span::micros(2_500_000);
        assert_eq!(of(State::Held { until: before }), (Some(0), None));
        let since = Some(before);
        assert_eq!(of(State::Expired { since }), (None, Some(2)));
        assert_eq!(of(State::Expired { since: None }), (None, None));
        let until = Instant::UNREADABLE;
        assert_eq!(of(State::Held { until }), (None, None));
        assert_eq!(of(State::AdminHold), (None, None));
        assert_eq!(of(State::Free), (None, None));
    }
}
