//! Reads what is to be deleted, and everything that the checks need to know about it.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{join, try_join_all};
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::Now;
use maintenance_lease::{Error, NodeLease};
use pod_safety::Known;
use pod_safety::facts::{Evidence, Facts, FencingProgress, Lock};
use pod_safety::node_health::Heartbeat;
use pod_safety::owners::PodOwner;
use pod_safety::report::{DeletionTarget, Report};

use super::context::Run;
use super::targets::Targets;
use crate::error::{Failure, NothingFound};

/// What was read.
pub(super) struct Findings {
    /// One per pod, or the Node's first and then those of its pods.
    pub(super) reports: Vec<Report>,
    /// The facts about the pods, in the same order; empty if a Node is deleted.
    pub(super) pods: Vec<Facts>,
    /// The owners of the pods that are deleted with each target.
    pub(super) owners: Vec<BTreeSet<PodOwner>>,
    /// The locks of the nodes involved, if known.
    pub(super) locks: BTreeMap<String, Known<Lock>>,
    /// The nodes that exist.
    pub(super) nodes: BTreeSet<String>,
    /// The heartbeats to watch before their nodes count as unreachable.
    pub(super) to_watch: Vec<(String, Heartbeat)>,
}

/// The key of a target: kind, namespace and name.
pub(super) type Key = (&'static str, Option<String>, String);

/// The first reports.
pub(super) type First = BTreeMap<Key, Report>;

impl Run<'_> {
    /// Reads every target that still exists. `first` is what was seen before, if anything; what is gone by
    /// now is left out.
    pub(super) async fn findings(&self, first: Option<&First>) -> Result<Findings, Failure> {
        match (self.targets, first) {
            (Targets::Node(node), _) => self.at_node(node, first).await,
            (_, Some(first)) => {
                let read = first
                    .keys()
                    .map(|(_, _, name)| self.reader.pod(self.namespace(), name));
                let pods: Vec<Pod> = try_join_all(read).await?.into_iter().flatten().collect();
                Ok(self.at_pods(&pods, Some(first)).await)
            }
            (Targets::Pods(names), None) => {
                let read = names.iter().map(|name| async move {
                    let pod = self.reader.pod(self.namespace(), name).await?;
                    pod.ok_or_else(|| self.no_such_pod(name))
                });
                Ok(self.at_pods(&try_join_all(read).await?, None).await)
            }
            (Targets::Labeled(selector), None) => {
                let pods = self.reader.pods(self.namespace(), selector).await?;
                if pods.is_empty() {
                    return Err(Failure::NothingFound(NothingFound::Pods {
                        namespace: self.namespace().to_owned(),
                        selector: selector.clone(),
                    }));
                }
                Ok(self.at_pods(&pods, None).await)
            }
        }
    }

    async fn at_pods(&self, pods: &[Pod], first: Option<&First>) -> Findings {
        let now = self.reader.now();
        let evidence = self.evidence(pods, &[], now).await;
        let mut findings = Findings::of(&evidence, now);
        for pod in pods {
            let facts = Facts::of(pod, &evidence);
            let before = first.and_then(|first| first.get(&self.pod_key(&facts.pod.name)));
            let uid = before.map(|report| &*report.target.uid);
            findings.reports.push(Report::on_pod(&facts, uid, now));
            findings.pods.push(facts);
            findings
                .owners
                .push(PodOwner::of(pod).into_iter().collect());
        }
        findings
    }

    async fn at_node(&self, node: &str, first: Option<&First>) -> Result<Findings, Failure> {
        let (pods, may_delete) = join(
            self.reader.pods_of_node(node),
            self.reader.may("delete", "nodes", None),
        )
        .await;
        let pods = pods?;
        let now = self.reader.now();
        let evidence = self.evidence(&pods, &[node], now).await;
        let Some(facts) = evidence.nodes.get(node) else {
            return Err(Failure::Lock(Error::NodeNotFound(node.to_owned())));
        };
        match &facts.node {
            Known::Yes(None) if first.is_none() => {
                return Err(Failure::Lock(Error::NodeNotFound(node.to_owned())));
            }
            Known::Unknown(why) => {
                let (node, why) = (node.to_owned(), why.clone());
                return Err(Failure::Unread { node, why });
            }
            Known::Yes(_) => {}
        }
        let before = first.and_then(|first| first.get(&("node", None, node.to_owned())));
        let uid = before.map(|report| &*report.target.uid);
        let report = Report::on_node(node, facts, &may_delete, uid, now);
        let mut findings = Findings::of(&evidence, now);
        findings.reports.push(report);
        findings.reports.extend(
            pods.iter()
                .map(|pod| Report::on_pod_with_its_node(&Facts::of(pod, &evidence), now)),
        );
        let owners = pods.iter().filter_map(PodOwner::of);
        findings.owners.push(owners.collect());
        Ok(findings)
    }

    async fn evidence(&self, pods: &[Pod], nodes: &[&str], now: Now) -> Evidence {
        let is_own = |lease: &NodeLease| self.is_own(lease);
        let locks = &self.session.locks;
        self.reader.gather(locks, is_own, pods, nodes, now).await
    }

    fn pod_key(&self, name: &str) -> Key {
        ("pod", Some(self.namespace().to_owned()), name.to_owned())
    }

    fn no_such_pod(&self, name: &str) -> Failure {
        Failure::NothingFound(NothingFound::Pod {
            namespace: self.namespace().to_owned(),
            name: name.to_owned(),
        })
    }
}

impl Findings {
    /// An empty result, with what is known about the nodes.
    fn of(evidence: &Evidence, now: Now) -> Self {
        Self {
            reports: Vec::new(),
            pods: Vec::new(),
            owners: Vec::new(),
            locks: locks(evidence),
            nodes: there(evidence),
            to_watch: to_watch(evidence, now),
        }
    }

    /// The reports by target.
    pub(super) fn first(&self) -> First {
        let reports = self.reports.iter();
        reports
            .map(|report| (key(&report.target), report.clone()))
            .collect()
    }

    /// The other holders of the nodes.
    pub(super) fn holders(&self) -> impl Iterator<Item = &str> {
        self.locks.values().filter_map(|lock| match lock {
            Known::Yes(Lock::Another { holder, .. }) => Some(&**holder),
            _ => None,
        })
    }

    /// A node that somebody else holds for a fencing, and whether it is fenced already.
    pub(super) fn fencing(&self) -> Option<(&str, bool)> {
        self.locks.iter().find_map(|(node, lock)| match lock {
            Known::Yes(Lock::Another {
                fencing: Some(progress),
                ..
            }) => Some((&**node, *progress == FencingProgress::Fenced)),
            _ => None,
        })
    }
}

/// The key of `target`.
pub(super) fn key(target: &DeletionTarget) -> Key {
    let DeletionTarget {
        kind,
        namespace,
        name,
        ..
    } = target;
    (kind, namespace.clone(), name.clone())
}

fn locks(evidence: &Evidence) -> BTreeMap<String, Known<Lock>> {
    let nodes = evidence.nodes.iter();
    nodes
        .map(|(name, node)| (name.clone(), node.lock.clone()))
        .collect()
}

fn to_watch(evidence: &Evidence, now: Now) -> Vec<(String, Heartbeat)> {
    let nodes = evidence.nodes.iter();
    let to_watch = nodes.filter_map(|(name, facts)| {
        let node = facts.node.value()?.as_ref()?;
        Some((name.clone(), node.state.to_watch(now)?))
    });
    to_watch.collect()
}

fn there(evidence: &Evidence) -> BTreeSet<String> {
    let nodes = evidence.nodes.iter();
    nodes
        .filter(|(_, node)| !matches!(node.node, Known::Yes(None)))
        .map(|(name, _)| name.clone())
        .collect()
}
