use chrono::{DateTime, Utc};
use serde_json::Value;

use super::column::{AGE, Column, NAME, age_of};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Status",
        "Whether the namespace is in use or on its way out.",
    ),
    AGE,
];

pub(super) fn cells(namespace: &Value, now: DateTime<Utc>) -> Vec<Value> {
    vec![
        object::name(namespace).into(),
        object::text(namespace, "/status/phase").into(),
        age_of(namespace, now),
    ]
}
