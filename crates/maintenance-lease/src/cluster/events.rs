//! Events on Nodes: what happened to a lock, for those who look at the node later.

use std::borrow::Cow;

use http::Method;
use serde_json::json;

use super::api::Api;
use super::error::ApiError;
use super::requests::{Accept, Call, escape};
use super::wire;

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
    /// It is worth a second look: a `Warning`.
    pub warning: bool,
}

/// The longest note that the server takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// The longest name of a reporter that the server takes, in bytes.
const LONGEST_INSTANCE: usize = 128;

/// What stands for what was cut off.
const CUT: &str = "…";

impl Api {
    /// Posts `event`. Events about Nodes live in namespace `default`: the server takes them nowhere
    /// else.
    pub(crate) async fn post_event(
        &self,
        event: &NodeEvent,
        reporter: &str,
        instance: &str,
        name_suffix: &str,
    ) -> Result<(), ApiError> {
        let now = wire::print(self.time.now().latest);
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{}.{name_suffix}", event.node),
                "namespace": "default",
            },
            "eventTime": now,
            "action": event.reason,
            "reason": event.reason,
            "note": shortened(&event.message, LONGEST_NOTE),
            "type": if event.warning { "Warning" } else { "Normal" },
            "reportingController": format!("kubectl-maint.dev/{}", escape(reporter)),
            "reportingInstance": shortened(instance, LONGEST_INSTANCE),
            "regarding": {
                "apiVersion": "v1",
                "kind": "Node",
                "name": event.node,
                "uid": event.uid,
            },
        });
        let call = Call {
            method: Method::POST,
            path: "/apis/events.k8s.io/v1/namespaces/default/events".to_owned(),
            accept: Accept::Json,
            body: Some(("application/json", body.to_string().into_bytes())),
        };
        self.call(&call).await.map(drop)
    }
}

/// `text` in at most `limit` bytes, three or more: where it is longer, it is cut between characters and
/// ends in an ellipsis.
#[must_use]
pub fn shortened(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let end = (0..=limit.saturating_sub(CUT.len()))
        .rev()
        .find(|&index| text.is_char_boundary(index))
        .unwrap_or(0);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_between_characters_and_say_so() {
        for (limit, expected) in [
            (13, "grün ist gut"),
            (12, "grün ist…"),
            (11, "grün is…"),
            (7, "grü…"),
            (6, "gr…"),
            (5, "gr…"),
            (3, "…"),
        ] {
            assert_eq!(shortened("grün ist gut", limit), expected, "{limit}");
        }
    }
}
