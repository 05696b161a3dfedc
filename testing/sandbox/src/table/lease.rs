use chrono::{DateTime, Utc};
use serde_json::Value;

use super::column::{AGE, Column, NAME, age_of};
use crate::object;

pub(super) const COLUMNS: &[Column] =
    &[NAME, Column::new("Holder", "Who holds the lease now."), AGE];

pub(super) fn cells(lease: &Value, now: DateTime<Utc>) -> Vec<Value> {
    vec![
        object::name(lease).into(),
        object::text(lease, "/spec/holderIdentity").into(),
        age_of(lease, now),
    ]
}
