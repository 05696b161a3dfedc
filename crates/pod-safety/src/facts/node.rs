//! A pod's node, and the nodes around it.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Instant, Now};

use crate::constants::{UNHEALTHY_ZONE_PERCENT, ZONE};
use crate::fencing::record::{How, Since};
use crate::known::Known;
use crate::node::{Health, Pulse, Signs, pulse};

/// What stands where the node should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSight {
    /// The Node.
    There(Box<There>),
    /// No Node.
    Gone {
        /// When a kubelet last renewed a heartbeat under its name.
        heartbeat: Known<Option<Instant>>,
    },
}

/// A Node that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct There {
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub version: String,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// It was deleted, and stays for its finalizers.
    pub deleting: bool,
    /// Its signs of life.
    pub signs: Signs,
}

/// Whether somebody made sure that nothing runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// Nobody says so.
    No,
    /// The out-of-service taint says so, and nothing says who put it there and how they know.
    Asserted,
    /// Our record says who did and how they know.
    Recorded {
        /// Who.
        by: String,
        /// How they know.
        how: String,
        /// It was cut off and not powered off: what ran there may still run.
        isolated: bool,
    },
    /// Our record says so of an earlier machine or boot, or it is not known of which.
    Outdated {
        /// Who recorded it.
        by: String,
        /// How they knew.
        how: String,
        /// What became of the node since.
        since: Option<Since>,
    },
    /// Our record says so, and its kubelet has given a sign of life since, without a restart.
    Contradicted {
        /// Who recorded it.
        by: String,
        /// How they knew.
        how: String,
    },
}

impl There {
    /// `node`, with its kubelet's heartbeat.
    #[must_use]
    pub fn of(node: &Node, heartbeat: Known<Option<Instant>>) -> Self {
        Self {
            uid: node.metadata.uid.clone().unwrap_or_default(),
            version: node.metadata.resource_version.clone().unwrap_or_default(),
            finalizers: node.metadata.finalizers.clone().unwrap_or_default(),
            deleting: node.metadata.deletion_timestamp.is_some(),
            signs: Signs::of(node, heartbeat),
        }
    }

    /// Whether it was fenced, and at `now` has not been restarted or replaced since, nor come back to life.
    #[must_use]
    pub fn fenced(&self, now: Now) -> Fenced {
        if !self.signs.out_of_service.is_asserted() {
            return Fenced::No;
        }
        let Some(record) = &self.signs.record else {
            return Fenced::Asserted;
        };
        let (by, how) = (record.who.clone(), record.how.to_string());
        match self.signs.health(now) {
            _ if !self.signs.is_fenced() => Fenced::Outdated {
                by,
                how,
                since: self.signs.since,
            },
            Health::KubeletAlive { .. } => Fenced::Contradicted { by, how },
            _ => {
                let isolated = matches!(record.how, How::Hook { isolated: true, .. });
                Fenced::Recorded { by, how, isolated }
            }
        }
    }
}

/// The nodes of a zone, or of the cluster for a node that is in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its name; `None`: the cluster.
    pub name: Option<String>,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many of them are silent.
    pub silent: usize,
}

impl Zone {
    /// Counts `nodes`, each by its name and whether it is ready, and those that are unreachable. A node
    /// counts even before the control plane calls it unreachable: if many fail at once, one is always
    /// first.
    pub fn of<'a>(
        name: Option<String>,
        nodes: impl IntoIterator<Item = (&'a str, bool)>,
        heartbeats: &HashMap<String, Instant>,
        now: Now,
    ) -> Self {
        let mut zone = Self {
            name,
            nodes: 0,
            silent: 0,
        };
        for (node, is_ready) in nodes {
            let heartbeat = heartbeats.get(node).copied();
            zone.nodes += 1;
            zone.silent += usize::from(pulse(is_ready, heartbeat, now) != Pulse::Alive);
        }
        zone
    }

    /// The zone of a node; `None`: it is in none.
    #[must_use]
    pub fn name_of(node: &Node) -> Option<String> {
        node.metadata.labels.as_ref()?.get(ZONE).cloned()
    }

    /// The label selector of a zone's nodes; `None` selects the cluster's, in which a node without a zone
    /// is counted.
    #[must_use]
    pub fn selector(name: Option<&str>) -> Option<String> {
        name.map(|name| format!("{ZONE}={name}"))
    }

    /// So many are silent that the fault may be on the control plane's side.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.silent * 100 > self.nodes * UNHEALTHY_ZONE_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Span;

    use super::*;

    #[test]
    fn a_zone_counts_whom_nobody_hears() {
        let now = Instant::from_micros(1_000_000_000);
        let nodes = [
            ("well", true),
            ("reports", false),
            ("fades", true),
            ("silent", false),
            ("never-heard", false),
        ];
        let beats = [("well", 5), ("reports", 5), ("fades", 60), ("silent", 600)];
        let beats = beats.map(|(node, age)| (node.to_owned(), now - Span::seconds(age)));
        let zone = Zone::of(None, nodes, &beats.into(), Now::at(now));
        assert_eq!((zone.silent, zone.nodes), (3, 5));
    }

    #[test]
    fn a_node_without_a_zone_is_one_of_the_cluster() {
        let selector = Zone::selector(Some("a"));
        assert_eq!(selector.as_deref(), Some("topology.kubernetes.io/zone=a"));
        assert_eq!(Zone::selector(None), None);
    }
}
