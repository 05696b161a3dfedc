//! Messages to a webhook, and why they could not be sent, in words.

use std::time::Duration;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Span;
use pod_safety::words::age;

use super::holder_name::person;
use super::lock::why;
use crate::text::escape;

/// The variable is no URL that can be used. The URL itself may hold a secret.
pub(crate) fn unusable(variable: &str, cause: &str) -> String {
    format!("could not use the webhook in {variable}: {}", escape(cause))
}

/// A message was not taken.
pub(crate) fn not_sent(host: &str, cause: &str) -> String {
    format!(
        "could not send a message to the webhook at {}: {}",
        escape(host),
        escape(cause)
    )
}

/// The status of an answer that is no success.
pub(crate) fn status(code: u16) -> String {
    format!("it answered with HTTP status {code}")
}

/// There was no answer in time.
pub(crate) fn too_slow(limit: Duration) -> String {
    format!("it did not answer in {}s", limit.as_secs())
}

/// A hold is past its expected end, by `ago`.
pub(crate) fn overdue_hold(lease: &NodeLease, ago: Span) -> String {
    format!(
        "the maintenance hold of {} is overdue by {}{}",
        person(lease),
        age(ago),
        why(lease)
    )
}
