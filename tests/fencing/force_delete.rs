//! `force-delete` on an unreachable node, and how the controllers react.

use crate::support::database::{is_attached, pod, running_database};
use crate::support::{HEARTBEAT_AGE, Stage, eventually};

/// A plain deletion waits for the kubelet. A forced deletion does not: a second pod of the same name appears while the
/// volume of the first one is still attached to its node.
#[test]
fn a_bare_forced_deletion_is_believed_and_a_graceful_one_waits() {
    let stage = Stage::new("bare-forced");
    let _logs = stage.plane.keep_logs_on_panic("fencing-bare");
    let (kubelets, nodes, before) = running_database(&stage);
    let unreachable = &*nodes[0];
    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    stage.is_reported_unreachable(unreachable);
    let delete = ["delete", "pod", "db-0", "-n", stage.own(), "--wait=false"];
    stage.kubectl(&delete);
    let hanging = pod(&stage).expect("it hangs");
    assert_eq!(hanging["metadata"]["uid"], before);
    assert!(
        hanging["metadata"]["deletionTimestamp"].is_string(),
        "{hanging:#}"
    );
    stage.kubectl(&[&delete[..], &["--force", "--grace-period=0"]].concat());
    eventually("the set makes another", || {
        pod(&stage).is_some_and(|pod| pod["metadata"]["uid"] != before)
    });
    assert!(
        is_attached(&stage, unreachable),
        "its volume may still be written to"
    );
}

/// The pod stays in Terminating until its deletion is confirmed. Then it is replaced, and its volume stays attached to
/// the unreachable node, as the report said.
#[test]
fn a_hanging_pod_is_replaced_once_its_deletion_was_confirmed() {
    let stage = Stage::new("forced");
    let _logs = stage.plane.keep_logs_on_panic("fencing-forced");
    let (kubelets, nodes, before) = running_database(&stage);
    let unreachable = &*nodes[0];
    let force = ["force-delete", "pod/db-0", "-n", stage.own()];
    let run = stage.maint(force).run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.to_string().contains("BLOCKER  node-alive"), "{run}");

    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    let mut report = String::new();
    eventually("nothing is refused any more", || {
        let run = stage.maint(force).run();
        assert_eq!(run.code, 6, "{run}");
        report = run.to_string();
        !report.contains("BLOCKER")
    });
    for line in [
        "info     node-unreachable",
        "RISK     owner",
        "RISK     volume-attached",
    ] {
        assert!(report.contains(line), "{line}: {report}");
    }
    assert_eq!(pod(&stage).expect("it hangs")["metadata"]["uid"], before);

    let (_, ids) = report.split_once("--accept-risk=").expect("what to type");
    let (ids, _) = ids.split_once(' ').expect("more to type");
    let confirm = format!("--accept-risk={ids}");
    let run = stage
        .maint(force)
        .args([&confirm, "-m", "the rack burns"])
        .succeeds();
    let line = "StatefulSet/db: 0 of 1 ready (namespace forced)\n";
    assert!(run.stderr.ends_with(line), "{run}");
    eventually("the set makes another", || {
        pod(&stage).is_some_and(|pod| pod["metadata"]["uid"] != before)
    });
    assert!(
        is_attached(&stage, unreachable),
        "its volume may still be written to"
    );
}
