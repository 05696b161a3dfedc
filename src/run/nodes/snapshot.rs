//! What is known about nodes and their locks. No I/O.

use std::collections::{BTreeSet, HashMap};

use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{NodeLease, NodeLookup, NodeRow};
use node_keys::{Asked, Finding, NodeKeys};
use pod_safety::node_health::{self, Health, is_fresh};

use super::node_details::{DetailsRead, NodeDetails};
use crate::output::item::Item;
use crate::output::status::{Heartbeat, View};
use crate::words::fencing_annotations::FencingAnnotations;
use crate::words::state::LockFlag;

/// All that was read.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) leases: HashMap<String, NodeLease>,
    pub(crate) rows: HashMap<String, NodeLookup>,
    /// What is known about a Node that is not among the rows.
    pub(crate) other_rows: NodeLookup,
    /// `None`: no permission to read them, or not requested.
    pub(crate) heartbeats: Option<HashMap<String, node_health::Heartbeat>>,
    /// The Nodes that were read as whole objects.
    pub(crate) details: HashMap<String, Box<NodeDetails>>,
    /// Whether heartbeats, and what other tools do, are shown.
    pub(crate) wide: bool,
}

impl Snapshot {
    /// From the rows of a complete list.
    pub(crate) fn listed(
        rows: impl IntoIterator<Item = NodeRow>,
    ) -> (HashMap<String, NodeLookup>, NodeLookup) {
        let rows = rows
            .into_iter()
            .map(|row| (row.name.clone(), NodeLookup::Row(row)))
            .collect();
        (rows, NodeLookup::Missing)
    }

    /// From Leases, without any Nodes.
    pub(crate) fn of_leases(
        leases: impl Iterator<Item = NodeLease>,
        heartbeats: Option<HashMap<String, node_health::Heartbeat>>,
        wide: bool,
    ) -> Self {
        Self {
            leases: leases
                .map(|lease| (lease.node().to_owned(), lease))
                .collect(),
            rows: HashMap::new(),
            other_rows: NodeLookup::Unread,
            heartbeats,
            details: HashMap::new(),
            wide,
        }
    }

    /// Applies the results of reading Nodes. If a Node could not be read, its earlier row stays. If it was read, the row is
    /// replaced, but keeps its earlier labels.
    pub(crate) fn apply_details(
        &mut self,
        details: impl IntoIterator<Item = (String, DetailsRead)>,
    ) {
        for (
            name,
            DetailsRead {
                mut row,
                node_details,
            },
        ) in details
        {
            match node_details {
                Some(node_details) => {
                    self.details.insert(name.clone(), node_details);
                    let before = self.rows.remove(&name).and_then(NodeLookup::into_row);
                    if let (NodeLookup::Row(row), Some(before)) = (&mut row, before) {
                        row.labels = before.labels;
                    }
                    self.rows.insert(name, row);
                }
                None => {
                    self.rows.entry(name).or_insert(row);
                }
            }
        }
    }

    pub(crate) fn row(&self, node: &str) -> &NodeLookup {
        self.rows.get(node).unwrap_or(&self.other_rows)
    }

    /// The health of `node`, as far as it is known.
    fn health(&self, node: &str) -> Option<&Health> {
        match self.row(node) {
            NodeLookup::Missing => Some(&Health::Gone),
            NodeLookup::Row(row) => {
                let by_row = row.is_ready().then_some(&Health::Ready);
                self.details
                    .get(node)
                    .map(|node_details| &node_details.health)
                    .or(by_row)
            }
            NodeLookup::Forbidden | NodeLookup::Unread => None,
        }
    }

    /// The fencing annotations on the Node, if the whole object was read.
    fn annotations(&self, node: &str) -> Option<&FencingAnnotations> {
        self.details
            .get(node)
            .map(|node_details| &node_details.annotations)
    }

    /// What other tools do to the Node, if the whole object was read.
    fn findings(&self, node: &str) -> Option<&[Finding]> {
        self.details.get(node).map(|details| &details.findings[..])
    }

    /// What locks set on the Node, if the whole object was read.
    fn keys(&self, node: &str) -> Option<&NodeKeys> {
        self.details.get(node).map(|details| &details.keys)
    }

    /// Whether the Node may say more than its row: it is not ready or cordoned, its heartbeat is old, or its
    /// Lease is on hold or marked as fenced.
    pub(crate) fn is_suspicious(&self, node: &str, now: Now) -> bool {
        let NodeLookup::Row(row) = self.row(node) else {
            return false;
        };
        let heartbeats = self.heartbeats.as_ref();
        let heartbeat = heartbeats.and_then(|heartbeats| heartbeats.get(node));
        let lease = self.leases.get(node);
        !row.is_ready()
            // Many tools cordon a node first. Only wide output shows what they do, and what locks set.
            || self.wide && (row.is_cordoned() || lease.and_then(Asked::of).is_some())
            || heartbeat.is_some_and(|&heartbeat| !is_fresh(Some(heartbeat), now))
            || lease.is_some_and(|lease| lease.is_fenced() || lease.state(now) == State::AdminHold)
    }

    pub(crate) fn view<'a>(&'a self, node: &'a str) -> View<'a> {
        View {
            node,
            lease: self.leases.get(node),
            row: self.row(node),
            heartbeat: match &self.heartbeats {
                None => Heartbeat::Unknown,
                Some(heartbeats) => heartbeats
                    .get(node)
                    .map_or(Heartbeat::Missing, |heartbeat| Heartbeat::At(heartbeat.at)),
            },
            health: self.health(node),
            annotations: self.annotations(node),
            findings: self.findings(node),
            keys: self.keys(node),
        }
    }

    /// What is known about `node`.
    pub(crate) fn item(&self, node: &str, now: Now) -> Item {
        let heartbeats = self.heartbeats.as_ref();
        let heartbeat = heartbeats.and_then(|heartbeats| heartbeats.get(node).copied());
        Item::new(node, self.leases.get(node), self.row(node), now)
            .with_health(self.health(node))
            .with_annotations(self.annotations(node), now)
            .with_findings(self.findings(node).unwrap_or_default())
            .with_keys(self.keys(node))
            .with_heartbeat(heartbeat.map(|heartbeat| heartbeat.at))
    }

    /// When something about `node` changes by time alone.
    pub(crate) fn next_change(&self, node: &str, now: Now) -> Option<Instant> {
        let of_lease = self.leases.get(node);
        let of_lease = of_lease.and_then(|lease| lease.next_change(now));
        let of_node = self
            .annotations(node)
            .and_then(|annotations| annotations.next_change(now));
        of_lease.into_iter().chain(of_node).min()
    }

    /// All nodes that anything is known about, by name.
    pub(crate) fn known(&self) -> BTreeSet<&str> {
        self.rows
            .keys()
            .chain(self.leases.keys())
            .map(String::as_str)
            .collect()
    }

    pub(crate) fn state(&self, node: &str, now: Now) -> State {
        let lease = self.leases.get(node);
        lease.map_or(State::Free, |lease| lease.state(now))
    }

    /// Whether somebody holds the lock of `node`, or held it until it expired.
    pub(crate) fn is_locked(&self, node: &str) -> bool {
        self.leases
            .get(node)
            .is_some_and(|lease| lease.holder().is_some())
    }

    /// Whether `node` needs attention: it is not free, not well, or its state is unknown. A cordon alone does
    /// not count.
    pub(crate) fn needs_attention(&self, node: &str, now: Now) -> bool {
        let lease = self.leases.get(node);
        let has_annotations = |annotations: &FencingAnnotations| annotations.words(now).is_some();
        self.is_locked(node)
            || lease.is_some_and(|lease| !LockFlag::all(lease, now).is_empty())
            || self.health(node) != Some(&Health::Ready)
            || self.annotations(node).is_some_and(has_annotations)
    }
}
