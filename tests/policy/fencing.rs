//! The policies in deny mode do not block the holder who fences and unfences a node.

use std::time::Duration;

use control_plane::{NodeSpec, Readiness};
use serde_json::{Value, json};

use crate::support::{NODES, USERS, admin, admitted, denying, person, refused_by};

#[test]
fn a_fenced_node_is_protected_and_its_holder_unfences_it() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("policy-fencing");
    let hold = control_plane::Rule::new("coordination.k8s.io", &["leases"], &["hold"]);
    plane.grant("fencing-alice", &[hold]).expect("rights");
    let alice = person(plane, "fencing-alice", &[USERS, "kubectl-maint:fencers"]);
    let carol = person(plane, "fencing-carol", &["system:masters"]);
    let name = "fencing-node";
    let node = NodeSpec {
        name: name.to_owned(),
        ready: Readiness::Unknown,
        heartbeat_age: Duration::from_secs(300),
        ..NodeSpec::default()
    };
    plane.create_nodes(&[node]).expect("a node");
    let path = format!("{NODES}/{name}");
    let boots = |id: &str| {
        let status = json!({"status": {"nodeInfo": {"bootID": id}}});
        admitted(
            admin(plane).patch(&format!("{path}/status"), &status),
            "its kubelet",
        );
    };
    boots("boot-1");
    let held = || admin(plane).get(&path)["metadata"]["labels"]["kubectl-maint.dev/held"].clone();

    let accepted = ["--accept-risk=mass-loss", "-m", "fire"];
    let fence = [&["fence", name][..], &accepted, &["--", "true"]].concat();
    let run = alice.succeeds(&fence);
    assert!(!run.stderr.contains("without the held label"), "{run:?}");
    assert_eq!(held(), "fencing-alice");
    refused_by("maint-held-delete", &carol.delete(&path), "by another");

    boots("boot-2");
    plane.heartbeat(&[name]).expect("a heartbeat");
    alice.succeeds(&["unfence", name]);
    let seen = admin(plane).get(&path);
    assert_eq!(held(), Value::Null);
    let mut taints = seen["spec"]["taints"].as_array().into_iter().flatten();
    let ours = |taint: &Value| taint["key"] == "node.kubernetes.io/out-of-service";
    assert!(!taints.any(ours), "{seen}");
    admitted(carol.delete(&path), "in service");
}
