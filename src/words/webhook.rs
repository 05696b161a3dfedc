//! Messages to a webhook, and why it did not confirm them, in words.

use connect::WebhookError;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Span;
use pod_safety::words::age;

use super::holder_name::person;
use super::lock::why;
use crate::error::MessageError;
use crate::text::escape;

/// How kubectl begins an error of a connection.
const NO_SERVER: &str = "Unable to connect to the server: ";

/// The variable is no URL that can be used. The URL itself may hold a secret.
pub(crate) fn unusable(variable: &str, error: &WebhookError) -> String {
    let cause = match error {
        WebhookError::NotAnHttpUrl => "it is not an http or https URL".to_owned(),
        WebhookError::Connect(error) => escape(&error.to_string()),
    };
    format!("could not use the webhook in {variable}: {cause}")
}

/// The message may have arrived.
pub(crate) fn not_confirmed(host: &str, error: &MessageError) -> String {
    let cause = match error {
        MessageError::Connect(error) => {
            let error = error.to_string();
            // To operators, that is the API server.
            escape(error.strip_prefix(NO_SERVER).unwrap_or(&error))
        }
        MessageError::Status(status) => {
            format!("it answered with HTTP status {}", status.as_u16())
        }
        MessageError::TimedOut(limit) => format!("it did not answer in {}s", limit.as_secs()),
    };
    let host = escape(host);
    format!("the webhook at {host} did not confirm a message: {cause}")
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
