//! Decides what ended locks have left on Nodes, and which labels and opt-outs of holds are missing. Pure.

use std::collections::HashMap;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Now;

use crate::keys_on_node::KeysOnNode;

/// The locks of nodes, by node.
pub type LocksByNode = HashMap<String, NodeLease>;

/// What locks have set on each of these Nodes, by name; `None`: nothing.
#[derive(Clone, Debug, Default)]
pub struct KeysOfNodes(HashMap<String, Option<KeysOnNode>>);

impl FromIterator<(String, Option<KeysOnNode>)> for KeysOfNodes {
    fn from_iter<I: IntoIterator<Item = (String, Option<KeysOnNode>)>>(nodes: I) -> Self {
        Self(nodes.into_iter().collect())
    }
}

impl KeysOfNodes {
    /// Notes that nothing is left on `node`.
    pub fn clear(&mut self, node: &str) {
        self.0.insert(node.to_owned(), None);
    }

    /// Notes that only the held label is left on `node`.
    pub fn keep_label(&mut self, node: &str) {
        if let Some(Some(keys)) = self.0.get_mut(node) {
            keys.is_only_label = true;
        }
    }

    /// How many Nodes have the held label.
    #[must_use]
    pub fn labeled(&self) -> usize {
        self.all().filter(|keys| keys.is_labeled).count()
    }

    /// The nodes with nothing but the held label.
    #[must_use]
    pub fn without_lock_id(&self) -> Vec<String> {
        let labeled = self.all().filter(|keys| keys.is_only_label);
        let mut labeled: Vec<String> = labeled.map(|keys| keys.node.clone()).collect();
        labeled.sort_unstable();
        labeled
    }

    /// The keys of locks that have ended or expired, in the order of the nodes' names.
    #[must_use]
    pub fn left_over(&self, locks: &LocksByNode, now: Now) -> Vec<KeysOnNode> {
        let of_locks = self.all().filter(|keys| !keys.is_only_label);
        let left = of_locks.filter(|keys| !keys.are_current(locks.get(&keys.node), now));
        let mut left: Vec<KeysOnNode> = left.cloned().collect();
        left.sort_unstable_by(|a, b| a.node.cmp(&b.node));
        left
    }

    /// The nodes on hold that lack opt-outs which the hold has set, and which.
    #[must_use]
    pub fn missing_opt_outs(&self, locks: &LocksByNode, now: Now) -> Vec<(String, Vec<String>)> {
        let on_hold = self.all().filter(|keys| {
            let lock = locks.get(&keys.node);
            lock.is_some_and(NodeLease::is_hold) && keys.are_current(lock, now)
        });
        let missing = on_hold.filter(|keys| !keys.missing.is_empty());
        let missing = missing.map(|keys| (keys.node.clone(), keys.missing.clone()));
        let mut missing: Vec<_> = missing.collect();
        missing.sort_unstable();
        missing
    }

    /// The nodes on hold whose Nodes exist and lack the held label.
    #[must_use]
    pub fn unlabeled_holds(&self, locks: &LocksByNode) -> Vec<String> {
        let holds = locks.values().filter(|lease| lease.is_hold());
        let is_unlabeled = |lease: &&NodeLease| {
            let keys = self.0.get(lease.node());
            keys.is_some_and(|keys| keys.as_ref().is_none_or(|keys| !keys.is_labeled))
        };
        let unlabeled = holds.filter(is_unlabeled);
        let mut unlabeled: Vec<String> = unlabeled.map(|it| it.node().to_owned()).collect();
        unlabeled.sort_unstable();
        unlabeled
    }

    fn all(&self) -> impl Iterator<Item = &KeysOnNode> {
        self.0.values().flatten()
    }
}
