//! Notes every change of a Lease and of a Node as the server's own watches tell it, before any fault.

use std::sync::Arc;

use bytes::Bytes;
use chrono::DateTime;
use futures::StreamExt as _;
use http::Request;
use http_body_util::{BodyStream, Full};
use maintenance_lease::ANNOTATION_PREFIX;
use sandbox::SandboxService;
use serde_json::Value;
use tower::Service as _;

use crate::history::{Event, Record, Recorder};

/// The objects that are watched.
#[derive(Clone, Copy)]
pub(crate) enum Observed {
    Leases,
    Nodes,
}

impl Observed {
    pub(crate) const ALL: [Self; 2] = [Self::Leases, Self::Nodes];

    fn path(self) -> &'static str {
        match self {
            Self::Leases => "/apis/coordination.k8s.io/v1/leases?watch=true",
            Self::Nodes => "/api/v1/nodes?watch=true",
        }
    }
}

/// Watches for as long as the world lasts.
pub(crate) async fn observe(mut server: SandboxService, observed: Observed, recorder: Recorder) {
    let mut request = Request::new(Full::from(Bytes::new()));
    *request.uri_mut() = observed.path().parse().expect("a path");
    let Ok(answer) = server.call(request).await;
    let mut frames = BodyStream::new(answer.into_body());
    while let Some(Ok(frame)) = frames.next().await {
        let Ok(line) = frame.into_data() else {
            continue;
        };
        let event: Value = serde_json::from_slice(&line).expect("a watch speaks JSON");
        recorder.record(match observed {
            Observed::Leases => committed(&event),
            Observed::Nodes => node_changed(&event),
        });
    }
}

fn committed(event: &Value) -> Event {
    let object = &event["object"];
    let metadata = &object["metadata"];
    Event::Committed {
        node: text(&metadata["name"]).unwrap_or_default(),
        version: text(&metadata["resourceVersion"])
            .and_then(|version| version.parse().ok())
            .unwrap_or_default(),
        lease: (event["type"] != "DELETED").then(|| record(object)),
    }
}

fn node_changed(event: &Value) -> Event {
    let metadata = &event["object"]["metadata"];
    Event::NodeChanged {
        node: text(&metadata["name"]).unwrap_or_default(),
        uid: text(&metadata["uid"]).filter(|_| event["type"] != "DELETED"),
        terminating: !metadata["deletionTimestamp"].is_null(),
    }
}

fn record(object: &Value) -> Record {
    let spec = &object["spec"];
    let whole = |value: &Value| u32::try_from(value.as_u64().unwrap_or(0)).unwrap_or(u32::MAX);
    let transitions = whole(&spec["leaseTransitions"]);
    Record {
        uid: text(&object["metadata"]["uid"]).unwrap_or_default(),
        holder: text(&spec["holderIdentity"]).filter(|holder| !holder.is_empty()),
        acquired: time(&spec["acquireTime"]),
        renewed: time(&spec["renewTime"]),
        duration: whole(&spec["leaseDurationSeconds"]),
        transitions,
        nonce: nonce(object, transitions),
        owner: owner(object),
        reason: text(&object["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}reason")]),
    }
}

/// The uid of the Node of that name among the owners.
fn owner(object: &Value) -> Option<Arc<str>> {
    let metadata = &object["metadata"];
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    let node = owners.find(|owner| owner["kind"] == "Node" && owner["name"] == metadata["name"]);
    text(&node?["uid"])
}

/// The nonce of the current acquisition. A nonce of an earlier acquisition or its release is ignored;
/// another tool's takeover does not remove it.
fn nonce(object: &Value, transitions: u32) -> Option<Arc<str>> {
    let annotation = format!("{ANNOTATION_PREFIX}acquisition");
    let (count, nonce) = object["metadata"]["annotations"][annotation]
        .as_str()?
        .split_once('-')?;
    (count.parse() == Ok(transitions) && !nonce.is_empty()).then(|| nonce.into())
}

fn text(value: &Value) -> Option<Arc<str>> {
    value.as_str().map(Into::into)
}

fn time(value: &Value) -> Option<i64> {
    let time = DateTime::parse_from_rfc3339(value.as_str()?).ok()?;
    Some(time.timestamp_micros())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mark_is_the_nonce_of_its_own_acquisition_alone() {
        let read = |mark: &str| {
            let annotation = format!("{ANNOTATION_PREFIX}acquisition");
            nonce(&json!({"metadata": {"annotations": {annotation: mark}}}), 2)
        };
        assert_eq!(read("2-a-b").as_deref(), Some("a-b"));
        assert_eq!(read("1-a-b"), None, "of an earlier one");
        assert_eq!(read("2-"), None, "of a release");
    }
}
