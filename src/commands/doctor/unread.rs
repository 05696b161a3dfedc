//! What could not be read.

use maintenance_lease::ApiError;

use crate::error::Failure;
use crate::words::doctor::finding::{Finding, Source};

/// `what` could not be read, because of `failure`.
pub(super) fn unread(what: Source, failure: &Failure) -> Finding {
    Finding::Unread {
        what,
        is_forbidden: failure.api().is_some_and(ApiError::is_forbidden),
        error: failure.to_string(),
    }
}
