//! Several nodes to fence: their order and why, and where the command stopped.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Now;
use pod_safety::fencing::{UnreachableNode, WaitingPod};

use super::remains::count;
use crate::error::Failure;
use crate::text::escape;
use crate::words::node_state;

/// Why a node was not fenced after another one failed.
pub(crate) const NOT_REACHED: &str = "not fenced: the command stopped at another node";

/// The unreachable `nodes`, of which at most `max` are fenced. A later one is fenced if one of the first `max` is skipped.
pub(crate) fn order(nodes: &[UnreachableNode], max: usize) -> Vec<String> {
    if nodes.is_empty() {
        return vec!["no unreachable nodes to fence".to_owned()];
    }
    let heading = format!(
        "{}, the most urgent first:",
        count(nodes.len(), "unreachable node")
    );
    let lines = nodes.iter().enumerate().map(|(index, node)| {
        let skipped = if index < max { "" } else { " (beyond --max)" };
        format!(
            "  {}. node/{}: {}{skipped}",
            index + 1,
            node.name,
            most_urgent(node)
        )
    });
    [heading].into_iter().chain(lines).collect()
}

/// The pod of `node` that is needed most, and why.
pub(crate) fn most_urgent(node: &UnreachableNode) -> String {
    let Some((pod, others)) = node.pods.split_first() else {
        return "no pods to move".to_owned();
    };
    let more = match others.len() {
        0 => String::new(),
        more => format!("; and {}", count(more, "more pod")),
    };
    escape(&format!(
        "{} (priority {}, {}){more}",
        pod.name,
        pod.priority,
        available(pod)
    ))
}

/// What is left of the workload of `pod`.
fn available(pod: &WaitingPod) -> String {
    let controller = &pod.controller;
    match pod.others_ready {
        None => controller.clone(),
        Some(0) => format!("no other ready pod of {controller}"),
        Some(others) => format!("{} of {controller}", count(others, "other ready pod")),
    }
}

/// `node` is unreachable, but somebody else has locked it.
pub(crate) fn skipped(node: &str, lease: Option<&NodeLease>, now: Now) -> String {
    format!("skipped: {}", node_state::line(node, lease, now))
}

/// A node is skipped because there is nothing more to do for it.
pub(crate) fn skipped_because(failure: &Failure) -> String {
    format!("skipped: {}", escape(&failure.to_string()))
}

/// The command stopped at a node, after it had fenced others.
pub(crate) fn stopped(at: &str, fenced: &[&str], not_fenced: &[&str]) -> String {
    let nodes = |nodes: &[&str]| match nodes {
        [] => "none".to_owned(),
        nodes => {
            let nodes: Vec<String> = nodes.iter().map(|node| format!("node/{node}")).collect();
            nodes.join(", ")
        }
    };
    format!(
        "stopped at node/{at}; fenced before: {}; not fenced: {}",
        nodes(fenced),
        nodes(not_fenced)
    )
}
