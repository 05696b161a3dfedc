//! Tables: the rows that kubectl shows, which need far fewer bytes than the objects.

use serde_json::{Value, json};

use crate::api::Api;
use crate::compare::agree;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn lease(api: &Api, namespace: &str) -> String {
    let leases = api.namespace(namespace).await;
    let body = json!({"metadata": {"name": "n"}, "spec": {"holderIdentity": "a"}});
    api.post(&leases, body).await.is(201);
    let bare = json!({"metadata": {"name": "free"}});
    api.post(&leases, bare).await.is(201);
    leases
}

/// The cells of the first row, except those with an age.
fn row(table: &Value) -> Vec<&str> {
    table["rows"][0]["cells"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[test]
fn leases_have_a_holder_column() {
    agree(async |api| {
        let leases = lease(api, "table-leases").await;
        for include in ["None", "Metadata", "Object"] {
            let path = format!("{leases}?includeObject={include}");
            api.get_as(TABLE, &path).await.is(200).has("/kind", "Table");
        }
        let one = api.get_as(TABLE, &format!("{leases}/n")).await.is(200);
        assert_eq!(row(&one.body)[..2], ["n", "a"]);
        api.get_as(TABLE, &format!("{leases}?limit=1"))
            .await
            .is(200);
        api.get_as(TABLE, &format!("{leases}?labelSelector=none"))
            .await
            .is(200);
        api.get_as(TABLE, &format!("{leases}?includeObject=Everything"))
            .await
            .refused(400, "BadRequest");
        api.get_as(TABLE, &format!("{leases}/nobody"))
            .await
            .refused(404, "NotFound");
    });
}

#[test]
fn nodes_have_kubectls_columns() {
    agree(async |api| {
        let nodes = [
            json!({"metadata": {"name": "table-bare", "labels": {"contract": "table"}}}),
            json!({
                "metadata": {"name": "table-full", "labels": {
                    "contract": "table",
                    "node-role.kubernetes.io/control-plane": "",
                    "node-role.kubernetes.io/infra": "",
                    "kubernetes.io/role": "edge",
                }},
                "spec": {"unschedulable": true},
                "status": {
                    "conditions": [{
                        "type": "Ready",
                        "status": "True",
                        "lastHeartbeatTime": "2026-01-02T03:04:05Z",
                        "lastTransitionTime": "2026-01-02T03:04:05Z",
                    }],
                    "addresses": [
                        {"type": "InternalIP", "address": "10.0.0.1"},
                        {"type": "ExternalIP", "address": "192.0.2.1"},
                    ],
                    "nodeInfo": {
                        "kubeletVersion": "v1.36.3",
                        "osImage": "Debian",
                        "kernelVersion": "6.12",
                        "containerRuntimeVersion": "containerd://2",
                        "machineID": "", "systemUUID": "", "bootID": "",
                        "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
                    },
                },
            }),
            json!({
                "metadata": {"name": "table-down", "labels": {"contract": "table"}},
                "spec": {"unschedulable": true},
                "status": {"conditions": [{
                    "type": "Ready",
                    "status": "Unknown",
                    "lastHeartbeatTime": "2026-01-02T03:04:05Z",
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                }]},
            }),
        ];
        for node in nodes {
            api.post("/api/v1/nodes", node).await.is(201);
        }
        let all = "/api/v1/nodes?labelSelector=contract%3Dtable&includeObject=None";
        let table = api.get_as(TABLE, all).await.is(200);
        assert_eq!(
            table.body["rows"][1]["cells"][1],
            "NotReady,SchedulingDisabled"
        );
        for name in ["table-bare", "table-full", "table-down"] {
            api.delete(&format!("/api/v1/nodes/{name}")).await.is(200);
        }
    });
}

#[test]
fn namespaces_pods_and_events_have_kubectls_columns() {
    agree(async |api| {
        api.namespace("table-others").await;
        let none = "includeObject=None";
        let namespace = format!("/api/v1/namespaces/table-others?{none}");
        api.get_as(TABLE, &namespace).await.is(200);
        let pods = "/api/v1/namespaces/table-others/pods";
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
        });
        api.post(pods, pod).await.is(201);
        api.get_as(TABLE, &format!("{pods}?{none}")).await.is(200);
        let events = "/api/v1/namespaces/table-others/events";
        let event = json!({
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "table-others"},
            "reason": "Why",
            "message": "what happened",
            "type": "Normal",
            "source": {"component": "who"},
        });
        api.post(events, event).await.is(201);
        api.get_as(TABLE, &format!("{events}?{none}")).await.is(200);
    });
}

#[test]
fn metadata_alone_can_be_requested() {
    agree(async |api| {
        let leases = lease(api, "table-metadata").await;
        api.get_as(METADATA, &format!("{leases}/n"))
            .await
            .is(200)
            .has("/kind", "PartialObjectMetadata");
        api.get_as(METADATA_LIST, &leases)
            .await
            .is(200)
            .has("/kind", "PartialObjectMetadataList");
    });
}
