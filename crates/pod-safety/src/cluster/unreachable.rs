//! The unreachable nodes of a cluster, and the order in which to fence them.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::Error;

use super::Reader;
use super::pods::on_pods;
use crate::fencing::urgency::{UnreachableNode, Workloads};
use crate::node_health::Health;

impl Reader {
    /// The names of the nodes that Kubernetes reports as unreachable and that are not fenced.
    ///
    /// # Errors
    /// If the Nodes can't be read.
    pub async fn unreachable_nodes(&self) -> Result<Vec<String>, Error> {
        let nodes = self.all_nodes().await?;
        let now = self.now();
        let unreachable =
            |name: &str| matches!(nodes.health(name, now), Some(Health::Unreachable { .. }));
        Ok({ nodes.names() }
            .filter(|name| unreachable(name))
            .map(ToOwned::to_owned)
            .collect())
    }

    /// Sorts `nodes`, which are unreachable: nodes whose pods are needed most come first. Reads all pods of
    /// the cluster.
    ///
    /// # Errors
    /// If the pods can't be read.
    pub async fn by_urgency(&self, nodes: Vec<String>) -> Result<Vec<UnreachableNode>, Error> {
        let mut workloads = Workloads::on(nodes);
        let count = |pod: Pod| {
            workloads.add(&pod);
            None::<()>
        };
        let read = self.select("/api/v1/pods", "", count).await;
        read.map_err(|error| on_pods("list", None).explain(error))?;
        Ok(workloads.by_urgency())
    }
}
