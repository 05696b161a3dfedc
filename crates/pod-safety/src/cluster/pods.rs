//! Pods, as they are read.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::{Accept, ApiError, Call, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;

impl Reader {
    /// The pod; `None` where there is none.
    ///
    /// # Errors
    /// Where it can't be read.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Pod>, ApiError> {
        self.get(&pod_path(namespace, name)).await
    }

    /// The pods of a namespace that match a label selector; an empty one matches all.
    ///
    /// # Errors
    /// Where they can't be read.
    pub async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, ApiError> {
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let query = format!("labelSelector={}", escape(selector));
        self.list(&path, &query).await
    }

    /// The names of the pods of a namespace, each with what `kubectl get` says of its status: rows, since
    /// whole pods are a hundred times as large.
    ///
    /// # Errors
    /// Where they can't be read.
    pub async fn pod_rows(&self, namespace: &str) -> Result<Vec<(String, String)>, ApiError> {
        #[derive(Deserialize)]
        struct Table {
            #[serde(default)]
            rows: Vec<Row>,
        }
        #[derive(Deserialize)]
        struct Row {
            /// Name, readiness, status and more.
            cells: Vec<Value>,
        }
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let call = Call::get(format!("{path}?includeObject=None"), Accept::Table);
        let table: Table = self.send(&call).await?;
        let named = table.rows.iter().filter_map(|row| {
            let cell = |index: usize| Some(row.cells.get(index)?.as_str()?.to_owned());
            Some((cell(0)?, cell(2)?))
        });
        Ok(named.collect())
    }

    /// The pods of a node, in all namespaces.
    ///
    /// # Errors
    /// Where they can't be read.
    pub async fn pods_of_node(&self, node: &str) -> Result<Vec<Pod>, ApiError> {
        let query = format!("fieldSelector=spec.nodeName%3D{}", escape(node));
        self.list("/api/v1/pods", &query).await
    }
}

pub(super) fn pod_path(namespace: &str, name: &str) -> String {
    format!(
        "/api/v1/namespaces/{}/pods/{}",
        escape(namespace),
        escape(name)
    )
}
