//! What is stuck around nodes, in a few words each.

use maintenance_lease::protocol::Now;
use pod_safety::node_health::Health;
use pod_safety::stuck::{Orphan, Stuck, StuckPod, StuckVolume};
use pod_safety::why::{Reason, State, StuckCode};
use pod_safety::words::{age, few};

use super::fencing::count;
use super::time::remaining;
use crate::text::escape;

/// The state of a pod and why it is stuck.
pub(crate) fn pod(pod: &StuckPod, now: Now) -> String {
    let found = &pod.found;
    let state = match found.state {
        State::Ending { .. } => Some("Terminating".to_owned()),
        State::Terminating { since } => {
            Some(format!("Terminating, {} overdue", age(now.latest - since)))
        }
        State::Pending => Some("Pending".to_owned()),
        _ => None,
    };
    let reasons = found.reasons.iter().map(|reason| brief(reason, now));
    let held = found.waiting_owner.as_ref();
    let held = held.map(|_| "cannot be replaced yet".to_owned());
    let parts: Vec<String> = state.into_iter().chain(reasons).chain(held).collect();
    parts.join(", ")
}

/// A reason in a few words. `why` has the whole sentence.
fn brief(reason: &Reason, now: Now) -> String {
    match reason {
        Reason::Grace { until, .. } => {
            format!("{} of grace left", remaining(*until - now.earliest))
        }
        Reason::Node {
            health: Health::Gone,
            ..
        } => format!("{}, deleted soon", StuckCode::from(reason)),
        Reason::Evicted { at } if *at <= now.earliest => {
            format!("eviction due {} ago", age(now.earliest - *at))
        }
        Reason::Evicted { at } => format!("eviction in {}", age(*at - now.earliest)),
        Reason::NeverEvicted => "never evicted".to_owned(),
        Reason::Unevicted => "not being evicted yet".to_owned(),
        Reason::Containers { names, .. } => {
            let s = if names.len() == 1 { "" } else { "s" };
            let names = escape(&few(names));
            format!("container{s} {names} cannot be stopped")
        }
        Reason::Stopping { started: true, .. } => "its containers have stopped".to_owned(),
        Reason::Stopping { started: false, .. } => "its containers were never started".to_owned(),
        Reason::Unmount { .. } => "its volumes are still mounted".to_owned(),
        Reason::Unconfirmed { .. } => "its end is not confirmed".to_owned(),
        Reason::Finalizer(finalizer) => format!("held by finalizer {}", escape(&finalizer.name)),
        Reason::Unschedulable { message } => {
            format!("unschedulable: {}", escape(message.trim_end_matches('.')))
        }
        Reason::NoScheduler { .. } => "not scheduled yet".to_owned(),
        Reason::VolumeAffinity { volume, nodes, .. } => {
            let nodes: Vec<String> = nodes.iter().map(|(node, _)| node.clone()).collect();
            match &nodes[..] {
                [] => format!("volume {} fits no node", escape(volume)),
                nodes => format!("volume {} is only on {}", escape(volume), few(nodes)),
            }
        }
        Reason::MultiAttach { volume, node, .. } => {
            format!("volume {} is attached to {node}", escape(volume))
        }
        Reason::AttachFailed { volume, .. } => {
            format!("volume {} cannot be attached", escape(volume))
        }
        Reason::ClaimMissing { claim } => format!("pvc/{} does not exist", escape(claim)),
        Reason::ClaimUnbound { claim } => format!("pvc/{} has no volume", escape(claim)),
        Reason::ClaimEnding { claim } => format!("pvc/{} is being deleted", escape(claim)),
        Reason::Container { name, reason, .. } => {
            format!("container {}: {}", escape(name), escape(reason))
        }
        Reason::Event { reason, .. } => format!("last warning {}", escape(reason)),
        _ => StuckCode::from(reason).to_string(),
    }
}

/// Why nobody needs a volume's attachment.
pub(crate) fn orphan(volume: &StuckVolume) -> String {
    let why = match volume.orphan {
        Orphan::NodeGone => "Attached to a node that is gone",
        Orphan::Detaching => "Waiting to be detached",
        Orphan::Unused => "Still attached, but no pod there uses it",
    };
    match &volume.attachment.detach_error {
        Some(error) => format!("{why}: {}", escape(error.trim())),
        None => why.to_owned(),
    }
}

/// Whether a pod on an unhealthy node was never started there, and nothing evicts it.
fn only_waits(pod: &StuckPod) -> bool {
    pod.found.state == State::Pending && pod.found.reasons.contains(&Reason::Unevicted)
}

/// The totals, such as `1 unhealthy node, 3 stuck pods, 1 stuck volume`. `node` is the only node that was
/// read.
pub(crate) fn summary(stuck: &Stuck, node: Option<&str>) -> String {
    let mut parts = Vec::new();
    let pending = stuck.pods.iter().filter(|pod| only_waits(pod)).count();
    for (number, word) in [
        (stuck.pods.len() - pending, "stuck pod"),
        (pending, "pending pod"),
        (stuck.waiting.len(), "pending replacement"),
        (stuck.volumes.len(), "stuck volume"),
    ] {
        parts.extend((number > 0).then(|| count(number, word)));
    }
    let ill = stuck.nodes.len();
    let nodes = match (node, stuck.nodes.keys().next()) {
        (Some(node), None) => format!("node/{node} is healthy"),
        (None, None) => "all nodes are healthy".to_owned(),
        (_, Some(node)) if parts.is_empty() && ill == 1 => format!("node/{node}"),
        _ => count(ill, "unhealthy node"),
    };
    match (&parts[..], node) {
        ([], Some(_)) if ill == 0 => format!("{nodes}: no pods are stuck there"),
        ([], None) if ill == 0 => format!("{nodes}: no pods are stuck"),
        ([], _) => format!("no pods are stuck on {nodes}"),
        (parts, _) => format!("{nodes}, {}", parts.join(", ")),
    }
}
