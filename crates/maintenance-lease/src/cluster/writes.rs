//! The writes: a merge patch on the resource version that was read, or the creation of a missing object.
//! Nothing else changes a Lease.

use http::Method;
use serde_json::{Value, json};

use super::api::Api;
use super::call::Call;
use super::error::ApiError;
use super::requests::escape;

/// Whose writes they are, and whether they are stored.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    /// The field manager.
    pub(crate) field_manager: String,
    /// The server checks them and stores nothing.
    pub(crate) dry_run: bool,
}

impl WriteOptions {
    fn query(&self) -> String {
        let dry_run = if self.dry_run { "&dryRun=All" } else { "" };
        format!("?fieldManager={}{dry_run}", escape(&self.field_manager))
    }

    fn call(&self, method: Method, path: &str, content_type: &'static str, body: &Value) -> Call {
        Call::write(
            method,
            format!("{path}{}", self.query()),
            content_type,
            body,
        )
    }
}

impl Api {
    /// The request that applies a merge patch, which contains its `metadata.resourceVersion`.
    pub(crate) fn lease_patch(&self, node: &str, patch: &Value, options: &WriteOptions) -> Call {
        let path = self.repository.path(Some(node));
        options.call(Method::PATCH, &path, "application/merge-patch+json", patch)
    }

    /// The request that creates a Lease.
    pub(crate) fn lease_creation(&self, lease: &Value, options: &WriteOptions) -> Call {
        let path = self.repository.path(None);
        options.call(Method::POST, &path, "application/json", lease)
    }

    /// Creates the namespace of the Leases. Returns whether it was missing.
    pub(crate) async fn create_namespace(&self, options: &WriteOptions) -> Result<bool, ApiError> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.repository.namespace()},
        });
        let call = options.call(
            Method::POST,
            "/api/v1/namespaces",
            "application/json",
            &namespace,
        );
        match self.call(&call).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
