//! What a fencing costs.

use pod_safety::fencing::Cost;

use super::remains::{count, list};

/// The question for the reason, if a risk was accepted on a terminal.
pub(crate) const REASON: &str = "Reason, recorded on the node";

/// What the fencing of `node` costs, one line per kind of loss.
pub(crate) fn cost(node: &str, cost: &Cost) -> Vec<String> {
    let lines = [
        (&cost.no_owner, "will be deleted and not recreated"),
        (&cost.scratch, "will lose emptyDir data"),
        (
            &cost.twice,
            "may run twice, because the node is only cut off",
        ),
        (
            &cost.staying,
            "will not be deleted (static, or tolerating the taint)",
        ),
    ];
    let lines = { lines.into_iter() }.filter(|(pods, _)| !pods.is_empty());
    let lines = lines.map(|(pods, what)| {
        format!(
            "node/{node}: {} {what}: {}",
            count(pods.len(), "pod"),
            list(pods)
        )
    });
    lines.collect()
}
