//! Events: what happened to an object, kept for a while.

use http::Method;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::json;

use super::call::Call;
use super::error::ApiError;
use super::requests::{Requests, escape};
use super::wire;
use crate::text::shortened;

/// Something that happened to a node's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The node's name.
    pub node: String,
    /// The Node's uid, without which `kubectl describe node` does not show the Event.
    pub uid: String,
    /// A word in camel case for machines, such as `MaintenanceHold`.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// A `Warning` rather than `Normal`.
    pub warning: bool,
}

impl NodeEvent {
    /// The Node as an Event names it.
    pub(crate) fn regarding(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(self.node.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }
}

/// An Event, and who posts it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What it happened to.
    pub regarding: &'a ObjectReference,
    /// A word in camel case for machines, such as `MaintenanceHold`.
    pub reason: &'a str,
    /// Sentences for people, cut to the length that the server accepts.
    pub note: &'a str,
    /// A `Warning` rather than `Normal`.
    pub warning: bool,
    /// What kind of program posts it, in a word.
    pub reporter: &'a str,
    /// On whose behalf, cut to the length that the server accepts.
    pub instance: &'a str,
}

/// The longest note that the server accepts, in bytes.
const LONGEST_NOTE: usize = 1024;

/// The longest name of a reporter that the server accepts, in bytes.
const LONGEST_INSTANCE: usize = 128;

impl Requests {
    /// Posts `event` in the namespace of the object it is about. Events about cluster-scoped objects,
    /// such as Nodes, go to `default`, because the server accepts them nowhere else.
    ///
    /// # Usage
    /// As [`Maintenance::post_events`](crate::Maintenance::post_events), of whatever it is about.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not answer in time.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The event may still be stored.
    pub async fn post_event(&self, event: &Event<'_>) -> Result<(), ApiError> {
        let about = event.regarding;
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "generateName": format!("{}-", about.name.as_deref().unwrap_or_default()),
                "namespace": namespace,
            },
            "eventTime": wire::print(self.time.now().latest),
            "action": event.reason,
            "reason": event.reason,
            "note": shortened(event.note, LONGEST_NOTE),
            "type": if event.warning { "Warning" } else { "Normal" },
            "reportingController": format!("kubectl-maint.dev/{}", escape(event.reporter)),
            "reportingInstance": shortened(event.instance, LONGEST_INSTANCE),
            "regarding": about,
        });
        let call = Call::write(Method::POST, path(namespace), "application/json", &body);
        self.call(&call).await.map(drop)
    }
}

/// Where the Events of a namespace are.
pub(super) fn path(namespace: &str) -> String {
    format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        escape(namespace)
    )
}
