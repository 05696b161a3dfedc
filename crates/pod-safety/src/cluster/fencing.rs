//! What fencing reads of a node.

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

/// A Node, with what is seen of it elsewhere.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// As the server sent it: what a write is based on.
    pub raw: Value,
    /// The same, as far as its type knows it.
    pub node: Node,
    /// Its signs of life, and its record.
    pub state: NodeState,
    /// Who else repairs it, if anybody.
    pub remediation: Known<Option<String>>,
}

impl Evidence {
    /// The Node's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.node.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The version that was read.
    #[must_use]
    pub fn version(&self) -> &str {
        let version = self.node.metadata.resource_version.as_deref();
        version.unwrap_or_default()
    }

    /// The machine behind it.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::of(&self.node)
    }

    /// It carries our annotation, be it a record or not.
    #[must_use]
    pub fn is_annotated(&self) -> bool {
        let annotations = self.node.metadata.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.contains_key(ANNOTATION))
    }

    /// The hook that was announced on it last, if that was not taken back.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        Attempt::on(&self.node)
    }
}

impl Reader {
    /// What is seen of a node; `None` if there is no such Node.
    ///
    /// # Errors
    /// If the Node can't be read. Anything else that can't is unknown.
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
