//! StatefulSets with volumes.

use control_plane::Kubelets;
use serde_json::{Value, json};

use super::{Stage, VOLUME_ATTACHMENTS, eventually};

/// Creates a StatefulSet of one pod with a volume of a CSI driver.
pub(crate) fn database(stage: &Stage) {
    let driver = stage.driver("disk", true);
    let volume = json!({"csi": {"driver": driver, "volumeHandle": stage.own()}});
    stage.create(&[stage.namespace()]);
    stage.create(&set(stage, "db", "ReadWriteOnce", &volume));
}

/// Creates three nodes with kubelets, and a database on the first of them. Returns the kubelets, the names of the
/// nodes, and the uid of the pod.
pub(crate) fn running_database(stage: &Stage) -> (Kubelets, [String; 3], Value) {
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let kubelets = stage.kubelets(&nodes.each_ref().map(String::as_str));
    database(stage);
    let uid = runs_on(stage, &nodes[0]);
    (kubelets, nodes, uid)
}

/// A volume of this source and access mode, its claim, and a StatefulSet of one pod that uses it. All have this name.
pub(crate) fn set(stage: &Stage, name: &str, mode: &str, source: &Value) -> [Value; 3] {
    let namespace = stage.own();
    let storage = json!({"storage": "1Gi"});
    let volume = stage.name(name);
    let mut spec = json!({
        "capacity": storage, "accessModes": [mode], "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": name},
    });
    let fields = source.as_object().expect("fields").clone();
    spec.as_object_mut().expect("an object").extend(fields);
    [
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": volume}, "spec": spec,
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": [mode], "storageClassName": "",
                "resources": {"requests": storage}, "volumeName": volume,
            },
        }),
        stateful_set(
            stage,
            name,
            1,
            &json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]),
        ),
    ]
}

/// A StatefulSet whose pods end within one second.
pub(crate) fn stateful_set(stage: &Stage, name: &str, replicas: u32, volumes: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": stage.own()},
        "spec": {
            "replicas": replicas, "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "c", "image": "none"}],
                    "volumes": volumes,
                },
            },
        },
    })
}

/// The pod of the database, if it exists.
pub(crate) fn pod(stage: &Stage) -> Option<Value> {
    stage.find_pod("db-0")
}

/// Binds the pod to `node`, and waits until it runs and its volume is attached and in use. Returns the uid of the pod.
pub(crate) fn runs_on(stage: &Stage, node: &str) -> Value {
    eventually("the set makes a pod", || pod(stage).is_some());
    let placed = stage.plane.bind_pod(stage.own(), "db-0", node);
    placed.expect("it is placed");
    eventually("the pod runs", || {
        pod(stage).is_some_and(|pod| pod["status"]["phase"] == "Running")
    });
    eventually("its volume is attached and in use", || {
        is_attached(stage, node) && stage.node(node)["status"]["volumesInUse"].is_array()
    });
    pod(stage).expect("it runs")["metadata"]["uid"].clone()
}

/// Whether a volume is attached to the node.
pub(crate) fn is_attached(stage: &Stage, node: &str) -> bool {
    stage.list(VOLUME_ATTACHMENTS).iter().any(|attachment| {
        attachment["spec"]["nodeName"] == node && attachment["status"]["attached"] == true
    })
}
