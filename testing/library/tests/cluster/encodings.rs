//! Lists in protobuf give the same results as in JSON, and so do refusals and truncated answers.

use std::collections::HashMap;

use http::StatusCode;
use maintenance_lease::protocol::Instant;
use maintenance_lease::{ApiError, Encoded, Requests};
use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, on_kubernetes};

on_both_servers! {
    heartbeats_are_the_same_in_each_encoding,
}

const HEARTBEATS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

async fn heartbeats_are_the_same_in_each_encoding(cluster: Cluster) {
    cluster.make_namespace_named("kube-node-lease").await;
    for (short, spec) in [
        (
            "usual",
            json!({"renewTime": "2026-01-02T03:04:05.123456Z", "leaseDurationSeconds": 40}),
        ),
        (
            "long-ago",
            json!({"renewTime": "0004-02-29T23:59:59.999999Z"}),
        ),
        ("1970", json!({"renewTime": "1970-01-01T00:00:00.000000Z"})),
        ("never", json!({"renewTime": "9999-12-31T23:59:59.000000Z"})),
        ("unset", json!({"holderIdentity": "é\u{1f512}"})),
        ("empty", json!({})),
    ] {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": cluster.name(short)},
            "spec": spec,
        });
        cluster.create(HEARTBEATS, &lease).await;
    }
    let read = async |wire: &Wire| -> HashMap<String, Instant> {
        let mut all = cluster.holder_on(wire, "alice").heartbeats().await.unwrap();
        all.retain(|name, _| name.starts_with(&cluster.name("")));
        all
    };
    let heartbeats = read(&Wire::clear()).await;
    assert_eq!(heartbeats, read(&Wire::clear().without_protobuf()).await);
    assert_eq!(heartbeats.len(), 4);
    assert_eq!(heartbeats[&cluster.name("1970")], Instant::from_micros(0));
    assert_eq!(heartbeats[&cluster.name("never")], Instant::UNREADABLE);
}

#[test]
fn a_refusal_in_protobuf_is_the_servers() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let user = cluster.user("nobody", &[]).await;
        let refused = user.heartbeats().await.unwrap_err();
        assert!(refused.is_forbidden(), "{refused:?}");
        let text = refused.to_string();
        assert!(
            text.starts_with(
                "Error from server (Forbidden): leases.coordination.k8s.io is forbidden: User"
            ),
            "{text}"
        );
        let requests = Requests::new(cluster.reconnected().await, None);
        let count = |_: Encoded<'_>| Ok(Some(()));
        let path = "/api/v1/nodes?fieldSelector=no-such-field%3Dx";
        let refused = requests.list_encoded_pages(path, count).await.unwrap_err();
        assert!(refused.is(StatusCode::BAD_REQUEST), "{refused:?}");
        let missing = "/api/v1/no-such-things";
        let refused = requests
            .list_encoded_pages(missing, count)
            .await
            .unwrap_err();
        assert!(refused.is_not_installed(), "{refused:?}");
    });
}

#[test]
fn nothing_in_place_of_protobuf_is_taken_for_a_list() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let answer = |body: &'static [u8]| {
            let wire = Wire::planned(move |_| {
                let answer = http::Response::builder()
                    .header("content-type", "application/vnd.kubernetes.protobuf")
                    .body(kube::client::Body::from(body.to_vec()));
                Fate::MetBy(answer.unwrap())
            });
            cluster.holder_on(&wire, "alice")
        };
        for body in [
            &b""[..],
            b"<html>Log in</html>",
            br#"{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{},"items":[]}"#,
        ] {
            let error = answer(body).heartbeats().await.unwrap_err();
            assert!(matches!(error, ApiError::NotKubernetes { .. }), "{error:?}");
        }
        // This is a Pod.
        let pod = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x00";
        let error = answer(pod).heartbeats().await.unwrap_err();
        assert!(matches!(error, ApiError::NotKubernetes { .. }), "{error:?}");
    });
}
