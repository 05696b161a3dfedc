//! Whole Nodes in a list are the same in protobuf and in JSON. Only a real API server supports protobuf.

use std::path::Path;
use std::sync::{Arc, Mutex};

use control_plane::{is_left_out, shared};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use maintenance_lease::Requests;
use pod_safety::cluster::Reader;
use serde_json::{Value, json};

const MERGE_PATCH: &str = "application/merge-patch+json";

async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await;
    Client::try_from(config.expect("a config")).expect("a client")
}

/// A client that accepts only `accept`, if it is set, and records the content types of the responses.
fn accepting(
    client: &Client,
    accept: Option<&'static str>,
    types: &Arc<Mutex<Vec<String>>>,
) -> Client {
    let (client, types) = (client.clone(), Arc::clone(types));
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (client, types) = (client.clone(), Arc::clone(&types));
        async move {
            if let Some(accept) = accept {
                request
                    .headers_mut()
                    .insert(ACCEPT, HeaderValue::from_static(accept));
            }
            let answer: Response<Body> = client.send(request).await?;
            let content_type = answer.headers()[CONTENT_TYPE].to_str().expect("text");
            types
                .lock()
                .expect("no panic")
                .push(content_type.to_owned());
            Ok::<_, kube::Error>(answer)
        }
    });
    Client::new(service, "default")
}

async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, kind)
        .body(body.to_string().into_bytes())
        .expect("a request");
    client
        .request::<Value>(request)
        .await
        .expect("it is admitted");
}

/// The fields of a Node that [`Reader::select_nodes`] guarantees.
fn promised(node: Node) -> Node {
    let metadata = node.metadata;
    let entries = metadata.managed_fields.into_iter().flatten().map(|entry| {
        let owned = entry.fields_v1.as_ref().map(|fields| &fields.0);
        let owns = |part: &str| owned.is_some_and(|owned| owned.get(part).is_some());
        let is_read = owns("f:metadata") || owns("f:spec");
        ManagedFieldsEntry {
            manager: entry.manager,
            operation: entry.operation,
            time: entry.time,
            fields_v1: entry.fields_v1.filter(|_| is_read),
            ..ManagedFieldsEntry::default()
        }
    });
    let status = node.status.unwrap_or_default();
    let conditions = status
        .conditions
        .into_iter()
        .flatten()
        .map(|condition| NodeCondition {
            reason: None,
            message: None,
            ..condition
        });
    let spec = node.spec.unwrap_or_default();
    Node {
        metadata: ObjectMeta {
            name: metadata.name,
            uid: metadata.uid,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: metadata.labels,
            annotations: metadata.annotations,
            managed_fields: Some(entries.collect()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: spec.provider_id,
            unschedulable: spec.unschedulable,
            taints: spec.taints,
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            conditions: Some(conditions.collect()),
            node_info: Some(NodeSystemInfo {
                boot_id: status.node_info.unwrap_or_default().boot_id,
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
    }
}

/// Nodes with rare or empty values.
fn odd_nodes() -> Vec<(&'static str, Value)> {
    let condition = |kind: &str, heartbeat: Value, transition: Value| {
        json!({
            "type": kind, "status": "Unknown", "reason": "NodeStatusUnknown", "message": "é\u{1f512}",
            "lastHeartbeatTime": heartbeat, "lastTransitionTime": transition,
        })
    };
    let node_info = json!({
        "machineID": "m", "systemUUID": "s", "bootID": "b\u{e9}", "kernelVersion": "", "osImage": "",
        "containerRuntimeVersion": "", "kubeletVersion": "v1.36.0", "kubeProxyVersion": "",
        "operatingSystem": "linux", "architecture": "arm64",
    });
    vec![
        ("bare", json!({})),
        (
            "empty",
            json!({
                "metadata": {"labels": {}, "annotations": {}},
                "spec": {"taints": [], "providerID": "", "unschedulable": false},
                "status": {"conditions": [], "images": []},
            }),
        ),
        (
            "unset-times",
            json!({
                "status": {"conditions": [condition("Ready", Value::Null, Value::Null)], "nodeInfo": node_info},
            }),
        ),
        (
            "old-times",
            json!({
                "status": {"conditions": [
                    condition("Ready", json!("1970-01-01T00:00:00Z"), json!("0001-01-01T00:00:01Z")),
                    condition("Ready", json!("1969-12-31T23:59:59Z"), json!("9999-12-30T00:00:00Z")),
                    condition("", json!("2026-01-02T03:04:05+02:00"), Value::Null),
                ]},
            }),
        ),
        (
            "taints",
            json!({"spec": {"unschedulable": true, "providerID": "aws:///\u{e9}", "taints": [
                {"key": "a.example/empty", "effect": "NoSchedule"},
                {"key": "a.example/empty-too", "value": "", "effect": "NoExecute", "timeAdded": null},
                {"key": "a.example/set", "value": "1", "effect": "NoExecute", "timeAdded": "2026-01-02T04:00:00Z"},
            ]}}),
        ),
        (
            "texts",
            json!({"metadata": {
                "labels": {"a.example/empty": "", "a.example/b": "c"},
                "annotations": {"a.example/empty": "", "b": "\u{0}\"\\ \u{1f512}\u{fffd}", "c": "x".repeat(100_000)},
            }}),
        ),
        (
            "images",
            json!({"status": {"images": (0..50).map(|number| {
            json!({"names": [format!("registry.example.com/component:{number}")], "sizeBytes": number})
        }).collect::<Vec<_>>()}}),
        ),
    ]
}

#[tokio::test]
async fn nodes_are_the_same_in_each_encoding() {
    if is_left_out() {
        return;
    }
    let _logs = shared().keep_logs_on_panic("whole-nodes");
    let admin = client(shared().admin_kubeconfig()).await;
    let mut names: Vec<String> = Vec::new();
    for (name, mut node) in odd_nodes() {
        let name = format!("encoded-{name}");
        node["metadata"]["name"] = name.as_str().into();
        node["metadata"]["finalizers"] = json!(["a.example/stays"]);
        send(&admin, "POST", "/api/v1/nodes", "application/json", &node).await;
        names.push(name);
    }
    let path = |node: usize| format!("/api/v1/nodes/{}", names[node]);
    // Managed fields of the status, of a key that somebody else applied, and of a cordon.
    let report = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let status = format!("{}/status?fieldManager=kubelet", path(0));
    send(&admin, "PATCH", &status, MERGE_PATCH, &report).await;
    let cordon = format!("{}?fieldManager=kubectl-cordon", path(0));
    send(
        &admin,
        "PATCH",
        &cordon,
        MERGE_PATCH,
        &json!({"spec": {"unschedulable": true}}),
    )
    .await;
    let applied = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": names[1], "annotations": {"a.example/applied": "é"}},
    });
    let apply = format!("{}?fieldManager=somebody", path(1));
    send(
        &admin,
        "PATCH",
        &apply,
        "application/apply-patch+yaml",
        &applied,
    )
    .await;
    send(&admin, "DELETE", &path(2), "application/json", &json!({})).await;

    let types = Arc::default();
    let read = async |accept| {
        let reader = Reader::new(Requests::new(accepting(&admin, accept, &types), None));
        let nodes = reader.select_nodes(None, |node| {
            let name = node.metadata.name.as_ref()?;
            names.contains(name).then(|| promised(node))
        });
        nodes.await.expect("a list")
    };
    // The controllers of Kubernetes keep changing new Nodes for some time.
    let (in_protobuf, in_json) = loop {
        let in_protobuf = read(None).await;
        let in_json = read(Some("application/json")).await;
        if in_protobuf == read(None).await {
            break (in_protobuf, in_json);
        }
    };
    let types = types.lock().expect("no panic").clone();
    assert_eq!(
        types.first().map(String::as_str),
        Some("application/vnd.kubernetes.protobuf")
    );
    assert!(types.iter().any(|of| of == "application/json"));
    assert_eq!(in_protobuf.len(), names.len());
    for (protobuf, json) in in_protobuf.iter().zip(&in_json) {
        assert_eq!(protobuf, json);
    }
    // The Nodes are not equal only because both lists are empty.
    let text = serde_json::to_string(&in_protobuf).expect("JSON");
    for part in [
        "f:unschedulable",
        "a.example/applied",
        "deletionTimestamp",
        "1970-01-01",
        "NoExecute",
        "bé",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let finalizers = json!({"metadata": {"finalizers": null}});
    for node in 0..names.len() {
        send(&admin, "PATCH", &path(node), MERGE_PATCH, &finalizers).await;
    }
}
