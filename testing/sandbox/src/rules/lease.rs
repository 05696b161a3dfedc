//! Leases: the types of their fields, times with exactly six decimals, and positive durations.

use serde_json::{Map, Value, json};

use super::time;
use crate::cause::Cause;

/// Reads `spec`. Drops `strategy` and `preferredHolder`, like a server without coordinated leader
/// election.
pub(super) fn read(object: &mut Value) -> Result<(), String> {
    let fields = object.as_object_mut().into_iter();
    let spec = fields.map(|fields| fields.entry("spec").or_insert_with(|| json!({})));
    let spec = match spec.last() {
        Some(Value::Object(spec)) => spec,
        Some(other) => return Err(mismatch(other, "Lease.spec", "v1.LeaseSpec")),
        None => return Ok(()),
    };
    let mut read = Map::new();
    for (key, value) in std::mem::take(spec) {
        let value = match key.as_str() {
            "holderIdentity" if value.is_string() => value,
            "holderIdentity" => {
                return Err(mismatch(&value, "LeaseSpec.spec.holderIdentity", "string"));
            }
            "leaseDurationSeconds" | "leaseTransitions" => {
                let fits = value.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
                if !fits {
                    let field = format!("LeaseSpec.spec.{key}");
                    return Err(mismatch(&value, &field, "int32"));
                }
                value
            }
            "acquireTime" | "renewTime" => match value.as_str() {
                Some(text) => time::read_micros(text)?.into(),
                None => {
                    let field = format!("LeaseSpec.spec.{key}");
                    return Err(mismatch(&value, &field, "string"));
                }
            },
            _ => continue,
        };
        read.insert(key, value);
    }
    *spec = read;
    Ok(())
}

fn mismatch(value: &Value, field: &str, expected: &str) -> String {
    format!(
        "json: cannot unmarshal {} into Go struct field {field} of type {expected}",
        found(value, expected)
    )
}

/// The type of the value in an error message. If an int32 was expected, a number is shown with its
/// value.
fn found(value: &Value, expected: &str) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if expected == "int32" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

pub(super) fn violations(object: &Value) -> Vec<Cause> {
    let number = |key: &str| {
        object
            .pointer(&format!("/spec/{key}"))
            .and_then(Value::as_i64)
    };
    let mut causes = Vec::new();
    if let Some(seconds) = number("leaseDurationSeconds").filter(|&seconds| seconds <= 0) {
        causes.push(Cause::invalid(
            "spec.leaseDurationSeconds",
            &seconds.to_string(),
            "must be greater than 0",
        ));
    }
    if let Some(count) = number("leaseTransitions").filter(|&count| count < 0) {
        causes.push(Cause::invalid(
            "spec.leaseTransitions",
            &count.to_string(),
            "must be greater than or equal to 0",
        ));
    }
    causes
}
