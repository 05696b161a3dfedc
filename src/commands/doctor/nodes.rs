//! What locks have set on Nodes and left there, and what is missing.

use k8s_openapi::api::core::v1::Node;
use other_tools::{KeysOfNodes, KeysOnNode, KeysRemoved, LocksByNode};
use pod_safety::Known;
use pod_safety::cluster::Reader;

use crate::error::Failure;
use crate::run::session::Session;
use crate::words::doctor::finding::Finding;

/// Reads what locks have set on the Nodes.
///
/// # Errors
/// If they can't be listed.
pub(super) async fn read(reader: &Reader) -> Result<KeysOfNodes, Failure> {
    let with_keys = |node: Node| {
        let keys = KeysOnNode::of(&node);
        Some((node.metadata.name?, keys))
    };
    let nodes = reader.select_nodes(None, with_keys).await?;
    Ok(nodes.into_iter().collect())
}

/// The keys of locks that have ended or expired, those of holds that are missing, and the holds without a label that the
/// node policy would respect.
pub(super) async fn check(
    session: &Session<'_>,
    reader: &Reader,
    mut nodes: KeysOfNodes,
    leases: &LocksByNode,
    is_policy_on: bool,
    fix: bool,
) -> Vec<Finding> {
    let now = || session.locks.server_time().now();
    let left = nodes.left_over(leases, now());
    let mut found = match fix {
        _ if left.is_empty() => vec![Finding::Labels(nodes.labeled())],
        true => remove(session, left, &mut nodes).await,
        false => vec![Finding::LeftOver(
            left.into_iter().map(|keys| keys.node).collect(),
        )],
    };
    let without_id = nodes.without_lock_id();
    found.extend((!without_id.is_empty()).then_some(Finding::WithoutLockId(without_id)));
    let missing = nodes.missing_opt_outs(leases, now());
    found.extend((!missing.is_empty()).then_some(Finding::MissingOptOuts(missing)));
    if is_policy_on && reader.may("patch", "nodes", None).await == Known::Yes(true) {
        let unlabeled = nodes.unlabeled_holds(leases);
        found.extend((!unlabeled.is_empty()).then_some(Finding::Unlabeled(unlabeled)));
    }
    found
}

/// Removes the keys that are `left`, from `nodes` too. If a holder renews an expired lock meanwhile, only its keys are
/// missing.
async fn remove(
    session: &Session<'_>,
    left: Vec<KeysOnNode>,
    nodes: &mut KeysOfNodes,
) -> Vec<Finding> {
    let (mut removed, mut stay, mut why) = (Vec::new(), Vec::new(), String::new());
    for keys in left {
        match session.remove_keys(&keys.node, None).await {
            Ok(KeysRemoved::Done(_)) => {
                nodes.clear(&keys.node);
                removed.push(keys.node);
            }
            Ok(KeysRemoved::WithoutLockId) => nodes.keep_label(&keys.node),
            Ok(KeysRemoved::Nothing) => nodes.clear(&keys.node),
            Ok(KeysRemoved::StillHeld) => {}
            Err(error) => {
                stay.push(keys.node);
                why = error.to_string();
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
        found.push(Finding::Labels(nodes.labeled()));
    }
    found
}
