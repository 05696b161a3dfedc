//! A StatefulSet with a volume, on an unreachable node.

use serde_json::{Value, json};

use super::{Stage, eventually};

const DRIVER: &str = "disk.example.com";

/// A StatefulSet of one pod with a volume, whose pod is evicted from an unreachable node at once.
pub(crate) fn database(stage: &Stage) {
    let volume = json!({"csi": {"driver": DRIVER, "volumeHandle": stage.own()}});
    database_on(stage, &volume);
}

/// The same with a disk that only nodes with the label `disk=here` have.
pub(crate) fn local_database(stage: &Stage) {
    let here = json!({"key": "disk", "operator": "In", "values": ["here"]});
    database_on(
        stage,
        &json!({
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }),
    );
}

fn database_on(stage: &Stage, volume: &Value) {
    let namespace = stage.own();
    let storage = json!({"storage": "1Gi"});
    let mut spec = json!({
        "capacity": storage, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": "data"},
    });
    let fields = volume.as_object().expect("fields").clone();
    spec.as_object_mut().expect("an object").extend(fields);
    stage.create(&[
        stage.namespace(),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": namespace},
            "spec": spec,
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "resources": {"requests": storage}, "volumeName": namespace,
            },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": namespace},
            "spec": {
                "replicas": 1, "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": {
                    "metadata": {"labels": {"app": "db"}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "db", "image": "none"}],
                        "volumes": [
                            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                        ],
                    },
                },
            },
        }),
    ]);
}

/// Its pod, if there is one.
pub(crate) fn pod(stage: &Stage) -> Option<Value> {
    stage.get(&["pod", "db-0", "-n", stage.own()])
}

/// Places the pod and waits until it runs there.
pub(crate) fn placed_on(stage: &Stage, node: &str) {
    eventually("the set makes a pod", || pod(stage).is_some());
    stage
        .plane
        .bind_pod(stage.own(), "db-0", node)
        .expect("it is placed");
    eventually("the pod runs", || {
        pod(stage).is_some_and(|pod| pod["status"]["phase"] == "Running")
    });
}

/// The same, with its volume. Returns its uid.
pub(crate) fn runs_on(stage: &Stage, node: &str) -> Value {
    placed_on(stage, node);
    eventually("its volume is attached and in use", || {
        is_attached(stage, node) && stage.node(node)["status"]["volumesInUse"].is_array()
    });
    pod(stage).expect("it runs")["metadata"]["uid"].clone()
}

/// Whether a volume is attached to the node.
pub(crate) fn is_attached(stage: &Stage, node: &str) -> bool {
    let list = stage.get(&["volumeattachments"]).unwrap_or_default();
    let mut attachments = list["items"].as_array().into_iter().flatten();
    attachments.any(|attachment| {
        attachment["spec"]["nodeName"] == node && attachment["status"]["attached"] == true
    })
}
