//! Nodes: changed on the version that was read.

use http::Method;
use maintenance_lease::{Accept, ApiError, Call, escape};
use serde_json::Value;

use super::Reader;

impl Reader {
    /// Applies a merge patch to a Node.
    ///
    /// # Errors
    /// If the server refuses or fails, or nothing comes in time.
    ///
    /// # Caveats
    /// Where [`ApiError::leaves_writes_unknown`], it may have taken effect, or may yet.
    pub async fn patch_node(
        &self,
        name: &str,
        patch: &Value,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let call = Call {
            method: Method::PATCH,
            path: format!(
                "/api/v1/nodes/{}?fieldManager={}{dry_run}",
                escape(name),
                escape(field_manager)
            ),
            accept: Accept::Json,
            body: Some((
                "application/merge-patch+json",
                patch.to_string().into_bytes(),
            )),
        };
        self.requests().call(&call).await.map(drop)
    }
}
