//! What locks have set on a Node, and whether it belongs to a lock that stands. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Now;

use crate::node_keys::{CORDON, HELD, LOCK_ID, NodeKeys, SET, annotation};

/// What locks have set on a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysOnNode {
    /// The Node's name.
    pub node: String,
    /// The lock id that the keys belong to. `None`: a lock has not written it, or somebody removed it.
    pub lock_id: Option<String>,
    /// Whether the Node has the held label.
    pub is_labeled: bool,
    /// Whether it has nothing but the held label. Then nobody knows which lock set it.
    pub is_only_label: bool,
    /// The opt-outs that the lock set and somebody removed.
    pub missing: Vec<String>,
}

impl KeysOnNode {
    /// Those of `node`; `None`: there are none.
    #[must_use]
    pub fn of(node: &Node) -> Option<Self> {
        let has = |map: &Option<BTreeMap<String, String>>, key: &str| {
            map.as_ref().is_some_and(|map| map.contains_key(key))
        };
        let metadata = &node.metadata;
        let is_labeled = has(&metadata.labels, HELD);
        let lock_id = annotation(&node.metadata, LOCK_ID);
        let has_others = lock_id.is_some() || !NodeKeys::set_by_locks(node).is_empty();
        if !is_labeled && !has_others {
            return None;
        }
        let set = annotation(&node.metadata, SET).into_iter();
        let opt_outs = set
            .flat_map(|set| set.split(','))
            .filter(|key| *key != CORDON);
        let is_missing =
            |key: &&str| !has(&metadata.labels, key) && !has(&metadata.annotations, key);
        Some(Self {
            node: metadata.name.clone().unwrap_or_default(),
            lock_id: lock_id.map(ToOwned::to_owned),
            is_labeled,
            is_only_label: !has_others,
            missing: opt_outs.filter(is_missing).map(ToOwned::to_owned).collect(),
        })
    }

    /// Whether they belong to the lock in `lease`, and it has not expired at `now`. Otherwise, they are left over. Opt-outs without a
    /// lock id may belong to any lock.
    #[must_use]
    pub fn are_current(&self, lease: Option<&NodeLease>, now: Now) -> bool {
        let unexpired = unexpired(lease, now);
        unexpired.is_some_and(|lease| match &self.lock_id {
            None if !self.is_labeled => true,
            id => lock_id(lease) == *id,
        })
    }
}

/// The id of the lock in `lease`; `None` also if it has ended or expired.
#[must_use]
pub fn current_lock_id(lease: Option<&NodeLease>, now: Now) -> Option<String> {
    lock_id(unexpired(lease, now)?)
}

fn unexpired(lease: Option<&NodeLease>, now: Now) -> Option<&NodeLease> {
    lease.filter(|lease| lease.state(now).is_locked())
}

fn lock_id(lease: &NodeLease) -> Option<String> {
    Some(lease.lock_id()?.to_string())
}
