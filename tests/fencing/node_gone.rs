//! `force-delete` of a Node object, which tells Kubernetes that the machine will never come back.

use serde_json::json;

use crate::support::database::{is_attached, pod, running_database};
use crate::support::{HEARTBEAT_AGE, Stage, eventually};

/// The pods of the Node are deleted by the pod garbage collector, and the StatefulSet creates new ones.
#[test]
fn pods_of_a_deleted_node_are_collected_and_replaced() {
    let stage = Stage::new("gone");
    let _logs = stage.plane.keep_logs_on_panic("fencing-gone");
    let (kubelets, nodes, before) = running_database(&stage);
    let unreachable = &*nodes[0];
    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    let target = format!("node/{unreachable}");
    let force = ["force-delete", &target];
    eventually("nothing is refused any more", || {
        let run = stage.maint(force).run();
        assert_eq!(run.code, 6, "{run}");
        !run.to_string().contains("BLOCKER")
    });
    assert_eq!(pod(&stage).expect("it is there")["metadata"]["uid"], before);

    let confirmed = ["--accept-risk", "-m", "the machine is scrap"];
    let run = stage.maint(force).args(confirmed).succeeds();
    let message = format!("{target} force-deleted; its lock and its pods are deleted with it\n");
    assert!(run.stdout.ends_with(&message), "{run}");
    let waiting = format!("{target}: waiting up to 2m for 1 pod to be deleted\n");
    assert!(run.stderr.contains(&waiting), "{run}");
    assert!(run.to_string().contains("RISK     owner"), "{run}");
    let node = format!("/api/v1/nodes/{unreachable}");
    assert_eq!(stage.get(&node), None, "{run}");
    eventually("the set makes another", || {
        pod(&stage).is_some_and(|pod| pod["metadata"]["uid"] != before)
    });
    assert!(
        is_attached(&stage, unreachable),
        "its volume may still be written to"
    );
}

/// If the kubelet registers its Node again, its pods stay: the garbage collector does not delete pods of existing
/// Nodes.
#[test]
fn pods_of_a_node_that_registers_again_stay() {
    let (stage, node) = Stage::with_unreachable_node("again");
    stage.create(&[stage.namespace(), stage.pod("web", &node)]);
    eventually("the control plane has tainted it", || {
        let taints = stage.node(&node)["spec"]["taints"].to_string();
        taints.contains("NoExecute")
    });
    let target = format!("node/{node}");
    let force = [
        "force-delete",
        &target,
        "--accept-risk",
        "-m",
        "scrap",
        "--timeout=8s",
    ];
    let run = stage
        .maint(force)
        .until_it_says("waiting up to 8s for 1 pod to be deleted");
    stage.create(&[json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})]);
    let run = run.ends();
    assert_eq!(run.code, 4, "{run}");
    let message = format!(
        "{target} force-deleted; 1 pod left: again/web; the node has registered again, so its pods stay until its kubelet ends \
         them\n"
    );
    assert!(run.stdout.ends_with(&message), "{run}");
}
