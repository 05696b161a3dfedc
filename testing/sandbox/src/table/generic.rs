use chrono::{DateTime, Utc};
use serde_json::Value;

use super::column::{AGE, Column, NAME, age_of};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[NAME, AGE];

pub(super) fn cells(object: &Value, now: DateTime<Utc>) -> Vec<Value> {
    vec![object::name(object).into(), age_of(object, now)]
}
