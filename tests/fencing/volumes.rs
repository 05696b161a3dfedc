//! Volumes that stay attached for pods that tolerate the taint.

use control_plane::Rule;
use serde_json::{Value, json};

use crate::support::Stage;

const DRIVER: &str = "disk.example.com";

/// A volume with a claim of this name, attached to `node`.
fn attached(stage: &Stage, node: &str, claim: &str) -> [Value; 2] {
    let name = stage.name(claim);
    [
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "csi": {"driver": DRIVER, "volumeHandle": name},
                "claimRef": {"namespace": stage.own(), "name": claim},
            },
        }),
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {
                "attacher": DRIVER, "nodeName": node,
                "source": {"persistentVolumeName": name},
            },
        }),
    ]
}

#[test]
fn volumes_are_awaited_unless_a_pod_that_stays_may_use_them() {
    let (stage, node) = Stage::with_unreachable_node("volumes-stay");
    stage.create(&attached(&stage, &node, "database"));
    let fence = ["fence", &node, "--powered-off=dark", "--timeout=0"];
    let run = stage.maint(fence).run();
    assert_eq!(run.code, 4, "{run}");
    let left = format!("1 volume attachment ({})", stage.name("database"));
    assert!(run.stderr.contains(&left), "{run}");

    let rules = [
        Rule::new("", &["nodes"], &["get", "list", "patch"]),
        Rule::new("", &["pods"], &["list"]),
        Rule::new("coordination.k8s.io", &["leases"], &["get", "list"]),
    ];
    let name = stage.name("vic");
    let user = stage.plane.user(&name, &[]).expect("a kubeconfig");
    stage.plane.grant(&name, &rules).expect("rights");
    let unread = "it is unknown which volumes will be detached: ";
    let run = stage.maint(fence).kubeconfig(user).run();
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains(unread), "{run}");

    let mut proxy = stage.pod("proxy", &node);
    proxy["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    proxy["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "database"}}]);
    stage.create(&[stage.namespace(), proxy]);
    let run = stage.maint(fence).run();
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains(unread), "{run}");
}
