//! What is known about nodes and their locks, and which nodes a selection includes. No I/O.

use std::collections::{BTreeSet, HashMap};

use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{NodeLease, NodeRow, Sight};
use pod_safety::node::{Health, is_fresh};

use super::node_details::NodeDetails;
use crate::args::nodes::Selection;
use crate::output::item::Item;
use crate::output::status::{Heartbeat, View};
use crate::words::fencing_marks::Marks;

/// All that was read.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) leases: HashMap<String, NodeLease>,
    pub(super) rows: HashMap<String, Sight>,
    /// What is known about a Node that is not among the rows.
    pub(super) other_rows: Sight,
    /// `None`: no permission to read them, or not requested.
    pub(super) heartbeats: Option<HashMap<String, Instant>>,
    /// The Nodes that were read as whole objects.
    pub(super) details: HashMap<String, NodeDetails>,
}

/// Which nodes to show.
#[derive(Clone, Debug)]
pub(super) struct NodeFilter {
    pub(super) selection: Selection,
    /// Only locked nodes, and those with a lock that expired.
    pub(super) locked: bool,
    /// The holder names of the caller's leases and holds.
    pub(super) own: [String; 2],
    /// Whether to read the whole object of every Node.
    pub(super) check_taints: bool,
}

impl Snapshot {
    /// A picture from the rows of a complete list.
    pub(super) fn listed(
        rows: impl IntoIterator<Item = NodeRow>,
    ) -> (HashMap<String, Sight>, Sight) {
        let rows = rows
            .into_iter()
            .map(|row| (row.name.clone(), Sight::Row(row)))
            .collect();
        (rows, Sight::Missing)
    }

    /// A picture from Leases, without any Nodes.
    pub(super) fn of_leases(
        leases: impl Iterator<Item = NodeLease>,
        heartbeats: Option<HashMap<String, Instant>>,
    ) -> Self {
        Self {
            leases: leases
                .map(|lease| (lease.node().to_owned(), lease))
                .collect(),
            rows: HashMap::new(),
            other_rows: Sight::Unread,
            heartbeats,
            details: HashMap::new(),
        }
    }

    pub(super) fn row(&self, node: &str) -> &Sight {
        self.rows.get(node).unwrap_or(&self.other_rows)
    }

    /// The health of `node`, as far as it is known.
    fn health(&self, node: &str) -> Option<&Health> {
        match self.row(node) {
            Sight::Missing => Some(&Health::Gone),
            Sight::Row(row) => {
                let by_row = row.is_ready().then_some(&Health::Ready);
                self.details
                    .get(node)
                    .map(|node_details| &node_details.health)
                    .or(by_row)
            }
            Sight::Forbidden | Sight::Unread => None,
        }
    }

    /// The fencing marks on the Node, if the whole object was read.
    fn marks(&self, node: &str) -> Option<&Marks> {
        self.details
            .get(node)
            .map(|node_details| &node_details.marks)
    }

    /// Whether the Node may differ from its row: it is not ready, its heartbeat is old, or its Lease is on
    /// hold or marked as fenced.
    fn is_suspicious(&self, node: &str, now: Now) -> bool {
        let Sight::Row(row) = self.row(node) else {
            return false;
        };
        let heartbeats = self.heartbeats.as_ref();
        let heartbeat = heartbeats.and_then(|heartbeats| heartbeats.get(node));
        let lease = self.leases.get(node);
        !row.is_ready()
            || heartbeat.is_some_and(|&heartbeat| !is_fresh(Some(heartbeat), now))
            || lease.is_some_and(|lease| lease.is_fenced() || lease.state(now) == State::AdminHold)
    }

    pub(super) fn view<'a>(&'a self, node: &'a str) -> View<'a> {
        View {
            node,
            lease: self.leases.get(node),
            row: self.row(node),
            heartbeat: match &self.heartbeats {
                None => Heartbeat::Unknown,
                Some(heartbeats) => heartbeats
                    .get(node)
                    .map_or(Heartbeat::Missing, |&at| Heartbeat::At(at)),
            },
            health: self.health(node),
            marks: self.marks(node),
        }
    }

    /// What is known about `node`.
    pub(super) fn item(&self, node: &str, now: Now) -> Item {
        let heartbeats = self.heartbeats.as_ref();
        let heartbeat = heartbeats.and_then(|heartbeats| heartbeats.get(node).copied());
        Item::new(node, self.leases.get(node), self.row(node), now)
            .with_health(self.health(node))
            .with_marks(self.marks(node), now)
            .with_heartbeat(heartbeat)
    }

    /// When something about `node` changes by time alone.
    pub(super) fn next_change(&self, node: &str, now: Now) -> Option<Instant> {
        let of_lease = self.leases.get(node);
        let of_lease = of_lease.and_then(|lease| lease.next_change(now));
        let of_node = self.marks(node).and_then(|marks| marks.next_change(now));
        of_lease.into_iter().chain(of_node).min()
    }

    /// All nodes that anything is known about, by name.
    pub(super) fn known(&self) -> BTreeSet<&str> {
        self.rows
            .keys()
            .chain(self.leases.keys())
            .map(String::as_str)
            .collect()
    }

    fn is_locked(&self, node: &str) -> bool {
        self.leases
            .get(node)
            .is_some_and(|lease| lease.holder().is_some())
    }
}

impl NodeFilter {
    /// The nodes to show, in the order of the selection, else by name.
    pub(super) fn nodes(&self, snapshot: &Snapshot) -> Vec<String> {
        let candidates: Vec<&str> = match &self.selection {
            Selection::Named(names) => names.iter().map(String::as_str).collect(),
            _ => snapshot.known().into_iter().collect(),
        };
        candidates
            .into_iter()
            .filter(|node| self.includes(snapshot, node))
            .map(ToOwned::to_owned)
            .collect()
    }

    /// Whether to show `node`. A Node that is gone is shown as long as its Lease is held, because its
    /// holder may not know.
    pub(super) fn includes(&self, snapshot: &Snapshot, node: &str) -> bool {
        let row = snapshot.row(node);
        let known = *row != Sight::Missing || snapshot.is_locked(node);
        let selected = match &self.selection {
            Selection::Named(names) => known && names.iter().any(|name| name == node),
            Selection::All => known,
            Selection::Labelled(_) => row.row().is_some(),
            Selection::Mine => snapshot
                .leases
                .get(node)
                .and_then(NodeLease::holder)
                .is_some_and(|holder| self.own.iter().any(|own| own == holder)),
        };
        selected && (!self.locked || snapshot.is_locked(node))
    }

    /// The nodes among `nodes` whose whole objects must be read: all that were named, else the suspicious
    /// ones. Nodes that were already read are left out.
    pub(super) fn to_look_at<'a>(
        &self,
        snapshot: &Snapshot,
        nodes: impl IntoIterator<Item = &'a str>,
        now: Now,
    ) -> BTreeSet<String> {
        let all = self.check_taints || matches!(self.selection, Selection::Named(_));
        let nodes = nodes.into_iter().filter(|node| {
            snapshot.row(node).row().is_some()
                && !snapshot.details.contains_key(*node)
                && self.includes(snapshot, node)
                && (all || snapshot.is_suspicious(node, now))
        });
        nodes.map(ToOwned::to_owned).collect()
    }

    /// The named nodes that don't exist.
    pub(super) fn unknown<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a str> {
        self.selection
            .names()
            .iter()
            .map(String::as_str)
            .filter(|node| *snapshot.row(node) == Sight::Missing && !snapshot.is_locked(node))
    }
}
