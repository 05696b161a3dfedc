//! Lists whole Nodes. Most of a Node is its list of images, which no caller needs, so it is not parsed.

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use maintenance_lease::{ApiError, escape};
use serde::Deserialize;

use super::Reader;

impl Reader {
    /// The results of `keep` for each Node, or for each Node that matches the label `selector`, in the
    /// server's order. Of a Node's status, only the conditions and the system information are set.
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub async fn select_nodes<T: Send>(
        &self,
        selector: Option<&str>,
        mut keep: impl FnMut(Node) -> Option<T> + Send,
    ) -> Result<Vec<T>, ApiError> {
        let query = selector.map_or_else(String::new, |selector| {
            format!("labelSelector={}", escape(selector))
        });
        let keep = |node: JsonNode| keep(node.into());
        self.select("/api/v1/nodes", &query, keep).await
    }
}

#[derive(Deserialize)]
struct JsonNode {
    metadata: ObjectMeta,
    spec: Option<NodeSpec>,
    status: Option<JsonStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonStatus {
    conditions: Option<Vec<NodeCondition>>,
    node_info: Option<NodeSystemInfo>,
}

impl From<JsonNode> for Node {
    fn from(node: JsonNode) -> Self {
        let status = node.status.map(|status| NodeStatus {
            conditions: status.conditions,
            node_info: status.node_info,
            ..NodeStatus::default()
        });
        Self {
            metadata: node.metadata,
            spec: node.spec,
            status,
        }
    }
}
