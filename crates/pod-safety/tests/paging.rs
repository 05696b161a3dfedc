//! Lists of many pages, on a server whose continue tokens expire before the last page is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use kube::Client;
use kube::client::Body;
use maintenance_lease::Requests;
use pod_safety::cluster::Reader;
use sandbox::Sandbox;
use serde_json::json;

/// Enough objects for more than two pages.
const PODS: usize = 1_100;

fn pod(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "worker-1", "containers": []},
    })
}

/// A client of `sandbox`, which changes and forgets its history after request `number`. `sent` counts requests.
fn forgetful(sandbox: &Sandbox, number: usize, sent: &Arc<AtomicUsize>) -> Client {
    let (sandbox, sent) = (sandbox.clone(), Arc::clone(sent));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (sandbox, sent) = (sandbox.clone(), Arc::clone(&sent));
        async move {
            let answer = sandbox.client().send(request).await;
            if sent.fetch_add(1, Ordering::Relaxed) + 1 == number {
                sandbox.put(pod("pod-0000-later"));
                sandbox.remove("v1", "Pod", "default", "pod-0001");
                sandbox.compact();
            }
            answer
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_list_whose_continue_token_expires_is_read_again_from_the_start() {
    let sandbox = Sandbox::new();
    for index in 0..PODS {
        sandbox.put(pod(&format!("pod-{index:04}")));
    }
    for expires_after in [1, 2] {
        sandbox.put(pod("pod-0001"));
        sandbox.remove("v1", "Pod", "default", "pod-0000-later");
        let sent = Arc::default();
        let client = forgetful(&sandbox, expires_after, &sent);
        let reader = Reader::new(Requests::new(client, None));
        let pods = reader.pods_of_node("worker-1").await.expect("a list");
        let names: Vec<&str> = pods
            .iter()
            .filter_map(|pod| pod.metadata.name.as_deref())
            .collect();
        assert_eq!(names.len(), PODS, "each pod once");
        assert_eq!(names[..2], ["pod-0000", "pod-0000-later"], "in order");
        assert!(!names.contains(&"pod-0001"), "as it is now");
        // The pages that came, the one that did not, and all in one.
        assert_eq!(sent.load(Ordering::Relaxed), expires_after + 2);
    }
}
