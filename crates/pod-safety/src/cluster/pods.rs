//! Pods, as they are read.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::{ApiError, Error, Right, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;
use crate::known::Known;

/// A row that `kubectl get` prints.
#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
}

impl Row {
    fn cell(&self, index: usize) -> Option<String> {
        Some(self.cells.get(index)?.as_str()?.to_owned())
    }
}

impl Reader {
    /// The pod; `None` if there is none.
    ///
    /// # Errors
    /// If it can't be read.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Pod>, Error> {
        let read = self.get(&pod_path(namespace, name)).await;
        read.map_err(|error| on_pods("get", Some(namespace)).explain(error))
    }

    /// The pods of a namespace that match a label selector; an empty one matches all.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let query = format!("labelSelector={}", escape(selector));
        let read = self.list(&path, &query).await;
        read.map_err(|error| on_pods("list", Some(namespace)).explain(error))
    }

    /// The names of the pods of a namespace, each with what `kubectl get` says of its status: rows, since
    /// whole pods are a hundred times as large.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn pod_rows(&self, namespace: &str) -> Result<Vec<(String, String)>, ApiError> {
        let rows = self.rows_of_pods(namespace).await?;
        let named = rows.into_iter().map(|[name, _, status]| (name, status));
        Ok(named.collect())
    }

    /// The same of the PersistentVolumeClaims of a namespace.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn claim_rows(&self, namespace: &str) -> Result<Vec<(String, String)>, ApiError> {
        let namespace = escape(namespace);
        self.names_and_statuses(&format!(
            "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        ))
        .await
    }

    /// The same of the namespaces.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn namespace_rows(&self) -> Result<Vec<(String, String)>, ApiError> {
        self.names_and_statuses("/api/v1/namespaces").await
    }

    /// The first two cells of the rows.
    async fn names_and_statuses(&self, path: &str) -> Result<Vec<(String, String)>, ApiError> {
        self.rows(path, "includeObject=None", |row: Row| {
            row.cell(0).zip(row.cell(1))
        })
        .await
    }

    /// Name, readiness and status of the pods of a namespace, as `kubectl get` shows them.
    async fn rows_of_pods(&self, namespace: &str) -> Result<Vec<[String; 3]>, ApiError> {
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let named = |row: Row| {
            let ((name, ready), status) = row.cell(0).zip(row.cell(1)).zip(row.cell(2))?;
            Some([name, ready, status])
        };
        self.rows(&path, "includeObject=None", named).await
    }

    /// The names of the pods of a namespace that are ready.
    pub(super) async fn ready_pods(&self, namespace: &str) -> Known<Vec<String>> {
        let rows = self.rows_of_pods(namespace).await;
        let is_ready = |cells: &[String; 3]| {
            let all = cells[1]
                .split_once('/')
                .is_some_and(|(ready, all)| ready == all);
            all && cells[2] == "Running"
        };
        Known::of(rows, || format!("list pods in namespace {namespace}")).map(|rows| {
            let ready = rows.into_iter().filter(is_ready);
            ready.map(|[name, ..]| name).collect()
        })
    }

    /// The pods of a node, in all namespaces.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn pods_of_node(&self, node: &str) -> Result<Vec<Pod>, Error> {
        let query = format!("fieldSelector=spec.nodeName%3D{}", escape(node));
        let read = self.list("/api/v1/pods", &query).await;
        read.map_err(|error| on_pods("list", None).explain(error))
    }
}

/// The right to `verb` pods, in a namespace or in all.
pub(super) fn on_pods(verb: &'static str, namespace: Option<&str>) -> Right {
    Right {
        verb,
        resource: "pods",
        namespace: namespace.map(ToOwned::to_owned),
    }
}

pub(super) fn pod_path(namespace: &str, name: &str) -> String {
    format!(
        "/api/v1/namespaces/{}/pods/{}",
        escape(namespace),
        escape(name)
    )
}
