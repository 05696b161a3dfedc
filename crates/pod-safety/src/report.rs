//! All verdicts on one target.

use std::collections::BTreeMap;

use maintenance_lease::protocol::Now;

use crate::checks::{self, FENCED, Level, UNREACHABLE, Verdict};
use crate::facts::{Facts, NodeFacts, PodSnapshot, PresentNode};
use crate::known::Known;

/// The object to delete, or a pod that is deleted with its Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionTarget {
    /// `pod` or `node`.
    pub kind: &'static str,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid; empty if it can't be read.
    pub uid: String,
    /// Its resource version; empty if it can't be read.
    pub resource_version: String,
    /// Its node, if it has one.
    pub node: Option<String>,
}

/// All verdicts on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The object that the report is about.
    pub target: DeletionTarget,
    /// The verdicts, in the order of the checks.
    pub checks: Vec<Verdict>,
}

impl Report {
    /// The report on a pod that is to be force-deleted. `first` is the uid in an earlier report, if there was
    /// one.
    #[must_use]
    pub fn on_pod(facts: &Facts, first: Option<&str>, now: Now) -> Self {
        Self {
            target: DeletionTarget::of_pod(&facts.pod),
            checks: checks::of_pod(facts, first, now),
        }
    }

    /// The report on a pod whose Node is to be deleted.
    #[must_use]
    pub fn on_pod_with_its_node(facts: &Facts, now: Now) -> Self {
        Self {
            target: DeletionTarget::of_pod(&facts.pod),
            checks: checks::of_pod_with_its_node(facts, now),
        }
    }

    /// The report on a Node that is to be deleted. `first` is the uid in an earlier report, if there was one.
    #[must_use]
    pub fn on_node(
        name: &str,
        facts: &NodeFacts,
        may_delete: &Known<bool>,
        first: Option<&str>,
        now: Now,
    ) -> Self {
        Self {
            target: DeletionTarget::of_node(name, &facts.node),
            checks: checks::of_node(facts, may_delete, first, now),
        }
    }

    /// The node, if it is unreachable and not fenced. It could be fenced instead.
    #[must_use]
    pub fn to_fence(&self) -> Option<&str> {
        let found = |id, level| {
            let mut checks = self.checks.iter();
            checks.any(|verdict| verdict.id == id && verdict.level == level)
        };
        let is_unreachable = found(UNREACHABLE, Level::Info) && !found(FENCED, Level::Ok);
        self.target.node().filter(|_| is_unreachable)
    }

    /// The ids of the risks to accept, without duplicates.
    #[must_use]
    pub fn to_accept(&self) -> Vec<&'static str> {
        let mut ids = Vec::new();
        for id in self.checks.iter().filter_map(Verdict::accepted_as) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// The worst level of each check.
    pub(crate) fn worst(&self) -> BTreeMap<&'static str, Level> {
        let mut worst = BTreeMap::new();
        for verdict in &self.checks {
            let level = worst.entry(verdict.id).or_insert(verdict.level);
            *level = verdict.level.max(*level);
        }
        worst
    }
}

impl DeletionTarget {
    /// The node: the target itself, or the node of the pod.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self.kind {
            "node" => Some(&self.name),
            _ => self.node.as_deref(),
        }
    }

    fn of_pod(pod: &PodSnapshot) -> Self {
        Self {
            kind: "pod",
            namespace: Some(pod.namespace.clone()),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            resource_version: pod.version.clone(),
            node: Some(pod.node.clone()).filter(|node| !node.is_empty()),
        }
    }

    fn of_node(name: &str, node: &Known<Option<PresentNode>>) -> Self {
        let (uid, resource_version) = match node {
            Known::Yes(Some(node)) => (node.uid.clone(), node.version.clone()),
            _ => Default::default(),
        };
        Self {
            kind: "node",
            namespace: None,
            name: name.to_owned(),
            uid,
            resource_version,
            node: None,
        }
    }
}

impl std::fmt::Display for DeletionTarget {
    /// As kubectl prints it, such as `pod/web-0`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_node_could_be_fenced_unless_it_was() {
        let target = |kind, name: &str, node: Option<&str>| DeletionTarget {
            kind,
            namespace: None,
            name: name.to_owned(),
            uid: String::new(),
            resource_version: String::new(),
            node: node.map(ToOwned::to_owned),
        };
        let unreachable = || Verdict::info(UNREACHABLE, "the node is unreachable");
        let placed = || target("pod", "web-0", Some("worker-1"));
        for (target, checks, expected) in [
            (placed(), vec![unreachable()], Some("worker-1")),
            (
                target("node", "worker-1", None),
                vec![unreachable()],
                Some("worker-1"),
            ),
            (placed(), vec![], None),
            (
                target("pod", "web-0", None),
                vec![Verdict::ok(UNREACHABLE, "it was never placed")],
                None,
            ),
            (
                placed(),
                vec![unreachable(), Verdict::ok(FENCED, "it was fenced")],
                None,
            ),
            (
                placed(),
                vec![unreachable(), Verdict::info(FENCED, "an earlier boot was")],
                Some("worker-1"),
            ),
        ] {
            let report = Report { target, checks };
            assert_eq!(report.to_fence(), expected, "{report:?}");
        }
    }
}
