//! Lists of many pages, on a server whose continue tokens expire before the last page is read.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kube::Client;
use kube::client::Body;
use maintenance_lease::Requests;
use pod_safety::cluster::Reader;
use sandbox::Sandbox;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;
use tower::BoxError;

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

/// A client of `sandbox`. After request number `number`, the sandbox changes its objects and forgets its
/// history. `sent` counts the requests.
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
        // The pages that succeeded, the page that failed, and one full list.
        assert_eq!(sent.load(Ordering::Relaxed), expires_after + 2);
    }
}

/// A client of `sandbox` that delays the second half of each response. It sends the half once
/// `before_end(response number)` requests were sent.
fn slow(sandbox: &Sandbox, before_end: fn(usize) -> usize, sent: &watch::Sender<usize>) -> Client {
    let (sandbox, sent) = (sandbox.clone(), sent.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (sandbox, sent) = (sandbox.clone(), sent.clone());
        async move {
            sent.send_modify(|sent| *sent += 1);
            let mut seen = sent.subscribe();
            let expected = before_end(*seen.borrow());
            let (parts, body) = sandbox.client().send(request).await?.into_parts();
            let mut first = body.collect_bytes().await?;
            let second = first.split_off(first.len() / 2);
            let rest = async move {
                seen.wait_for(|sent| *sent >= expected)
                    .await
                    .expect("it is kept");
                second
            };
            let pieces = stream::once(ready(first)).chain(stream::once(rest));
            let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            Ok::<_, kube::Error>(Response::from_parts(
                parts,
                StreamBody::new(frames).boxed_unsync(),
            ))
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn the_next_page_is_requested_while_one_arrives_and_no_other() {
    let sandbox = Sandbox::new();
    for index in 0..PODS {
        sandbox.put(pod(&format!("pod-{index:04}")));
    }
    let sent = watch::Sender::new(0);
    // There are three pages, and the last has no next page.
    let client = slow(&sandbox, |number| (number + 1).min(3), &sent);
    let reader = Reader::new(Requests::new(client, None));
    let reading = reader.pods_of_node("worker-1");
    let pods = timeout(Duration::from_secs(60), reading).await;
    let pods = pods.expect("requests are sent early").expect("a list");
    let names = pods.iter().filter_map(|pod| pod.metadata.name.clone());
    let expected = (0..PODS).map(|index| format!("pod-{index:04}"));
    assert!(names.eq(expected), "each pod once, in order");
    assert_eq!(*sent.borrow(), 3);
}

#[tokio::test]
async fn a_page_that_was_requested_early_and_failed_is_requested_again() {
    let sandbox = Sandbox::new();
    for index in 0..PODS {
        sandbox.put(pod(&format!("pod-{index:04}")));
    }
    let sent = Arc::new(AtomicUsize::new(0));
    let service = {
        let (sandbox, sent) = (sandbox.clone(), Arc::clone(&sent));
        tower::service_fn(move |request: Request<Body>| {
            let number = sent.fetch_add(1, Ordering::Relaxed) + 1;
            let client = sandbox.client();
            async move {
                match number {
                    2 => Err(BoxError::from(io::Error::from(
                        io::ErrorKind::ConnectionReset,
                    ))),
                    _ => Ok(client.send(request).await?),
                }
            }
        })
    };
    let reader = Reader::new(Requests::new(Client::new(service, "default"), None));
    let pods = reader.pods_of_node("worker-1").await.expect("a list");
    assert_eq!(pods.len(), PODS);
    assert_eq!(sent.load(Ordering::Relaxed), 4, "the second page twice");
}
