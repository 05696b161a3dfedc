//! What is asked on a terminal before a forced deletion.

use crate::words::fencing::count;

/// The question for the reason.
pub(crate) const REASON: &str = "Reason, recorded in the Event";

/// Whether to accept the risk `id`, after what was found.
pub(crate) fn accept(id: &str) -> String {
    format!("Accept the risk `{id}`?")
}

/// Whether to delete this many pods without risks.
pub(crate) fn delete_pods(pods: usize) -> String {
    format!("No risks found. Force-delete {}?", count(pods, "pod"))
}

/// Before `node` is deleted; its name is the answer.
pub(crate) fn type_name(node: &str) -> String {
    format!("To force-delete node/{node} with its pods, type its name")
}
