//! Reads all nodes as table rows, and patches one Node on the version that was read.

use std::collections::BTreeMap;

use http::Method;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{ApiError, Call, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;
use crate::facts::NodeRow;
use crate::fencing::record::ANNOTATION;

/// A row of the table that `kubectl get nodes` prints.
#[derive(Deserialize)]
struct Row {
    /// Name, status and other columns.
    cells: Vec<Value>,
    object: RowObject,
}

#[derive(Deserialize)]
struct RowObject {
    metadata: RowMetadata,
}

#[derive(Deserialize)]
struct RowMetadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Reader {
    /// All nodes as table rows. Whole Nodes are several times larger.
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub(super) async fn node_rows(&self) -> Result<Vec<NodeRow>, ApiError> {
        let read = |row: Row| {
            let status = row.cells.get(1).and_then(Value::as_str).unwrap_or_default();
            let RowMetadata {
                name,
                labels,
                annotations,
            } = row.object.metadata;
            Some(NodeRow {
                name,
                is_ready: status.split(',').any(|word| word == "Ready"),
                is_cordoned: status.split(',').any(|word| word == "SchedulingDisabled"),
                labels,
                is_annotated: annotations.contains_key(ANNOTATION),
            })
        };
        self.rows("/api/v1/nodes", "includeObject=Metadata", read)
            .await
    }

    /// Applies a merge patch to a Node. Returns the Node as the server stored it, because an admission
    /// webhook may have changed it.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not respond in time.
    ///
    /// # Caveats
    /// If the error [leaves writes unknown](ApiError::leaves_writes_unknown), the patch may have taken effect
    /// or may still take effect.
    pub async fn patch_node(
        &self,
        name: &str,
        patch: &Value,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<Node, ApiError> {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let call = Call::write(
            Method::PATCH,
            format!(
                "/api/v1/nodes/{}?fieldManager={}{dry_run}",
                escape(name),
                escape(field_manager)
            ),
            "application/merge-patch+json",
            patch,
        );
        let answer = self.requests().call(&call).await?;
        serde_json::from_slice(&answer).map_err(|error| ApiError::Unreadable(error.to_string()))
    }
}
