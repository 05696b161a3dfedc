//! The causes for which an object is invalid, by field, in the words of the API server.

use std::fmt;

use serde_json::{Map, Value};

/// One invalid field, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Cause {
    /// `value` is the invalid value as Go prints it: text in quotes, numbers without.
    pub(crate) fn invalid(field: &str, value: &str, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
            field: field.to_owned(),
        }
    }

    pub(crate) fn required(field: &str, why: &str) -> Self {
        let message = if why.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {why}")
        };
        Self {
            reason: "FieldValueRequired",
            message,
            field: field.to_owned(),
        }
    }

    pub(crate) fn forbidden(field: &str, why: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {why}"),
            field: field.to_owned(),
        }
    }

    pub(crate) fn too_long(field: &str, bytes: usize) -> Self {
        Self {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {bytes} bytes"),
            field: field.to_owned(),
        }
    }

    /// A value that is not in the list of supported values.
    pub(crate) fn unsupported(field: &str, value: &str, supported: &str) -> Self {
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value}: supported values: {supported}"),
            field: field.to_owned(),
        }
    }

    /// The entry in `details.causes`.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("reason".into(), self.reason.into());
        json.insert("message".into(), self.message.clone().into());
        if !self.field.is_empty() {
            json.insert("field".into(), self.field.clone().into());
        }
        json.into()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
