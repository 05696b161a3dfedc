//! End to end: kubelets stop sending heartbeats and come back, and the controllers replace pods.

use control_plane::Return;
use serde_json::{Value, json};

use crate::support::database::{database, is_attached, pod, runs_on};
use crate::support::{HEARTBEAT_AGE, Stage, eventually};

/// A pod that stays in Terminating is replaced once its node is fenced, and only Kubernetes deletes
/// anything. The node is unfenced only after a restart.
#[test]
fn an_unreachable_node_is_fenced_and_its_pod_comes_back_elsewhere() {
    let stage = Stage::new("whole");
    let _logs = stage.plane.keep_logs_on_panic("fencing-whole");
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let names = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&names);
    let [unreachable, other, _] = names;
    database(&stage);
    let before = runs_on(&stage, unreachable);

    let run = stage
        .maint(["fence", unreachable, "--powered-off=dark"])
        .run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("its kubelet is alive"), "{run}");
    stage.is_untouched(unreachable);

    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    eventually("the pod is evicted", || {
        pod(&stage).is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    });
    assert_eq!(pod(&stage).expect("it hangs")["metadata"]["uid"], before);

    let fence = ["fence", unreachable, "-m", "fire", "--powered-off=dark"];
    let fencer = stage.fencer("fay");
    let run = stage.maint(fence).arg("-v6").kubeconfig(&fencer).succeeds();
    // The replicas are read once, and nobody waits for the new pod: it has no node yet.
    let incomplete = "StatefulSet/db: 0 of 1 ready (namespace whole)\n";
    assert!(run.stderr.contains(incomplete), "{run}");
    assert_eq!(
        run.stdout,
        format!("node/{unreachable} fenced by alice@bastion, powered off: dark\n")
    );
    assert!(!run.stderr.contains("verb=\"DELETE\""), "{run}");
    assert!(!is_attached(&stage, unreachable));
    assert!(stage.is_tainted(unreachable));
    let record = stage.record(unreachable).expect("a record");
    assert_eq!(record["who"], "alice@bastion");
    assert_eq!(record["why"], "fire");
    assert_eq!(record["how"], json!({"poweredOff": "dark"}));
    let boot_id = &stage.node(unreachable)["status"]["nodeInfo"]["bootID"];
    assert_eq!(&record["bootID"], boot_id);
    let after = runs_on(&stage, other);
    assert_ne!(after, before);
    let again = stage.maint(fence).args(["-o", "json"]).succeeds();
    assert_eq!(again.item()["incompleteOwners"], Value::Null, "{again}");

    let run = stage.maint(["unfence", unreachable]).run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("it is still unreachable"), "{run}");
    kubelets
        .bring_back(unreachable, Return::SameBoot)
        .expect("it is back");
    let run = stage.maint(["unfence", unreachable]).run();
    assert_eq!(run.code, 6, "{run}");
    assert!(
        run.stderr
            .contains("it is not known to have been restarted"),
        "{run}"
    );
    assert!(stage.is_tainted(unreachable));

    kubelets
        .bring_back(unreachable, Return::Rebooted)
        .expect("it is back");
    let run = stage.maint(["unfence", unreachable]).succeeds();
    assert_eq!(run.stdout, format!("node/{unreachable} unfenced\n"));
    stage.is_untouched(unreachable);
    assert_eq!(pod(&stage).expect("it runs on")["metadata"]["uid"], after);
}
