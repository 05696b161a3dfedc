//! The outcome of a requested deletion, in words.

use pod_safety::constants::POD_GC;
use pod_safety::outcome::Outcome;
use pod_safety::report::DeletionTarget;
use pod_safety::words::few;

use crate::text::escape;
use crate::words::fencing::count;
use crate::words::time::length;

/// The words that follow the name of `target`.
pub(crate) fn outcome(target: &DeletionTarget, outcome: &Outcome) -> String {
    let done = "force-deleted";
    let is_node = target.kind == "node";
    match outcome {
        Outcome::WasGone => "was already gone".to_owned(),
        Outcome::Deleted if is_node => {
            format!("{done}; its lock and its pods are deleted with it")
        }
        Outcome::Deleted | Outcome::WouldBeDeleted => done.to_owned(),
        Outcome::PodsLeft {
            pods,
            registered_again,
        } => {
            let left = format!(
                "{done}; {} left: {}",
                count(pods.len(), "pod"),
                escape(&few(pods))
            );
            match registered_again {
                true => format!(
                    "{left}; the node has registered again, so its pods stay until its kubelet ends them"
                ),
                false => format!("{left}; usually deleted within {}", length(POD_GC)),
            }
        }
        Outcome::Unseen { error } if is_node => {
            format!("{done}; could not check its pods: {}", escape(error))
        }
        Outcome::Unseen { error } => {
            format!(
                "{done}; could not check whether it is gone: {}",
                escape(error)
            )
        }
        Outcome::Unwatched if is_node => format!("{done}; interrupted before its pods were gone"),
        Outcome::Unwatched => format!("{done}; interrupted before it was gone"),
        Outcome::Unknown { error } => {
            format!(
                "unknown whether it was {done}: {}",
                escape(no_answer(error.as_ref()))
            )
        }
        Outcome::Marked { error } => {
            format!("was marked Failed, but not deleted: {}", escape(error))
        }
        // It may be gone a moment later.
        Outcome::Held { finalizers } if finalizers.is_empty() => {
            "is marked for deletion, but still exists".to_owned()
        }
        Outcome::Held { finalizers } if is_node => format!(
            "is marked for deletion, but held by {}; its pods stay until it is gone",
            held_by(finalizers)
        ),
        Outcome::Held { finalizers } => format!(
            "is marked for deletion, but held by {}; its name is free when its controller removes the finalizer",
            held_by(finalizers)
        ),
    }
}

/// Why a request got no answer; `None`: it was not awaited.
pub(crate) fn no_answer(error: Option<&String>) -> &str {
    error.map_or("interrupted", String::as_str)
}

fn held_by(finalizers: &[String]) -> String {
    format!("finalizer {}", escape(&few(finalizers)))
}
