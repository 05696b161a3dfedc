//! Reads pods, claims and namespaces.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::{ApiError, Error, Right, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;
use crate::facts::ReadyMember;
use crate::known::Known;

/// The label that StatefulSets set on their members.
const MEMBER: &str = "statefulset.kubernetes.io/pod-name";

/// A row of the table that `kubectl get` prints.
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
    /// Reads a pod; `None` if it does not exist.
    ///
    /// # Errors
    /// If the pod can't be read.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Pod>, Error> {
        let read = self.get(&pod_path(namespace, name)).await;
        read.map_err(|error| on_pods("get", Some(namespace)).explain(error))
    }

    /// The pods of a namespace that match a label selector; an empty selector matches all.
    ///
    /// # Errors
    /// If the pods can't be read.
    pub async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let query = format!("labelSelector={}", escape(selector));
        let read = self.list(&path, &query).await;
        read.map_err(|error| on_pods("list", Some(namespace)).explain(error))
    }

    /// The names of the pods of a namespace, each with its status as `kubectl get` shows it. Reads table
    /// rows, because whole pods are a hundred times larger.
    ///
    /// # Errors
    /// If the pods can't be read.
    pub async fn pod_rows(&self, namespace: &str) -> Result<Vec<(String, String)>, ApiError> {
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let named = |row: Row| row.cell(0).zip(row.cell(2));
        self.rows(&path, "includeObject=None", named).await
    }

    /// The names of the PersistentVolumeClaims of a namespace, each with its status as `kubectl get` shows
    /// it.
    ///
    /// # Errors
    /// If the claims can't be read.
    pub async fn claim_rows(&self, namespace: &str) -> Result<Vec<(String, String)>, ApiError> {
        let namespace = escape(namespace);
        self.names_and_statuses(&format!(
            "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        ))
        .await
    }

    /// The names of all namespaces, each with its status as `kubectl get` shows it.
    ///
    /// # Errors
    /// If the namespaces can't be read.
    pub async fn namespace_rows(&self) -> Result<Vec<(String, String)>, ApiError> {
        self.names_and_statuses("/api/v1/namespaces").await
    }

    /// The first two cells of each row.
    async fn names_and_statuses(&self, path: &str) -> Result<Vec<(String, String)>, ApiError> {
        self.rows(path, "includeObject=None", |row: Row| {
            row.cell(0).zip(row.cell(1))
        })
        .await
    }

    /// The ready members of the StatefulSets of a namespace. Reads whole pods, because table rows do not have
    /// the condition `Ready`, but no other pods of the namespace.
    pub(super) async fn ready_members(&self, namespace: &str) -> Known<Vec<ReadyMember>> {
        let path = format!("/api/v1/namespaces/{}/pods", escape(namespace));
        let query = format!("labelSelector={}", escape(MEMBER));
        let ready = self.select(&path, &query, |pod: Pod| ReadyMember::of(&pod));
        Known::of(ready.await, || {
            format!("list pods in namespace {namespace}")
        })
    }

    /// The pods of a node, in all namespaces.
    ///
    /// # Errors
    /// If the pods can't be read.
    pub async fn pods_of_node(&self, node: &str) -> Result<Vec<Pod>, Error> {
        let query = format!("fieldSelector=spec.nodeName%3D{}", escape(node));
        let read = self.list("/api/v1/pods", &query).await;
        read.map_err(|error| on_pods("list", None).explain(error))
    }
}

/// The permission to `verb` pods, in one namespace or in all.
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
