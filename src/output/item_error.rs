//! Why a command failed for an item of a list.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::data::Time;
use crate::error::Failure;
use crate::output::error_code::ErrorCode;

/// Why the command failed for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Error")]
pub(crate) struct ItemError {
    /// The reason, for scripts.
    code: ErrorCode,
    /// The words of the message on stderr. They may change.
    message: String,
    /// What to do about it, in words that may change.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The holder of the lock that is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// When that lock was acquired.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
    /// When it ends or ended; absent for a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    /// Its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Its ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
}

impl ItemError {
    /// The failure with its message and hint.
    pub(crate) fn new(failure: &Failure, message: String, hint: Option<String>, now: Now) -> Self {
        let cause = failure.lease();
        let cause = cause.filter(|lease| lease.state(now) != State::Free);
        Self {
            hint,
            holder: cause.and_then(NodeLease::holder).map(ToOwned::to_owned),
            since: cause.and_then(NodeLease::acquired).map(Time::from),
            until: cause.and_then(|lease| Time::of(lease.state(now).end()?)),
            reason: cause.and_then(NodeLease::reason).map(ToOwned::to_owned),
            ticket: cause.and_then(NodeLease::ticket).map(ToOwned::to_owned),
            ..Self::of(ErrorCode::of(failure), message)
        }
    }

    /// A failure of which nothing else is known.
    pub(crate) fn of(code: ErrorCode, message: String) -> Self {
        Self {
            code,
            message,
            hint: None,
            holder: None,
            since: None,
            until: None,
            reason: None,
            ticket: None,
        }
    }
}
