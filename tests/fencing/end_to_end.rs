//! The whole of it: kubelets fall silent and come back, and the controllers do their part.

use control_plane::Return;
use serde_json::json;

use crate::support::database::{database, is_attached, pod, runs_on};
use crate::support::{SILENCE, Stage, eventually};

/// A pod that hangs in Terminating is replaced once its node is fenced, and nobody but Kubernetes
/// deletes anything; the node comes back only when it was restarted.
#[test]
fn a_silent_node_is_fenced_and_its_pod_comes_back_elsewhere() {
    let stage = Stage::new("whole");
    let _logs = stage.plane.keep_logs_on_panic("fencing-whole");
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let names = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&names);
    let [silent, other, _] = names;
    database(&stage);
    let before = runs_on(&stage, silent);

    let run = stage.maint(["fence", silent, "--powered-off=dark"]).run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("its kubelet is alive"), "{run}");
    stage.is_untouched(silent);

    kubelets.silence(silent, SILENCE).expect("it falls silent");
    eventually("the pod is evicted", || {
        pod(&stage).is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    });
    assert_eq!(pod(&stage).expect("it hangs")["metadata"]["uid"], before);

    let mut running = stage
        .maint(["fence", silent, "-m", "fire", "--powered-off=dark", "-v6"])
        .start();
    running.says("for 1 pod to run again");
    let after = runs_on(&stage, other);
    let run = running.ends();
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        run.stdout,
        format!("node/{silent} fenced by alice@bastion, powered off: dark\n")
    );
    assert!(!run.stderr.contains("verb=\"DELETE\""), "{run}");
    assert!(!is_attached(&stage, silent));
    assert!(stage.is_tainted(silent));
    let record = stage.record(silent).expect("a record");
    assert_eq!(record["who"], "alice@bastion");
    assert_eq!(record["why"], "fire");
    assert_eq!(record["how"], json!({"poweredOff": "dark"}));
    let boot_id = &stage.node(silent)["status"]["nodeInfo"]["bootID"];
    assert_eq!(&record["bootID"], boot_id);
    assert_ne!(after, before);

    let run = stage.maint(["unfence", silent]).run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("it is still unreachable"), "{run}");
    kubelets
        .bring_back(silent, Return::SameBoot)
        .expect("it is back");
    let run = stage.maint(["unfence", silent]).run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("it has not been restarted"), "{run}");
    assert!(stage.is_tainted(silent));

    kubelets
        .bring_back(silent, Return::Rebooted)
        .expect("it is back");
    let run = stage.maint(["unfence", silent]).succeeds();
    assert_eq!(run.stdout, format!("node/{silent} unfenced\n"));
    stage.is_untouched(silent);
    assert_eq!(pod(&stage).expect("it runs on")["metadata"]["uid"], after);
}
