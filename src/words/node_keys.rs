//! What became of the keys that a hold sets on its Node, in words.

use maintenance_lease::Error;
use other_tools::{Conflict, tools};

use crate::error::Failure;
use crate::text::{escape, shown};

/// Something to say after the outcome.
#[derive(Debug)]
pub(crate) struct Note {
    /// The operator should look at it.
    pub(crate) is_warning: bool,
    pub(crate) text: String,
}

impl Note {
    fn warning(text: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            text: text.into(),
        }
    }

    fn remark(text: impl Into<String>) -> Self {
        Self {
            is_warning: false,
            text: text.into(),
        }
    }
}

pub(crate) fn unread() -> Note {
    Note::remark("no opt-outs were set: no permission to read nodes")
}

pub(crate) fn node_gone() -> Note {
    Note::warning("no opt-outs were set: the Node was deleted")
}

pub(crate) fn lock_ended() -> Note {
    Note::warning("no opt-outs were set: the hold has ended, or is being ended")
}

pub(crate) fn cluster_api() -> Note {
    Note::warning("NOT protected from Cluster API: no opt-out on a Node stops it")
}

/// A key that was left as it is.
pub(crate) fn conflict(conflict: &Conflict) -> Note {
    let manager = conflict.manager.as_deref().map(escape);
    let by = manager.map(|manager| format!(", set by {manager}"));
    Note::warning(format!(
        "the opt-out {} is not set: its value is {} already{}",
        conflict.key,
        shown(&conflict.value),
        by.unwrap_or_default()
    ))
}

/// Why no key was set.
pub(crate) fn not_set(failure: &Failure) -> Note {
    match is_missing_right(failure) {
        true => Note::remark("no opt-outs were set: no permission to patch nodes"),
        false => Note::warning(format!("no opt-outs were set: {failure}")),
    }
}

/// Why keys were not removed.
pub(crate) fn not_removed(failure: &Failure) -> Note {
    Note::warning(match is_missing_right(failure) {
        true => "its opt-outs are left: no permission to patch nodes".to_owned(),
        false => format!("opt-outs may be left on the Node: {failure}"),
    })
}

fn is_missing_right(failure: &Failure) -> bool {
    match failure {
        Failure::Lock(Error::Api(error)) => error.is_forbidden() && !error.is_by_policy(),
        Failure::Lock(Error::MissingRight { .. }) => true,
        _ => false,
    }
}

/// The names for `--opt-outs`.
pub(crate) fn known_tools() -> String {
    let all: Vec<&str> = ["auto", "none"].into_iter().chain(tools()).collect();
    all.join(", ")
}
