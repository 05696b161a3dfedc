//! Messages to a webhook, and why they could not be sent, in words.

use connect::WebhookError;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Span;
use pod_safety::words::age;

use super::holder_name::person;
use super::lock::why;
use crate::error::UnsentMessage;
use crate::text::escape;

/// The variable is no URL that can be used. The URL itself may hold a secret.
pub(crate) fn unusable(variable: &str, error: &WebhookError) -> String {
    let cause = match error {
        WebhookError::NotAnHttpUrl => "it is not an http or https URL".to_owned(),
        WebhookError::Connect(error) => escape(&error.to_string()),
    };
    format!("could not use the webhook in {variable}: {cause}")
}

/// A message was not taken.
pub(crate) fn not_sent(host: &str, error: &UnsentMessage) -> String {
    let cause = match error {
        UnsentMessage::Connect(error) => escape(&error.to_string()),
        UnsentMessage::Status(status) => {
            format!("it answered with HTTP status {}", status.as_u16())
        }
        UnsentMessage::TimedOut(limit) => format!("it did not answer in {}s", limit.as_secs()),
    };
    let host = escape(host);
    format!("could not send a message to the webhook at {host}: {cause}")
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
