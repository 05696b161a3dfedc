//! Events that keep the evidence of a deletion where its owner looks.

use http::Method;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use maintenance_lease::{Accept, ApiError, Call, escape, shortened};
use serde_json::json;

use super::Reader;

/// The longest note that the server takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// The longest name of a reporter that the server takes, in bytes.
const LONGEST_INSTANCE: usize = 128;

impl Reader {
    /// Posts a Warning about `regarding` in its namespace, by `caller`.
    ///
    /// # Errors
    /// Where the server refuses or fails.
    pub async fn post_event(
        &self,
        regarding: &ObjectReference,
        caller: &str,
        reason: &str,
        note: &str,
    ) -> Result<(), ApiError> {
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let micros = self.now().latest.as_micros();
        let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "generateName": format!("{}.deleted-", regarding.name.as_deref().unwrap_or("pod")),
                "namespace": namespace,
            },
            "eventTime": MicroTime(time),
            "action": reason,
            "reason": reason,
            "note": shortened(note, LONGEST_NOTE),
            "type": "Warning",
            "reportingController": "kubectl-maint.dev/force-delete",
            "reportingInstance": shortened(caller, LONGEST_INSTANCE),
            "regarding": regarding,
        });
        let call = Call {
            method: Method::POST,
            path: format!(
                "/apis/events.k8s.io/v1/namespaces/{}/events",
                escape(namespace)
            ),
            accept: Accept::Json,
            body: Some(("application/json", event.to_string().into_bytes())),
        };
        self.requests().call(&call).await.map(drop)
    }
}
