//! Deletes pods and Nodes, but only the exact objects that were read.

use std::fmt;

use futures::future::join;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::Instant;
use maintenance_lease::{ApiError, Call, escape};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Reader;
use super::pods::pod_path;
use super::reader::read;
use crate::facts::PodSnapshot;
use crate::facts::pod::full_name;
use crate::outcome::Outcome;
use crate::wire::rfc3339;

/// The result of a delete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone.
    Done,
    /// The server accepted the deletion. The object stays until its finalizers are removed.
    Held {
        /// The remaining finalizers.
        finalizers: Vec<String>,
    },
    /// The object was already gone.
    AlreadyGone,
    /// The object changed since it was read, so nothing was deleted.
    Changed,
}

/// Which version of an object to delete, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionRequest<'a> {
    /// The uid that was read.
    pub uid: &'a str,
    /// The resource version that was read; `None` deletes any version with this uid.
    pub version: Option<&'a str>,
    /// The grace period in seconds; `None` uses the object's default.
    pub grace: Option<u32>,
}

impl Reader {
    /// Deletes a pod, if it is still the one in `request`.
    ///
    /// # Errors
    /// If the server refuses or fails. If the error [leaves writes unknown], the pod may be deleted.
    ///
    /// [leaves writes unknown]: ApiError::leaves_writes_unknown
    pub async fn delete_pod(
        &self,
        namespace: &str,
        name: &str,
        request: DeletionRequest<'_>,
    ) -> Result<Deletion, ApiError> {
        self.delete(pod_path(namespace, name), request).await
    }

    /// Sets the phase of `pod` to Failed if it has not changed since it was read. Pod garbage collection does
    /// the same before it deletes. A Job may keep a pod until its phase is Failed, and the kubelet of a dead
    /// node does not report the phase. The condition `DisruptionTarget` tells the Job's failure policy that
    /// the pod did not fail by itself.
    ///
    /// # Errors
    /// If the server refuses or fails, or the pod changed. If the error [leaves writes unknown], the phase
    /// may be set.
    ///
    /// [leaves writes unknown]: ApiError::leaves_writes_unknown
    pub async fn fail_pod(&self, pod: &PodSnapshot, field_manager: &str) -> Result<(), ApiError> {
        let call = Call::write(
            Method::PATCH,
            format!(
                "{}/status?fieldManager={}",
                pod_path(&pod.namespace, &pod.name),
                escape(field_manager)
            ),
            // A merge patch would replace all conditions; this one merges them by type.
            "application/strategic-merge-patch+json",
            &failed(pod, self.now().latest),
        );
        self.requests().call(&call).await.map(drop)
    }

    /// Deletes a Node, if it is still the one in `request`.
    ///
    /// # Errors
    /// See [`delete_pod`](Self::delete_pod).
    pub async fn delete_node(
        &self,
        name: &str,
        request: DeletionRequest<'_>,
    ) -> Result<Deletion, ApiError> {
        let path = format!("/api/v1/nodes/{}", escape(name));
        self.delete(path, request).await
    }

    /// Whether the pod with this `uid` still exists after it was deleted.
    pub async fn pod_left(&self, namespace: &str, name: &str, uid: &str) -> Outcome {
        match self.pod(namespace, name).await {
            Ok(Some(pod)) if pod.metadata.uid.as_deref() == Some(uid) => Outcome::Held {
                finalizers: pod.metadata.finalizers.unwrap_or_default(),
            },
            Ok(_) => Outcome::Deleted,
            Err(error) => unseen(&error),
        }
    }

    /// Whether pods with these `uids` remain after their Node was deleted. PodGC does not delete them while
    /// another Node with that name exists.
    pub async fn pods_left(&self, node: &str, uids: &[&str]) -> Outcome {
        let (pods, node) = join(self.pods_of_node(node), self.node(node)).await;
        let (pods, node) = match (pods, node) {
            (Ok(pods), Ok(node)) => (pods, node),
            (Err(error), _) => return unseen(&error),
            (_, Err(error)) => return unseen(&error),
        };
        let is_of_node = |pod: &&Pod| {
            let uid = pod.metadata.uid.as_deref();
            uid.is_some_and(|uid| uids.contains(&uid))
        };
        let left: Vec<String> = pods.iter().filter(is_of_node).map(full_name).collect();
        match left.is_empty() {
            true => Outcome::Deleted,
            false => Outcome::PodsLeft {
                pods: left,
                registered_again: node.is_some(),
            },
        }
    }

    async fn delete(
        &self,
        path: String,
        request: DeletionRequest<'_>,
    ) -> Result<Deletion, ApiError> {
        let call = Call::write(Method::DELETE, path, "application/json", &options(request));
        match self.requests().call(&call).await {
            Ok(answer) => accepted(&answer),
            Err(error) if error.is_not_found() => Ok(Deletion::AlreadyGone),
            Err(error) if error.is_conflict() => Ok(Deletion::Changed),
            Err(error) => Err(error),
        }
    }
}

fn unseen(error: &impl fmt::Display) -> Outcome {
    let error = error.to_string();
    Outcome::Unseen { error }
}

/// The result of an accepted deletion. The response contains the object as it is now. If the object is gone,
/// the response contains its last state or no object.
fn accepted(answer: &[u8]) -> Result<Deletion, ApiError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        finalizers: Vec<String>,
    }
    let answer: Answer = read(answer)?;
    Ok(match answer.metadata.finalizers {
        none if none.is_empty() => Deletion::Done,
        finalizers => Deletion::Held { finalizers },
    })
}

/// The patch that sets a pod's phase to Failed.
fn failed(pod: &PodSnapshot, now: Instant) -> Value {
    let mut status = json!({"phase": "Failed"});
    if !pod.disrupted {
        status["conditions"] = json!([{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "ForceDeleted",
            "message": "kubectl maint: force-deleted",
            "lastTransitionTime": rfc3339(now),
        }]);
    }
    json!({
        "metadata": {"uid": pod.uid, "resourceVersion": pod.version},
        "status": status,
    })
}

/// The body of a deletion. If a request has a body, the server ignores the query. A dry run that is requested
/// only in the query would really delete, so all options are in the body.
fn options(request: DeletionRequest<'_>) -> Value {
    let mut preconditions = json!({"uid": request.uid});
    if let Some(version) = request.version {
        preconditions["resourceVersion"] = version.into();
    }
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
    });
    if let Some(grace) = request.grace {
        options["gracePeriodSeconds"] = grace.into();
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_with_finalizers_are_held() {
        let accepted = |answer: &[u8]| accepted(answer).expect("an answer");
        let held = br#"{"kind": "Node", "metadata": {"name": "a", "finalizers": ["x/y"]}}"#;
        let finalizers = vec!["x/y".to_owned()];
        assert_eq!(accepted(held), Deletion::Held { finalizers });
        assert_eq!(accepted(br#"{"metadata": {"name": "a"}}"#), Deletion::Done);
        let status = br#"{"kind": "Status", "metadata": {}, "status": "Success"}"#;
        assert_eq!(accepted(status), Deletion::Done);
    }

    #[test]
    fn a_deletion_says_everything_in_its_body() {
        let request = DeletionRequest {
            uid: "u-1",
            version: Some("7"),
            grace: Some(0),
        };
        assert_eq!(
            options(request),
            json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u-1", "resourceVersion": "7"},
            })
        );
        let node = DeletionRequest {
            version: None,
            grace: None,
            ..request
        };
        assert_eq!(
            options(node),
            json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u-1"},
            })
        );
    }
}
