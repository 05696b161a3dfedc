//! Volumes on an unreachable node, as the attach-detach controller treats them.

use serde_json::{Value, json};

use crate::support::{HEARTBEAT_AGE, Stage, eventually};

const DRIVER: &str = "disk.example.com";

/// A volume of this source and access mode, its claim, and a set of one pod that uses it. All have this
/// name.
fn set(stage: &Stage, name: &str, mode: &str, source: &Value) -> [Value; 3] {
    let namespace = stage.own();
    let storage = json!({"storage": "1Gi"});
    let volume = stage.name(name);
    let mut spec = json!({
        "capacity": storage, "accessModes": [mode], "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": name},
    });
    let fields = spec.as_object_mut().expect("an object");
    fields.extend(source.as_object().expect("a source").clone());
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
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": 1, "serviceName": name,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "c", "image": "none"}],
                        "volumes": [
                            {"name": "data", "persistentVolumeClaim": {"claimName": name}},
                        ],
                    },
                },
            },
        }),
    ]
}

/// The only pod of a set.
fn pod(stage: &Stage, set: &str) -> Option<Value> {
    stage.get(&["pod", &format!("{set}-0"), "-n", stage.own()])
}

/// Places the pod of a set, once there is one of another uid.
fn place(stage: &Stage, set: &str, not: &Value, node: &str) -> Value {
    let other = || pod(stage, set).filter(|pod| pod["metadata"]["uid"] != *not);
    eventually("the set makes a pod", || other().is_some());
    let uid = other().expect("a pod")["metadata"]["uid"].clone();
    let bound = stage.plane.bind_pod(stage.own(), &format!("{set}-0"), node);
    bound.expect("it is placed");
    uid
}

/// The names of the volumes that are attached to a node.
fn attached(stage: &Stage, node: &str) -> String {
    stage.node(node)["status"]["volumesAttached"].to_string()
}

/// A second writer of a shared volume starts at once; one of an exclusive disk waits, with a driver or
/// without; and `fence` waits for the disk that has none.
#[test]
fn a_report_shows_which_volumes_attach_to_a_second_node_at_once() {
    let mut stage = Stage::new("disks");
    let _logs = stage.plane.keep_logs_on_panic("fencing-disks");
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let [unreachable, other, _] = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&nodes.each_ref().map(String::as_str));
    let csi = |handle: &str| json!({"csi": {"driver": DRIVER, "volumeHandle": stage.name(handle)}});
    let iscsi = json!({"iscsi": {
        "targetPortal": "192.0.2.9:3260", "iqn": "iqn.2026-01.com.example:a", "lun": 0,
    }});
    let sets = [
        (
            "crowd",
            "ReadWriteMany",
            csi("crowd"),
            format!("csi/{DRIVER}^{}", stage.name("crowd")),
        ),
        (
            "alone",
            "ReadWriteOnce",
            csi("alone"),
            format!("csi/{DRIVER}^{}", stage.name("alone")),
        ),
        (
            "block",
            "ReadWriteOnce",
            iscsi,
            "iscsi/192.0.2.9:3260:iqn.2026-01.com.example:a:0".to_owned(),
        ),
    ];
    stage.create(&[stage.namespace()]);
    let before = sets.each_ref().map(|(name, mode, source, volume)| {
        stage.create(&set(&stage, name, mode, source));
        let uid = place(&stage, name, &Value::Null, unreachable);
        eventually("its volume is attached and in use", || {
            let status = &stage.node(unreachable)["status"];
            status["volumesInUse"].to_string().contains(volume)
        });
        uid
    });
    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    let lines = ["volume-unguarded", "volume-attached", "volume-attached"];
    for (((name, ..), uid), id) in sets.iter().zip(&before).zip(lines) {
        let line = format!("RISK     {id}");
        let target = format!("pod/{name}-0");
        let force = ["force-delete", &target, "-n", stage.own()];
        eventually("nothing is refused any more", || {
            let run = stage.maint(force).run();
            assert_eq!(run.code, 6, "{run}");
            let report = run.to_string();
            let over = !report.contains("BLOCKER");
            assert!(!over || report.contains(&line), "{report}");
            over
        });
        let words = ["--accept-risk", "-m", "the rack burns", "--timeout=60s"];
        let run = stage.maint(force).args(words).start();
        place(&stage, name, uid, other);
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        let replaced = format!("{target} force-deleted; replaced by a pod on node/{other}\n");
        assert!(run.stdout.ends_with(&replaced), "{run}");
    }
    let [crowd, alone, block] = sets.each_ref().map(|(.., volume)| volume);
    eventually("the shared volume is attached to both", || {
        attached(&stage, other).contains(crowd)
    });
    assert!(attached(&stage, unreachable).contains(crowd));
    for volume in [alone, block] {
        assert!(attached(&stage, unreachable).contains(volume), "{volume}");
        assert!(!attached(&stage, other).contains(volume), "{volume}");
    }

    // Fencing detaches them, and waits for the disk without a VolumeAttachment.
    let run = stage
        .maint(["fence", unreachable, "--powered-off=dark"])
        .run();
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        stage.node(unreachable)["status"]["volumesAttached"],
        Value::Null
    );
    for volume in [alone, block] {
        eventually("the other node gets it", || {
            attached(&stage, other).contains(volume)
        });
    }
    stage.keep(kubelets);
}
