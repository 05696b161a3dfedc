//! What locks have left on Nodes, and what is missing there.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;
use node_keys::{Mismatch, Mode, NodeKeys, asks};
use pod_safety::cluster::Reader;

use crate::error::{Failure, KeysError};
use crate::run::session::Session;
use crate::words::doctor::finding::Finding;

/// Reads what locks have set on the Nodes.
///
/// # Errors
/// If they can't be listed.
pub(super) async fn read(reader: &Reader) -> Result<HashMap<String, NodeKeys>, Failure> {
    let with_keys = |node: Node| {
        let keys = NodeKeys::on(&node);
        Some((node.metadata.name?, keys))
    };
    let nodes = reader.select_nodes(None, with_keys).await?;
    Ok(nodes.into_iter().collect())
}

/// The keys of locks that have ended or expired, and the locks whose Nodes lack what they ask for. With `fix`, the keys are
/// removed and set.
pub(super) async fn check(
    session: &Session<'_>,
    nodes: &HashMap<String, NodeKeys>,
    leases: &HashMap<String, NodeLease>,
    fix: bool,
    caller: Option<&str>,
) -> Vec<Finding> {
    let now = session.locks.server_time().now();
    let (mut left, mut missing) = (Vec::new(), Vec::new());
    for (node, keys) in nodes {
        let lease = leases.get(node);
        match keys.mismatch(lease, now) {
            Some(Mismatch::Missing) => missing.extend(lease),
            Some(Mismatch::LeftOver) => {
                left.push(node.clone());
                missing.extend(lease.filter(|lease| asks(lease, now)));
            }
            None => {}
        }
    }
    left.sort_unstable();
    missing.sort_unstable_by(|one, other| one.node().cmp(other.node()));
    let labeled = nodes.values().filter(|keys| keys.are_labeled()).count();
    let mut found = match fix {
        true => remove(session, left).await,
        false if left.is_empty() => Vec::new(),
        false => vec![Finding::LeftOver(left)],
    };
    // The node policy lets only the API user of a lock set its keys.
    let (own, others): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|lease| fix && lease.api_user().is_none_or(|user| Some(user) == caller));
    found.extend(set(session, own).await);
    if !others.is_empty() {
        found.push(Finding::WithoutKeys(names(&others)));
    }
    if found.is_empty() {
        found.push(Finding::Labels(labeled));
    }
    found
}

fn names(leases: &[&NodeLease]) -> Vec<String> {
    leases.iter().map(|lease| lease.node().to_owned()).collect()
}

/// Removes the keys that are `left` on these nodes. If a holder renews an expired lock meanwhile, only its keys are missing.
async fn remove(session: &Session<'_>, left: Vec<String>) -> Vec<Finding> {
    let (mut removed, mut stay, mut why) = (Vec::new(), Vec::new(), String::new());
    for node in left {
        match node_keys::clear(&session.locks, &node, false).await {
            Ok(Some(keys)) if !keys.is_empty() => removed.push(node),
            Ok(_) => {}
            Err(error) => {
                stay.push(node);
                why = KeysError::from(error).to_string();
            }
        }
    }
    let removed = (!removed.is_empty()).then_some(Finding::Removed(removed));
    let stay = (!stay.is_empty()).then_some(Finding::NotRemoved { nodes: stay, why });
    removed.into_iter().chain(stay).collect()
}

/// Sets what these locks ask of their Nodes.
async fn set(session: &Session<'_>, missing: Vec<&NodeLease>) -> Vec<Finding> {
    let (mut set, mut lack, mut why) = (Vec::new(), Vec::new(), String::new());
    for lease in missing {
        let node = lease.node().to_owned();
        match node_keys::set(&session.locks, lease, Mode::Update).await {
            Ok(_) => set.push(node),
            Err(error) => {
                lack.push(node);
                why = KeysError::from(error).to_string();
            }
        }
    }
    let set = (!set.is_empty()).then_some(Finding::KeysSet(set));
    let lack = (!lack.is_empty()).then_some(Finding::KeysNotSet { nodes: lack, why });
    set.into_iter().chain(lack).collect()
}
