//! Pods, as they are read.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::{ApiError, Error, Right, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;
use crate::known::Known;

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

    /// Name, readiness and status of the pods of a namespace, as `kubectl get` shows them.
    async fn rows_of_pods(&self, namespace: &str) -> Result<Vec<[String; 3]>, ApiError> {
        #[derive(Deserialize)]
        struct Row {
            /// Name, readiness, status and more.
            cells: Vec<Value>,
        }
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let named = |row: Row| {
            let cell = |index: usize| Some(row.cells.get(index)?.as_str()?.to_owned());
            let ((name, ready), status) = cell(0).zip(cell(1)).zip(cell(2))?;
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
