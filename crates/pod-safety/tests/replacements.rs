//! Pods that were removed are followed until their replacements run.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::Body;
use maintenance_lease::Requests;
use pod_safety::Removed;
use pod_safety::cluster::Reader;
use pod_safety::outcome::Outcome;
use pod_safety::taint::OutOfService;
use sandbox::Sandbox;
use serde_json::{Value, json};

/// Pod `number` of a controller of this kind, with the label that its controller gives it.
fn pod(kind: &str, number: usize, node: &str) -> Value {
    let name = match kind {
        "StatefulSet" => format!("db-{number}"),
        _ => format!("web-{number}-{node}"),
    };
    let labels = match kind {
        "StatefulSet" => json!({"statefulset.kubernetes.io/pod-name": name}),
        _ => json!({"pod-template-hash": format!("hash-{number}")}),
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": labels,
            "uid": format!("{kind}-{number}-{node}"),
            "creationTimestamp": "2099-01-01T00:00:00Z",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": kind, "name": format!("of-{number}"),
                "uid": format!("{kind}-{number}"), "controller": true,
            }],
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running"},
    })
}

/// The number of requests needed to see that `count` pods of each kind run again.
async fn cost(count: usize) -> usize {
    let sandbox = Sandbox::new();
    let sent = Arc::new(AtomicUsize::new(0));
    let service = {
        let (sandbox, sent) = (sandbox.clone(), Arc::clone(&sent));
        tower::service_fn(move |request: Request<Body>| {
            sent.fetch_add(1, Ordering::Relaxed);
            let sandbox = sandbox.clone();
            async move { sandbox.client().send(request).await }
        })
    };
    let reader = Reader::new(Requests::new(Client::new(service, "default"), None));
    let pods = |node: &'static str| {
        let kinds = ["StatefulSet", "ReplicaSet"].into_iter();
        kinds.flat_map(move |kind| (0..count).map(move |number| pod(kind, number, node)))
    };
    let before = pods("worker-1").map(serde_json::from_value::<Pod>);
    let before: Vec<Pod> = before.collect::<Result<_, _>>().expect("pods");
    let removed = Removed::by_fencing(&before, &OutOfService::No, reader.now());
    pods("worker-2").for_each(|pod| drop(sandbox.put(pod)));
    let outcomes = reader.outcomes(&removed, Duration::ZERO, pending()).await;
    for (pod, outcome) in removed.iter().zip(&outcomes) {
        let is_back = matches!(outcome, Outcome::Replaced { replacement, .. }
            if replacement.is_back && replacement.uid.starts_with(&pod.uid.replace("worker-1", "")));
        assert!(is_back, "{pod:?}: {outcome:?}");
    }
    assert_eq!(outcomes.len(), 2 * count);
    sent.load(Ordering::Relaxed)
}

/// One request for the StatefulSets of a namespace, and one for the ReplicaSets.
#[tokio::test]
async fn a_hundred_pods_are_followed_with_as_many_requests_as_two() {
    assert_eq!(cost(1).await, 2);
    assert_eq!(cost(50).await, 2);
}
