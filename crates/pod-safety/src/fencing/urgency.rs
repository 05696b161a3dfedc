//! The order in which to fence unreachable nodes, by the pods that can then run on other nodes.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Pod;

use super::cost::leaves;
use crate::controller::{Kind, controller, shown_as};
use crate::facts::pod::{conditions, full_name, node_name};
use crate::taint::OutOfService;

/// A pod that its controller replaces on another node once its node is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPod {
    /// The pod as `NAMESPACE/NAME`.
    pub name: String,
    /// Its scheduling priority.
    pub priority: i32,
    /// Its controller, such as `StatefulSet/web`.
    pub controller: String,
    /// The number of other pods of the controller that are ready; `None` for a Job, whose pods do not serve
    /// requests.
    pub others_ready: Option<usize>,
}

impl WaitingPod {
    /// The sort key: the most urgent pod has the smallest one.
    fn urgency(&self) -> (Reverse<i32>, usize) {
        let others = self.others_ready.unwrap_or(usize::MAX);
        (Reverse(self.priority), others)
    }
}

/// An unreachable node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableNode {
    /// Its name.
    pub name: String,
    /// Its pods that are replaced on other nodes, most urgent first.
    pub pods: Vec<WaitingPod>,
}

impl UnreachableNode {
    /// Compares the most urgent pods first, then the next ones. If all compared pods are equal, the node with
    /// more pods is more urgent.
    fn compare(&self, other: &Self) -> Ordering {
        let urgencies =
            |node: &Self| -> Vec<_> { node.pods.iter().map(WaitingPod::urgency).collect() };
        let (own, others) = (urgencies(self), urgencies(other));
        let shorter = own.len().min(others.len());
        { own[..shorter].cmp(&others[..shorter]) }
            .then(others.len().cmp(&own.len()))
            .then_with(|| self.name.cmp(&other.name))
    }
}

/// The pods of a cluster that determine the urgency of some nodes.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// The pods to replace, by node, each with the uid of its controller.
    waiting: BTreeMap<String, Vec<(String, WaitingPod)>>,
    /// The number of ready pods on other nodes, by the uid of their controller.
    ready: HashMap<String, usize>,
}

impl Workloads {
    /// Starts with these unreachable nodes and without pods.
    #[must_use]
    pub fn on(nodes: impl IntoIterator<Item = String>) -> Self {
        Self {
            waiting: nodes.into_iter().map(|node| (node, Vec::new())).collect(),
            ready: HashMap::new(),
        }
    }

    /// Counts a pod. On the unreachable nodes, pods of a DaemonSet stay. Pods without a controller are lost,
    /// so they are never counted.
    pub fn add(&mut self, pod: &Pod) {
        let Some(controller) = controller(&pod.metadata) else {
            return;
        };
        let kind = Kind::of(controller);
        match self.waiting.get_mut(node_name(pod)) {
            Some(waiting) if kind != Kind::DaemonSet && leaves(pod, &OutOfService::No) => {
                let pod = WaitingPod {
                    name: full_name(pod),
                    priority: { pod.spec.as_ref() }
                        .and_then(|spec| spec.priority)
                        .unwrap_or(0),
                    controller: shown_as(controller),
                    others_ready: (kind != Kind::Job).then_some(0),
                };
                waiting.push((controller.uid.clone(), pod));
            }
            Some(_) => {}
            None if conditions(pod).ready && pod.metadata.deletion_timestamp.is_none() => {
                *self.ready.entry(controller.uid.clone()).or_default() += 1;
            }
            None => {}
        }
    }

    /// The nodes, most urgent first.
    #[must_use]
    pub fn by_urgency(self) -> Vec<UnreachableNode> {
        let Self { waiting, ready } = self;
        let sorted = |pods: Vec<(String, WaitingPod)>| {
            let mut pods: Vec<WaitingPod> = { pods.into_iter() }
                .map(|(uid, pod)| WaitingPod {
                    others_ready: { pod.others_ready }
                        .map(|_| ready.get(&uid).copied().unwrap_or(0)),
                    ..pod
                })
                .collect();
            pods.sort_by(|a, b| (a.urgency(), &a.name).cmp(&(b.urgency(), &b.name)));
            pods
        };
        let mut nodes: Vec<UnreachableNode> = { waiting.into_iter() }
            .map(|(name, pods)| UnreachableNode {
                name,
                pods: sorted(pods),
            })
            .collect();
        nodes.sort_by(UnreachableNode::compare);
        nodes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(node: &str, name: &str, kind: &str, controller: &str, priority: i32) -> Value {
        let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        json!({
            "metadata": {"namespace": "shop", "name": name, "ownerReferences": [{
                "apiVersion": group, "kind": kind, "name": controller, "uid": controller, "controller": true,
            }]},
            "spec": {"nodeName": node, "containers": [], "priority": priority},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    fn order(nodes: &[&str], pods: &[Value]) -> Vec<UnreachableNode> {
        let mut workloads = Workloads::on(nodes.iter().map(|&name| name.to_owned()));
        for pod in pods {
            workloads.add(&serde_json::from_value(pod.clone()).expect("a pod"));
        }
        workloads.by_urgency()
    }

    fn names(nodes: &[UnreachableNode]) -> Vec<&str> {
        nodes.iter().map(|node| &*node.name).collect()
    }

    #[test]
    fn priority_counts_before_availability_and_that_before_the_number_of_pods() {
        let pods = [
            pod("empty", "logs-1", "DaemonSet", "logs", 2_000_000),
            pod("two", "web-1", "ReplicaSet", "web", 0),
            pod("two", "web-2", "ReplicaSet", "web", 0),
            pod("one", "web-3", "ReplicaSet", "web", 0),
            pod("well", "web-4", "ReplicaSet", "web", 0),
            pod("last", "db-0", "StatefulSet", "db", 0),
            pod("first", "api-1", "ReplicaSet", "api", 1000),
            pod("well", "api-2", "ReplicaSet", "api", 1000),
            pod("batch", "sum-1", "Job", "sum", 0),
        ];
        let nodes = order(&["empty", "batch", "one", "two", "last", "first"], &pods);
        assert_eq!(
            names(&nodes),
            ["first", "last", "two", "one", "batch", "empty"]
        );
        let first = WaitingPod {
            name: "shop/api-1".to_owned(),
            priority: 1000,
            controller: "ReplicaSet/api".to_owned(),
            others_ready: Some(1),
        };
        assert_eq!(nodes[0].pods, [first]);
        assert_eq!(nodes[4].pods[0].others_ready, None);
        assert_eq!(nodes[5].pods, []);
    }

    /// No pod on an unreachable node counts as ready, whatever its status says. A terminating pod does not
    /// count either.
    #[test]
    fn only_pods_that_stay_on_other_nodes_are_available() {
        let mut ends = pod("well", "b-2", "StatefulSet", "b", 0);
        ends["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        let mut starts = pod("well", "b-3", "StatefulSet", "b", 0);
        starts["status"]["conditions"][0]["status"] = json!("False");
        let pods = [
            pod("x", "a-0", "StatefulSet", "a", 0),
            pod("well", "a-1", "StatefulSet", "a", 0),
            pod("y", "b-0", "StatefulSet", "b", 0),
            pod("y", "b-1", "StatefulSet", "b", 0),
            ends,
            starts,
        ];
        let nodes = order(&["x", "y"], &pods);
        assert_eq!(names(&nodes), ["y", "x"]);
        assert_eq!(nodes[0].pods[0].others_ready, Some(0));
        assert_eq!(nodes[1].pods[0].others_ready, Some(1));
    }
}
