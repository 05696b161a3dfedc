//! What locks have set on Nodes and left there, and what is missing.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;
use other_tools::{KeysOnNode, KeysRemoved};
use pod_safety::Known;
use pod_safety::cluster::Reader;

use super::leases::Leases;
use super::machines::WithMachine;
use crate::error::Failure;
use crate::run::session::Session;
use crate::words::doctor::finding::Finding;

/// The names of all Nodes, with what locks have set on them.
type Nodes = HashMap<String, Option<KeysOnNode>>;

/// Reads the Nodes, and which of them have a Machine.
///
/// # Errors
/// If they can't be listed.
pub(super) async fn read(reader: &Reader) -> Result<(Nodes, Vec<WithMachine>), Failure> {
    let mut machines = Vec::new();
    let with_keys = |node: Node| {
        let keys = KeysOnNode::of(&node);
        machines.extend(WithMachine::new(&node, keys.as_ref()));
        Some((node.metadata.name?, keys))
    };
    let nodes = reader.select_nodes(None, with_keys).await?;
    Ok((nodes.into_iter().collect(), machines))
}

/// The keys of locks that have ended or expired, those of holds that are missing, and the holds without a label that the
/// node policy would respect.
pub(super) async fn check(
    session: &Session<'_>,
    reader: &Reader,
    mut nodes: Nodes,
    leases: &Leases,
    is_policy_on: bool,
    fix: bool,
) -> Vec<Finding> {
    let left: Vec<KeysOnNode> = left_over(session, &nodes, leases);
    let mut found = match fix {
        _ if left.is_empty() => vec![labels(&nodes)],
        true => remove(session, left, &mut nodes).await,
        false => vec![Finding::LeftOver(
            left.into_iter().map(|keys| keys.node).collect(),
        )],
    };
    let missing = missing_opt_outs(session, &nodes, leases);
    found.extend((!missing.is_empty()).then_some(Finding::MissingOptOuts(missing)));
    if is_policy_on && reader.may("patch", "nodes", None).await == Known::Yes(true) {
        let unlabeled = unlabeled(&nodes, leases);
        found.extend((!unlabeled.is_empty()).then_some(Finding::Unlabeled(unlabeled)));
    }
    found
}

fn labels(nodes: &Nodes) -> Finding {
    let keys = nodes.values().flatten();
    Finding::Labels(keys.filter(|keys| keys.is_labeled).count())
}

/// The keys of locks that have ended or expired.
fn left_over(session: &Session<'_>, nodes: &Nodes, leases: &Leases) -> Vec<KeysOnNode> {
    let now = session.locks.server_time().now();
    let keys = nodes.values().flatten();
    let left = keys.filter(|keys| !keys.are_current(leases.get(&keys.node), now));
    let mut left: Vec<KeysOnNode> = left.cloned().collect();
    left.sort_unstable_by(|a, b| a.node.cmp(&b.node));
    left
}

/// Removes the keys that are `left`, from `nodes` too. If a holder renews an expired lock meanwhile, only its keys are
/// missing.
async fn remove(session: &Session<'_>, left: Vec<KeysOnNode>, nodes: &mut Nodes) -> Vec<Finding> {
    let (mut removed, mut stay, mut why) = (Vec::new(), Vec::new(), None);
    for keys in left {
        match session.remove_keys(&keys.node, None).await {
            Ok(KeysRemoved::Done(_)) => {
                nodes.insert(keys.node.clone(), None);
                removed.push(keys.node);
            }
            // No lock wrote this label.
            Ok(KeysRemoved::Nothing) if keys.is_labeled && keys.lock_id.is_none() => {
                stay.push(keys.node);
            }
            Ok(KeysRemoved::Nothing) => {
                nodes.insert(keys.node, None);
            }
            Ok(KeysRemoved::StillHeld) => {}
            Err(error) => {
                stay.push(keys.node);
                why = Some(error.to_string());
            }
        }
    }
    let mut found = Vec::new();
    if !removed.is_empty() {
        found.push(Finding::Removed(removed));
    }
    if !stay.is_empty() {
        found.push(Finding::NotRemoved { nodes: stay, why });
    }
    if found.is_empty() {
        found.push(labels(nodes));
    }
    found
}

/// The nodes on hold that lack opt-outs which the hold has set, and which.
fn missing_opt_outs(
    session: &Session<'_>,
    nodes: &Nodes,
    leases: &Leases,
) -> Vec<(String, Vec<String>)> {
    let now = session.locks.server_time().now();
    let on_hold = nodes.values().flatten().filter(|keys| {
        let lease = leases.get(&keys.node);
        lease.is_some_and(NodeLease::is_hold) && keys.are_current(lease, now)
    });
    let missing = on_hold.filter(|keys| !keys.missing.is_empty());
    let missing = missing.map(|keys| (keys.node.clone(), keys.missing.clone()));
    let mut missing: Vec<_> = missing.collect();
    missing.sort_unstable();
    missing
}

/// The nodes on hold whose Nodes lack the held label.
fn unlabeled(nodes: &Nodes, leases: &Leases) -> Vec<String> {
    let holds = leases.values().filter(|lease| lease.is_hold());
    let is_unlabeled = |lease: &&NodeLease| {
        let keys = nodes.get(lease.node());
        keys.is_some_and(|keys| keys.as_ref().is_none_or(|keys| !keys.is_labeled))
    };
    let unlabeled = holds.filter(is_unlabeled);
    let mut unlabeled: Vec<String> = unlabeled.map(|it| it.node().to_owned()).collect();
    unlabeled.sort_unstable();
    unlabeled
}
