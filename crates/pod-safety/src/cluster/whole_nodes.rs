//! Lists whole Nodes. Most of a Node is its list of images, which no caller needs, so it is not parsed.
//!
//! Field numbers are those of `generated.proto` in `k8s.io/api/core/v1` and `k8s.io/apimachinery`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    FieldsV1, ManagedFieldsEntry, ObjectMeta, Time,
};
use k8s_openapi::jiff::Timestamp;
use maintenance_lease::{ApiError, Encoded, escape};
use prost::Message;
use serde::Deserialize;

use super::Reader;

impl Reader {
    /// The results of `keep` for each Node, or for each Node that matches the label `selector`, in the
    /// server's order. Only these fields of a Node are set:
    ///
    /// - its name, uid, deletion time, labels and annotations
    /// - the managed fields that own its metadata or spec
    /// - its provider id, its taints, and whether it is cordoned
    /// - the type, status and times of its conditions, and its boot id
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub async fn select_nodes<T: Send>(
        &self,
        selector: Option<&str>,
        mut keep: impl FnMut(Node) -> Option<T> + Send,
    ) -> Result<Vec<T>, ApiError> {
        let read = |node: Encoded<'_>| Ok(keep(read(node)?));
        let path = match selector {
            Some(selector) => format!("/api/v1/nodes?labelSelector={}", escape(selector)),
            None => "/api/v1/nodes".to_owned(),
        };
        self.requests().list_encoded_pages(&path, read).await
    }
}

fn read(node: Encoded<'_>) -> Result<Node, ApiError> {
    node.read::<Node, JsonNode, NodeMessage>()
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

#[derive(Clone, PartialEq, Message)]
struct NodeMessage {
    #[prost(message, required, tag = "1")]
    metadata: MetadataMessage,
    #[prost(message, optional, tag = "2")]
    spec: Option<SpecMessage>,
    #[prost(message, optional, tag = "3")]
    status: Option<StatusMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<TimeMessage>,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "17")]
    managed_fields: Vec<ManagedFieldsMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct ManagedFieldsMessage {
    #[prost(string, tag = "1")]
    manager: String,
    #[prost(string, tag = "2")]
    operation: String,
    #[prost(message, optional, tag = "4")]
    time: Option<TimeMessage>,
    #[prost(message, optional, tag = "7")]
    fields_v1: Option<FieldsMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct FieldsMessage {
    /// The fields as JSON.
    #[prost(string, tag = "1")]
    raw: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpecMessage {
    #[prost(string, tag = "3")]
    provider_id: String,
    #[prost(bool, tag = "4")]
    unschedulable: bool,
    #[prost(message, repeated, tag = "5")]
    taints: Vec<TaintMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct TaintMessage {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
    #[prost(string, tag = "3")]
    effect: String,
    #[prost(message, optional, tag = "4")]
    time_added: Option<TimeMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct StatusMessage {
    #[prost(message, repeated, tag = "4")]
    conditions: Vec<ConditionMessage>,
    #[prost(message, optional, tag = "7")]
    node_info: Option<SystemInfoMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct ConditionMessage {
    #[prost(string, tag = "1")]
    condition_type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "3")]
    last_heartbeat_time: Option<TimeMessage>,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<TimeMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SystemInfoMessage {
    #[prost(string, tag = "3")]
    boot_id: String,
}

/// A time that is not set has no fields.
#[derive(Clone, Copy, PartialEq, Message)]
struct TimeMessage {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// A time or JSON text in a protobuf Node that the typed Node cannot hold.
#[derive(Debug, thiserror::Error)]
enum InvalidNode {
    #[error(transparent)]
    Time(#[from] k8s_openapi::jiff::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl TryFrom<NodeMessage> for Node {
    type Error = InvalidNode;

    fn try_from(node: NodeMessage) -> Result<Self, InvalidNode> {
        Ok(Self {
            metadata: node.metadata.try_into()?,
            spec: node.spec.map(TryInto::try_into).transpose()?,
            status: node.status.map(TryInto::try_into).transpose()?,
        })
    }
}

impl TryFrom<MetadataMessage> for ObjectMeta {
    type Error = InvalidNode;

    fn try_from(metadata: MetadataMessage) -> Result<Self, InvalidNode> {
        let MetadataMessage {
            labels,
            annotations,
            ..
        } = metadata;
        Ok(Self {
            name: non_empty(metadata.name),
            uid: non_empty(metadata.uid),
            deletion_timestamp: time(metadata.deletion_timestamp)?,
            labels: (!labels.is_empty()).then_some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            managed_fields: all(metadata.managed_fields)?,
            ..Self::default()
        })
    }
}

impl TryFrom<ManagedFieldsMessage> for ManagedFieldsEntry {
    type Error = InvalidNode;

    fn try_from(entry: ManagedFieldsMessage) -> Result<Self, InvalidNode> {
        let owned = entry.fields_v1.map(|fields| fields.raw);
        // The entry of the kubelet, which owns the status, is the longest. It is not needed.
        let owned = owned.filter(|owned| owns_more_than_status(owned));
        let owned = owned.map(|owned| serde_json::from_str(&owned));
        Ok(Self {
            manager: non_empty(entry.manager),
            operation: non_empty(entry.operation),
            time: time(entry.time)?,
            fields_v1: owned.transpose()?.map(FieldsV1),
            ..Self::default()
        })
    }
}

impl TryFrom<SpecMessage> for NodeSpec {
    type Error = InvalidNode;

    fn try_from(spec: SpecMessage) -> Result<Self, InvalidNode> {
        Ok(Self {
            provider_id: non_empty(spec.provider_id),
            unschedulable: spec.unschedulable.then_some(true),
            taints: all(spec.taints)?,
            ..Self::default()
        })
    }
}

impl TryFrom<TaintMessage> for Taint {
    type Error = InvalidNode;

    fn try_from(taint: TaintMessage) -> Result<Self, InvalidNode> {
        Ok(Self {
            key: taint.key,
            value: non_empty(taint.value),
            effect: taint.effect,
            time_added: time(taint.time_added)?,
        })
    }
}

impl TryFrom<StatusMessage> for NodeStatus {
    type Error = InvalidNode;

    fn try_from(status: StatusMessage) -> Result<Self, InvalidNode> {
        let node_info = status.node_info.map(|info| NodeSystemInfo {
            boot_id: info.boot_id,
            ..NodeSystemInfo::default()
        });
        Ok(Self {
            conditions: all(status.conditions)?,
            node_info,
            ..Self::default()
        })
    }
}

impl TryFrom<ConditionMessage> for NodeCondition {
    type Error = InvalidNode;

    fn try_from(condition: ConditionMessage) -> Result<Self, InvalidNode> {
        Ok(Self {
            type_: condition.condition_type,
            status: condition.status,
            last_heartbeat_time: time(condition.last_heartbeat_time)?,
            last_transition_time: time(condition.last_transition_time)?,
            ..Self::default()
        })
    }
}

fn owns_more_than_status(owned: &str) -> bool {
    owned.contains("\"f:metadata\"") || owned.contains("\"f:spec\"")
}

/// Empty strings become `None`, because JSON omits them.
fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Empty lists become `None`, because JSON omits them.
fn all<M, T>(messages: Vec<M>) -> Result<Option<Vec<T>>, InvalidNode>
where
    M: TryInto<T, Error = InvalidNode>,
{
    let all: Vec<T> = messages
        .into_iter()
        .map(TryInto::try_into)
        .collect::<Result<_, _>>()?;
    Ok((!all.is_empty()).then_some(all))
}

fn time(message: Option<TimeMessage>) -> Result<Option<Time>, InvalidNode> {
    let time = message.and_then(|time| Some((time.seconds?, time.nanos)));
    let time = time.map(|(seconds, nanos)| Timestamp::new(seconds, nanos));
    Ok(time.transpose()?.map(Time))
}
