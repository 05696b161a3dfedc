//! Reads one object, or all objects of a kind in a namespace or in the cluster.

use k8s_openapi::api::storage::v1::VolumeAttachment;
use maintenance_lease::{ApiError, escape};
use serde::de::DeserializeOwned;

use super::Reader;
use crate::known::{Known, Why};

impl Reader {
    /// Reads a namespaced object of the core group.
    pub(super) async fn one<T: DeserializeOwned>(
        &self,
        namespace: &str,
        plural: &str,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        let path = format!(
            "/api/v1/namespaces/{}/{plural}/{}",
            escape(namespace),
            escape(name)
        );
        self.get(&path).await
    }

    /// Reads an object that has no namespace.
    pub(super) async fn unplaced<T: DeserializeOwned>(
        &self,
        group: &str,
        plural: &str,
        name: &str,
    ) -> Known<Option<T>> {
        let path = format!("{group}/{plural}/{}", escape(name));
        Known::of(self.get(&path).await, || format!("get {plural}"))
    }

    /// Lists all objects of a kind in a namespace.
    pub(super) async fn all_in<T: DeserializeOwned + Send>(
        &self,
        namespace: &str,
        group: &str,
        plural: &str,
    ) -> Known<Vec<T>> {
        let path = format!("{group}/namespaces/{}/{plural}", escape(namespace));
        Known::of(self.list(&path, "").await, || {
            format!("list {plural} in namespace {namespace}")
        })
    }

    /// Lists all VolumeAttachments.
    pub(super) async fn volume_attachments(&self) -> Known<Vec<VolumeAttachment>> {
        let read = self.list("/apis/storage.k8s.io/v1/volumeattachments", "");
        Known::of(read.await, || {
            "list volumeattachments.storage.k8s.io".to_owned()
        })
    }
}

/// The result of `read` if `is_needed`, otherwise unknown.
pub(super) async fn needed<T, F>(is_needed: bool, read: impl FnOnce() -> F) -> Known<T>
where
    F: Future<Output = Known<T>>,
{
    match is_needed {
        true => read().await,
        false => Known::Unknown(Why::NotRead),
    }
}
