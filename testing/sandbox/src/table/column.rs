//! The columns of a table, and those that several types share.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::age::since;
use crate::object;

/// One column of a table.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Above 0 for `-o wide` only.
    pub(super) priority: u8,
}

impl Column {
    pub(super) const fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            priority: 0,
        }
    }

    pub(super) const fn wide(name: &'static str, description: &'static str) -> Self {
        Self {
            priority: 1,
            ..Self::new(name, description)
        }
    }
}

pub(super) const NAME: Column = Column::new("Name", "The name of the object.");
pub(super) const AGE: Column = Column::new("Age", "How long ago the object was created.");

/// The cell of the `Age` column.
pub(super) fn age_of(object: &Value, now: DateTime<Utc>) -> Value {
    since(object::text(object, "/metadata/creationTimestamp"), now).into()
}
