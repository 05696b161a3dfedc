//! Reads what the controllers of a node's pods promise.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use futures::join;
use k8s_openapi::api::core::v1::Pod;

use super::Reader;
use super::objects::needed;
use crate::controller::{Kind, controller};
use crate::facts::NamespaceEvidence;
use crate::facts::pod::namespace;
use crate::fencing::cost::{is_deleted, twice};
use crate::taint::OutOfService;

/// What must be read in one namespace because of its pods. Other kinds make the same promise to all their
/// pods.
#[derive(Default)]
struct Needs {
    jobs: bool,
    /// The uids of the ReplicaSets of the pods.
    replica_sets: BTreeSet<String>,
}

impl Reader {
    /// The pods (`NAMESPACE/NAME`) that may run twice if their node is fenced but only cut off, although their
    /// controllers promise to run only one. Each kind is listed once per namespace. What can't be read may
    /// promise that. `taint` is the out-of-service taint that the node has.
    pub async fn run_twice_if_isolated(&self, pods: &[Pod], taint: &OutOfService) -> Vec<String> {
        let deleted: Vec<&Pod> = pods.iter().filter(|pod| is_deleted(pod, taint)).collect();
        let mut needs: BTreeMap<&str, Needs> = BTreeMap::new();
        for pod in &deleted {
            let Some(owner) = controller(&pod.metadata) else {
                continue;
            };
            let needs = needs.entry(namespace(pod)).or_default();
            match Kind::of(owner) {
                Kind::Job => needs.jobs = true,
                Kind::ReplicaSet => _ = needs.replica_sets.insert(owner.uid.clone()),
                _ => {}
            }
        }
        let namespaces = needs.into_iter().map(|(namespace, needs)| async move {
            let ((replica_sets, deployments), jobs) = join!(
                self.replica_sets(namespace, &needs.replica_sets),
                needed(needs.jobs, || self.all_in(
                    namespace,
                    "/apis/batch/v1",
                    "jobs"
                )),
            );
            let evidence = NamespaceEvidence {
                replica_sets,
                deployments,
                jobs,
                ..NamespaceEvidence::default()
            };
            (namespace.to_owned(), evidence)
        });
        let namespaces = join_all(namespaces).await.into_iter().collect();
        twice(&deleted, &namespaces)
    }
}
