//! Reads the state of a node for fencing.

use futures::future::join;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{ApiError, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;
use crate::constants::HEARTBEATS;
use crate::facts::Remediation;
use crate::fencing::record::ANNOTATION;
use crate::fencing::{Attempt, Machine};
use crate::known::Known;
use crate::node_health::NodeState;

/// A Node, with what other objects show about it.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The Node as the server sent it. Writes are based on it.
    pub raw: Value,
    /// The same Node as a typed object.
    pub node: Node,
    /// Its readiness, its heartbeat and the record of its fencing.
    pub state: NodeState,
    /// The operator that repairs the node, if any.
    pub remediation: Known<Option<String>>,
}

impl Evidence {
    /// The Node's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.node.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The Node's resource version.
    #[must_use]
    pub fn version(&self) -> &str {
        let version = self.node.metadata.resource_version.as_deref();
        version.unwrap_or_default()
    }

    /// The machine that the Node represents.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::of(&self.node)
    }

    /// Whether the Node has our `fenced` annotation, even if its value is not a valid record.
    #[must_use]
    pub fn is_annotated(&self) -> bool {
        let annotations = self.node.metadata.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.contains_key(ANNOTATION))
    }

    /// The hook that was last announced on the Node, unless the announcement was removed.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        Attempt::on(&self.node)
    }
}

impl Reader {
    /// The state of a node; `None` if there is no such Node.
    ///
    /// # Errors
    /// If the Node can't be read. Other facts that can't be read are unknown.
    pub async fn evidence(&self, name: &str) -> Result<Option<Evidence>, ApiError> {
        let path = format!("/api/v1/nodes/{}", escape(name));
        let (raw, (heartbeat, remediation)) = join(
            self.get::<Value>(&path),
            join(self.heartbeat(name), self.remediation(name)),
        )
        .await;
        let Some(raw) = raw? else {
            return Ok(None);
        };
        let node =
            Node::deserialize(&raw).map_err(|error| ApiError::Unreadable(error.to_string()))?;
        let heartbeat = Known::of(heartbeat, || {
            format!("get leases in namespace {HEARTBEATS}")
        });
        let remediation =
            Remediation::on(&node, remediation).map(|remediation| match remediation {
                Remediation::Running { holder } | Remediation::Tainted { taint: holder } => {
                    Some(holder)
                }
                Remediation::None => None,
            });
        Ok(Some(Evidence {
            state: NodeState::of(&node, heartbeat),
            remediation,
            raw,
            node,
        }))
    }
}
