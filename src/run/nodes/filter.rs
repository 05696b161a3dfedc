//! Which nodes a status shows. No I/O.

use std::collections::BTreeSet;

use maintenance_lease::protocol::Now;
use maintenance_lease::{Maintenance, NodeLease, NodeLookup, NodeRow};

use super::snapshot::Snapshot;
use super::sort::sort;
use crate::args::nodes::Selection;
use crate::args::status::SortKey;
use crate::error::lock_state::LockState;
use crate::words::holder::person;
use crate::words::status::LeftOut;

/// Which nodes to show.
#[derive(Clone)]
pub(crate) struct NodeFilter {
    pub(crate) selection: Selection,
    /// Tells which locks are the caller's.
    pub(crate) locks: Maintenance,
    /// Only nodes in one of these states, unless there are none.
    pub(crate) states: Vec<LockState>,
    /// Whether nodes that are free and well are left out.
    pub(crate) brief: bool,
    pub(crate) sort_by: Option<SortKey>,
    /// Whether to read the whole object of every Node.
    pub(crate) whole: bool,
}

impl NodeFilter {
    /// The label selector, if nodes are selected by one.
    pub(crate) fn selector(&self) -> Option<&str> {
        match &self.selection {
            Selection::Labeled(selector) => Some(selector),
            Selection::Named(_) | Selection::All | Selection::Mine => None,
        }
    }

    /// The nodes to show, sorted as requested, else in the order of the selection, else by name.
    pub(crate) fn nodes(&self, snapshot: &Snapshot, now: Now) -> Vec<String> {
        let candidates: Vec<&str> = match &self.selection {
            Selection::Named(names) => names.iter().map(String::as_str).collect(),
            _ => snapshot.known().into_iter().collect(),
        };
        let shown = candidates
            .into_iter()
            .filter(|node| self.includes(snapshot, node, now));
        let mut nodes: Vec<String> = shown.map(ToOwned::to_owned).collect();
        if let Some(key) = self.sort_by {
            sort(&mut nodes, key, snapshot, now);
        }
        nodes
    }

    /// The nodes that are not shown because they are free and well.
    pub(crate) fn left_out(&self, snapshot: &Snapshot, now: Now) -> LeftOut {
        let mut left_out = LeftOut::default();
        for node in snapshot.known() {
            if self.matches(snapshot, node, now) && !self.includes(snapshot, node, now) {
                left_out.nodes += 1;
                let row = snapshot.row(node).row();
                left_out.cordoned += usize::from(row.is_some_and(NodeRow::is_cordoned));
            }
        }
        left_out
    }

    /// Whether to show `node`.
    pub(crate) fn includes(&self, snapshot: &Snapshot, node: &str, now: Now) -> bool {
        self.matches(snapshot, node, now) && (!self.brief || snapshot.needs_attention(node, now))
    }

    /// Whether `node` is selected and in a requested state.
    fn matches(&self, snapshot: &Snapshot, node: &str, now: Now) -> bool {
        let state = snapshot.state(node, now);
        self.selects(snapshot, node)
            && (self.states.is_empty() || self.states.contains(&state.into()))
    }

    /// Whether the selection has `node`, whatever its state is. A Node that is gone counts as long as its
    /// Lease is held, because its holder may not know.
    pub(crate) fn selects(&self, snapshot: &Snapshot, node: &str) -> bool {
        let row = snapshot.row(node);
        let known = *row != NodeLookup::Missing || snapshot.is_locked(node);
        match &self.selection {
            Selection::Named(names) => known && names.iter().any(|name| name == node),
            Selection::All => known,
            Selection::Labeled(_) => row.row().is_some(),
            Selection::Mine => {
                let lease = snapshot.leases.get(node);
                let holder = lease.and_then(NodeLease::holder);
                holder.is_some_and(|holder| person(holder) == person(self.locks.identity()))
            }
        }
    }

    /// The nodes among `nodes` whose whole objects must be read: all that were named, else the suspicious
    /// ones. Nodes that were already read are left out.
    pub(crate) fn nodes_to_read<'a>(
        &self,
        snapshot: &Snapshot,
        nodes: impl IntoIterator<Item = &'a str>,
        now: Now,
    ) -> BTreeSet<String> {
        let all = self.whole || matches!(self.selection, Selection::Named(_));
        let nodes = nodes.into_iter().filter(|node| {
            snapshot.row(node).row().is_some()
                && !snapshot.details.contains_key(*node)
                && self.matches(snapshot, node, now)
                && (all || snapshot.is_suspicious(node, now))
        });
        nodes.map(ToOwned::to_owned).collect()
    }

    /// The named nodes that don't exist.
    pub(crate) fn unknown<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a str> {
        let named: &[String] = match &self.selection {
            Selection::Named(names) => names,
            _ => &[],
        };
        named
            .iter()
            .map(String::as_str)
            .filter(|node| *snapshot.row(node) == NodeLookup::Missing && !snapshot.is_locked(node))
    }
}
