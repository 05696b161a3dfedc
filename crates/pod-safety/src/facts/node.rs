//! A pod's node, and the other nodes of its zone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::Now;

use crate::bugs::{self, Bug};
use crate::constants::{EXCLUDED, REGION, SMALL_ZONE, UNHEALTHY_ZONE_PERCENT, ZONE};
use crate::fencing::record::Record;
use crate::known::Known;
use crate::node_health::{Health, Heartbeat, KubeletState, NodeState, kubelet_state};
use crate::taint::NoExecute;

/// A Node that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentNode {
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub version: String,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// It was deleted, and its finalizers keep it.
    pub deleting: bool,
    /// The names of the attached volumes in its status.
    pub volumes: Vec<String>,
    /// Its taints that evict pods.
    pub taints: Vec<NoExecute>,
    /// Its readiness, heartbeat, taint and fencing record.
    pub state: NodeState,
}

/// Whether the node is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced<'a> {
    /// It is not fenced.
    No,
    /// Our record says so, and nothing contradicts it.
    Recorded(&'a Record),
    /// It has the out-of-service taint. There is no record of ours, the record is not known to be about this boot of
    /// this machine, or the kubelet is alive.
    Unproven,
}

impl PresentNode {
    /// `node`, with the `heartbeat` of its kubelet.
    #[must_use]
    pub fn of(node: &Node, heartbeat: Known<Option<Heartbeat>>) -> Self {
        Self {
            uid: node.metadata.uid.clone().unwrap_or_default(),
            version: node.metadata.resource_version.clone().unwrap_or_default(),
            finalizers: node.metadata.finalizers.clone().unwrap_or_default(),
            deleting: node.metadata.deletion_timestamp.is_some(),
            volumes: attached_to(node),
            taints: NoExecute::of(node),
            state: NodeState::of(node, heartbeat),
        }
    }

    /// Whether it was fenced, and has not been restarted, replaced or seen alive since.
    #[must_use]
    pub fn fenced(&self, now: Now) -> Fenced<'_> {
        if !self.state.out_of_service.is_asserted() {
            return Fenced::No;
        }
        match (&self.state.record, self.state.health(now)) {
            (Some(_), Health::KubeletAlive { .. }) => Fenced::Unproven,
            (Some(record), _) if self.state.is_fenced() => Fenced::Recorded(record),
            _ => Fenced::Unproven,
        }
    }
}

/// The names of the attached volumes in the status of `node`.
pub(crate) fn attached_to(node: &Node) -> Vec<String> {
    let status = node.status.as_ref();
    let attached = status.and_then(|status| status.volumes_attached.as_deref());
    let attached = attached.unwrap_or_default().iter();
    attached.map(|volume| volume.name.clone()).collect()
}

/// A Node as a table row shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Its Ready condition is True.
    pub is_ready: bool,
    /// It is cordoned.
    pub is_cordoned: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// It has our `fenced` annotation, even if the value is not a valid record.
    pub is_annotated: bool,
}

impl NodeRow {
    /// Its region and zone labels, which together identify a zone for Kubernetes. Both may be empty.
    fn zone(&self) -> (&str, &str) {
        let label = |name| self.labels.get(name).map_or("", String::as_str);
        (label(REGION), label(ZONE))
    }
}

/// What may have caused the loss of most nodes of a zone.
pub const POSSIBLE_CAUSE: &str =
    "the zone or the control plane may be cut off, with all of its nodes still running";

/// The number of nodes, and how many of them are unreachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// The number of nodes without those that are known to be fenced.
    pub all: usize,
    /// The number of unreachable nodes.
    pub unreachable: usize,
}

/// The nodes in a node's zone, and those in other zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The name of the zone; `None` for the nodes without a zone label, or for the whole cluster.
    pub name: Option<String>,
    /// The nodes of the zone.
    pub nodes: Nodes,
    /// The nodes of all other zones.
    pub others: Nodes,
}

impl Zone {
    /// Counts the nodes in the zone of `node`, and in other zones. If `node` is not in `rows`, all nodes
    /// count as its zone. `fenced` nodes are not counted, because it is known why they are unreachable. A
    /// node counts as unreachable even before the control plane reports it: if many nodes fail at once, one
    /// is always reported first.
    #[must_use]
    pub fn of(
        node: &str,
        rows: &[NodeRow],
        fenced: &BTreeSet<String>,
        heartbeats: &HashMap<String, Heartbeat>,
        now: Now,
    ) -> Self {
        let own = rows.iter().find(|row| row.name == node).map(NodeRow::zone);
        let mut zone = Self {
            name: own
                .map(|(_, zone)| zone.to_owned())
                .filter(|name| !name.is_empty()),
            nodes: Nodes::default(),
            others: Nodes::default(),
        };
        for row in rows {
            if fenced.contains(&row.name) || row.labels.contains_key(EXCLUDED) {
                continue;
            }
            let heartbeat = heartbeats.get(&row.name).copied();
            let count = match own.is_none_or(|own| own == row.zone()) {
                true => &mut zone.nodes,
                false => &mut zone.others,
            };
            count.all += 1;
            count.unreachable +=
                usize::from(kubelet_state(row.is_ready, heartbeat, now) != KubeletState::Alive);
        }
        zone
    }

    /// Whether so many nodes are unreachable that the control plane itself may be cut off. The node lifecycle
    /// controller draws the same conclusion in two cases. Either most nodes of a zone are lost, except in
    /// very small zones, or no zone has a ready node.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        let Nodes { all, unreachable } = self.nodes;
        let is_partial = (unreachable > SMALL_ZONE || bugs::active(Bug::SmallZoneIsLost))
            && unreachable * 100 >= all * UNHEALTHY_ZONE_PERCENT;
        is_partial || self.is_all()
    }

    /// Whether no node of the cluster can be reached.
    fn is_all(&self) -> bool {
        let total = self.nodes.all + self.others.all;
        total > 0 && self.nodes.unreachable + self.others.unreachable == total
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Nodes { all, unreachable } = self.nodes;
        write!(f, "{unreachable} of {all} nodes ")?;
        match (&self.name, self.others.all) {
            (Some(name), _) => write!(f, "of zone {name}"),
            (None, 0) => f.write_str("of the cluster"),
            (None, _) => f.write_str("without a zone"),
        }?;
        f.write_str(" are unreachable")
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::{Instant, Span};

    use super::*;

    const NOW: Instant = Instant::from_micros(1_000_000_000);

    fn row(name: &str, is_ready: bool, labels: &[(&str, &str)]) -> NodeRow {
        let labels = labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()));
        NodeRow {
            name: name.to_owned(),
            is_ready,
            is_cordoned: false,
            labels: labels.collect(),
            is_annotated: false,
        }
    }

    fn around(node: &str, rows: &[NodeRow], fenced: &[&str]) -> Zone {
        let beats = [
            ("well", 5),
            ("reports", 5),
            ("fades", 60),
            ("unreachable", 600),
        ];
        let beats = beats.map(|(node, age)| (node.to_owned(), (NOW - Span::seconds(age)).into()));
        let fenced = fenced.iter().map(|&name| name.to_owned()).collect();
        Zone::of(node, rows, &fenced, &beats.into(), Now::at(NOW))
    }

    fn nodes(unreachable: usize, all: usize) -> Nodes {
        Nodes { all, unreachable }
    }

    #[test]
    fn a_zone_counts_whom_nobody_hears() {
        let rows = [
            row("well", true, &[]),
            row("reports", false, &[]),
            row("fades", true, &[]),
            row("unreachable", false, &[]),
            row("never-heard", false, &[]),
        ];
        let zone = around("unreachable", &rows, &[]);
        assert_eq!((zone.nodes, zone.others), (nodes(3, 5), nodes(0, 0)));
        assert_eq!(
            zone.to_string(),
            "3 of 5 nodes of the cluster are unreachable"
        );
        // A fenced node says nothing about the network.
        assert_eq!(around("unreachable", &rows, &["fades"]).nodes, nodes(2, 4));
    }

    /// Zones with the same name in two regions are different zones, as for the node lifecycle controller.
    #[test]
    fn the_zone_of_a_node_is_compared_with_the_others() {
        let (zone_a, region) = ((ZONE, "a"), (REGION, "north"));
        let rows = [
            row("unreachable", false, &[zone_a]),
            row("well", true, &[(ZONE, "b")]),
            row("fades", true, &[zone_a, region]),
            row("reports", false, &[]),
            row("ignored", false, &[zone_a, (EXCLUDED, "")]),
        ];
        for (node, own, others, text) in [
            (
                "unreachable",
                nodes(1, 1),
                nodes(1, 3),
                "1 of 1 nodes of zone a",
            ),
            ("well", nodes(0, 1), nodes(2, 3), "0 of 1 nodes of zone b"),
            (
                "reports",
                nodes(0, 1),
                nodes(2, 3),
                "0 of 1 nodes without a zone",
            ),
            (
                "gone",
                nodes(2, 4),
                nodes(0, 0),
                "2 of 4 nodes of the cluster",
            ),
        ] {
            let zone = around(node, &rows, &[]);
            assert_eq!((zone.nodes, zone.others), (own, others), "{node}");
            assert_eq!(zone.to_string(), format!("{text} are unreachable"));
        }
    }

    #[test]
    fn a_small_zone_is_lost_only_with_all_others() {
        for (own, others, is_lost) in [
            (nodes(1, 1), nodes(0, 2), false),
            (nodes(1, 1), nodes(2, 2), true),
            (nodes(1, 1), nodes(0, 0), true),
            (nodes(2, 2), nodes(1, 2), false),
            (nodes(2, 3), nodes(0, 0), false),
            (nodes(3, 3), nodes(0, 6), true),
            (nodes(3, 5), nodes(0, 6), true),
            (nodes(3, 6), nodes(0, 6), false),
            (nodes(10, 20), nodes(0, 0), false),
            // Exactly 55% counts.
            (nodes(11, 20), nodes(0, 0), true),
            (nodes(0, 0), nodes(0, 0), false),
        ] {
            let zone = Zone {
                name: None,
                nodes: own,
                others,
            };
            assert_eq!(zone.is_lost(), is_lost, "{zone:?}");
        }
    }
}
