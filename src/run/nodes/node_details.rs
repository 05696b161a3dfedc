//! Reads whole Nodes if their rows don't show their health.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use maintenance_lease::protocol::Now;
use maintenance_lease::{Accept, ApiError, Call, NodeLookup, NodeRow};
use node_keys::{Finding, NodeKeys, findings, medik8s_lease_path};
use pod_safety::cluster::Reader;
use pod_safety::fencing::{Attempt, record};
use pod_safety::node_health::{Health, Heartbeat, NodeState, Status};
use pod_safety::{Known, Why};

use crate::run::session::{PARALLEL, Session};
use crate::words::fencing_annotations::FencingAnnotations;

/// More Nodes than this are read with a list: one whole Node has as many bytes as a hundred rows.
const MOST_BY_NAME: usize = 128;

/// The result of reading a Node.
pub(crate) struct DetailsRead {
    pub(crate) row: NodeLookup,
    /// `None`: it could not be read.
    pub(crate) node_details: Option<Box<NodeDetails>>,
}

/// What the row of a Node does not show.
#[derive(Clone, Debug)]
pub(crate) struct NodeDetails {
    pub(crate) health: Health,
    pub(crate) annotations: FencingAnnotations,
    /// What other tools do to it.
    pub(crate) findings: Vec<Finding>,
    /// What locks set on it.
    pub(crate) keys: NodeKeys,
}

impl NodeDetails {
    const GONE: Self = Self {
        health: Health::Gone,
        annotations: FencingAnnotations {
            record: None,
            hook: None,
        },
        findings: Vec::new(),
        keys: NodeKeys {
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            cordon: false,
        },
    };
}

impl DetailsRead {
    fn missing() -> Self {
        Self {
            row: NodeLookup::Missing,
            node_details: Some(Box::new(NodeDetails::GONE)),
        }
    }

    const FORBIDDEN: Self = Self {
        row: NodeLookup::Forbidden,
        node_details: None,
    };
}

/// Whole Nodes and the heartbeats of their kubelets.
pub(crate) struct Nodes<'a> {
    reader: Reader,
    /// Those that were already read.
    heartbeats: Option<&'a HashMap<String, Heartbeat>>,
    /// Drop the labels: they are not shown, or were already read.
    without_labels: bool,
    /// The label selector that the Nodes match.
    selector: Option<&'a str>,
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(
        session: &Session<'_>,
        heartbeats: Option<&'a HashMap<String, Heartbeat>>,
    ) -> Self {
        Self {
            reader: Reader::new(session.locks.requests().clone()),
            heartbeats,
            without_labels: false,
            selector: None,
        }
    }

    /// Drops the labels: they are not shown, or were already read.
    pub(crate) fn without_labels(self) -> Self {
        Self {
            without_labels: true,
            ..self
        }
    }

    /// Lists only Nodes that match `selector`. All that are read must match it.
    pub(super) fn matching(self, selector: Option<&'a str>) -> Self {
        Self { selector, ..self }
    }

    /// Reads these nodes.
    ///
    /// # Errors
    /// If one can't be read for another reason than a missing right.
    pub(crate) async fn read_details(
        &self,
        names: &BTreeSet<String>,
    ) -> Result<Vec<(String, DetailsRead)>, ApiError> {
        if names.len() <= MOST_BY_NAME {
            return self.by_name(names).await;
        }
        match self.listed(names).await {
            Err(error) if error.is_forbidden() => self.by_name(names).await,
            listed => listed,
        }
    }

    async fn by_name(
        &self,
        names: &BTreeSet<String>,
    ) -> Result<Vec<(String, DetailsRead)>, ApiError> {
        futures::stream::iter(names)
            .map(|name| async move { Ok((name.clone(), self.one(name).await?)) })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await
    }

    /// Reads one node. The heartbeat is only read if the Node is not ready.
    ///
    /// # Errors
    /// As [`read_details`](Self::read_details).
    pub(crate) async fn one(&self, name: &str) -> Result<DetailsRead, ApiError> {
        let node = match self.reader.node(name).await {
            Ok(Some(node)) => node,
            Ok(None) => return Ok(DetailsRead::missing()),
            Err(error) if error.is_forbidden() => return Ok(DetailsRead::FORBIDDEN),
            Err(error) => return Err(error),
        };
        let mut found = Found::of(name, &node, self.heartbeat(name));
        if !found.is_ready() && self.heartbeats.is_none() {
            let read = self.reader.heartbeat(name).await;
            found.state.heartbeat = Known::of(read, right_on_heartbeats);
        }
        Ok(found.details(self.reader.now()))
    }

    async fn listed(
        &self,
        names: &BTreeSet<String>,
    ) -> Result<Vec<(String, DetailsRead)>, ApiError> {
        let mut missing = names.clone();
        let listed = self.reader.select_nodes(self.selector, |node| {
            let name = node.metadata.name.clone()?;
            if !missing.remove(&name) {
                return None;
            }
            let mut found = Box::new(Found::of(&name, &node, self.heartbeat(&name)));
            if self.without_labels {
                found.row.labels = BTreeMap::new();
            }
            Some((name, found))
        });
        let mut nodes = listed.await?;
        if self.heartbeats.is_none() && !nodes.iter().all(|(_, found)| found.is_ready()) {
            let heartbeats = Known::of(self.reader.heartbeats().await, right_on_heartbeats);
            for (name, found) in &mut nodes {
                found.state.heartbeat = heartbeats.as_ref().map(|all| all.get(name).copied());
            }
        }
        let now = self.reader.now();
        let nodes = nodes.into_iter();
        let mut details: Vec<_> = nodes
            .map(|(name, found)| (name, found.details(now)))
            .collect();
        let missing = missing.into_iter();
        details.extend(missing.map(|name| (name, DetailsRead::missing())));
        Ok(details)
    }

    fn heartbeat(&self, name: &str) -> Known<Option<Heartbeat>> {
        match self.heartbeats {
            Some(heartbeats) => Known::Yes(heartbeats.get(name).copied()),
            None => Known::Unknown(Why::NotRead),
        }
    }
}

/// Reads a Node for its row, and for what other tools do to it. Reads no heartbeat.
///
/// # Errors
/// If it can't be read for another reason than a missing right.
pub(crate) async fn with_findings(
    session: &Session<'_>,
    name: &str,
) -> Result<(NodeLookup, Vec<Finding>), ApiError> {
    let reader = Reader::new(session.locks.requests().clone());
    match reader.node(name).await {
        Ok(Some(node)) => {
            let state = NodeState::of(&node, Known::Unknown(Why::NotRead));
            let row = row(name, &node, &state);
            Ok((NodeLookup::Row(row), findings(&node)))
        }
        Ok(None) => Ok((NodeLookup::Missing, Vec::new())),
        Err(error) if error.is_forbidden() => Ok((NodeLookup::Forbidden, Vec::new())),
        Err(error) => Err(error),
    }
}

/// What the medik8s Lease of a node says. `None` also if it can't be read: medik8s may not be installed.
pub(crate) async fn medik8s_finding(session: &Session<'_>, node: &str) -> Option<Finding> {
    let call = Call::get(medik8s_lease_path(node), Accept::Json);
    let answer = session.locks.requests().call(&call).await.ok()?;
    let lease: Lease = serde_json::from_slice(&answer).ok()?;
    node_keys::medik8s_finding(&lease, session.locks.server_time().now())
}

fn right_on_heartbeats() -> String {
    "get heartbeats".to_owned()
}

/// What a whole Node shows. A list keeps no more of each.
struct Found {
    row: NodeRow,
    state: NodeState,
    hook: Option<Attempt>,
    findings: Vec<Finding>,
    keys: NodeKeys,
}

impl Found {
    fn of(name: &str, node: &Node, heartbeat: Known<Option<Heartbeat>>) -> Self {
        let state = NodeState::of(node, heartbeat);
        Self {
            row: row(name, node, &state),
            hook: Attempt::on(node),
            findings: findings(node),
            keys: NodeKeys::on(node),
            state,
        }
    }

    fn is_ready(&self) -> bool {
        let ready = self.state.ready;
        ready.is_some_and(|ready| ready.status == Status::True)
    }

    fn details(self, now: Now) -> DetailsRead {
        DetailsRead {
            row: NodeLookup::Row(self.row),
            node_details: Some(Box::new(NodeDetails {
                health: self.state.health(now),
                annotations: FencingAnnotations {
                    record: self.state.record.map(Box::new),
                    hook: self.hook.map(Box::new),
                },
                findings: self.findings,
                keys: self.keys,
            })),
        }
    }
}

/// The row that kubectl prints for a Node.
fn row(name: &str, node: &Node, state: &NodeState) -> NodeRow {
    let mut status = match state.ready {
        Some(ready) if ready.status == Status::True => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable);
    if cordoned == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    NodeRow {
        name: name.to_owned(),
        status,
        uid: node.metadata.uid.clone().unwrap_or_default(),
        deleting: node.metadata.deletion_timestamp.is_some(),
        labels: node.metadata.labels.clone().unwrap_or_default(),
        fenced: node.annotations().contains_key(record::ANNOTATION),
    }
}
