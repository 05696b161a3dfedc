//! The held label of a Node, if a command is killed between two of its writes, or a lock ends without it.

use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Cluster, LEASES, Treatment, holder_of, in_memory, on_both};

const SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// Whether the Node has the held label, and whether it has an opt-out.
fn keys(cluster: &Cluster, node: &str) -> (bool, bool) {
    let metadata = cluster.get(&format!("/api/v1/nodes/{node}"))["metadata"].clone();
    let has = |map: &str, key: &str| metadata[map][key] != Value::Null;
    (
        has("labels", "kubectl-maint.dev/held"),
        has("annotations", SCALE_DOWN),
    )
}

/// Kills this command when it sends a write to such a path. The write never arrives.
fn killed_before(cluster: &Cluster, arguments: &[&str], path: &'static str) {
    let proxy =
        cluster.proxy(
            move |method, sent| match *method == Method::PATCH && sent.contains(path) {
                true => Treatment::Keep,
                false => Treatment::Pass,
            },
        );
    let command = cluster.maint(arguments).kubeconfig(&proxy.kubeconfig);
    let running = command.start();
    drop(proxy.kept());
    running.is_sent(Signal::KILL);
    running.ends_killed();
}

#[test]
fn a_hold_killed_before_its_label_writes_it_when_run_again() {
    on_both("label-hold-killed", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let hold = ["hold", &node, "-m", "disk"];
        killed_before(cluster, &hold, "/nodes/");
        assert!(holder_of(cluster, &node).is_some());
        assert_eq!(keys(cluster, &node), (false, false));
        cluster.maint(hold).succeeds();
        assert_eq!(keys(cluster, &node), (true, true));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

#[test]
fn an_unhold_killed_behind_the_label_ends_the_hold_when_run_again() {
    on_both("label-unhold-killed", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        killed_before(cluster, &["unhold", &node], "/leases/");
        assert_eq!(keys(cluster, &node), (false, false));
        assert!(holder_of(cluster, &node).is_some());
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(holder_of(cluster, &node), None);
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

/// The unhold has written on the Node that this hold ends, so its label could not be written any more.
#[test]
fn a_hold_behind_a_killed_unhold_is_labelled_again() {
    on_both("label-hold-again", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        killed_before(cluster, &["unhold", &node], "/leases/");
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "disk"]).run(), @"
        $ kubectl maint hold worker-1 -m disk
        node/worker-1 on hold by alice@bastion
        -- stderr
        A hold does not expire. To end it: kubectl maint unhold worker-1
        -- exit code 0
        ");
        assert_eq!(keys(cluster, &node), (true, true));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

#[test]
fn an_unhold_removes_the_label_of_a_hold_whose_lease_is_lost() {
    on_both("label-lease-lost", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        cluster.delete(&format!("{LEASES}/{node}"));
        let run = cluster.maint(["unhold", &node]).succeeds();
        assert!(run.stdout.contains("already free"), "{run}");
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

#[test]
fn doctor_removes_the_keys_of_ended_locks_and_no_others() {
    in_memory("label-doctor", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        let [ended, held, by_hand] = &nodes;
        for node in [ended, held] {
            cluster.maint(["hold", node, "-m", "disk"]).succeeds();
        }
        let free = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        cluster.patch(&format!("{LEASES}/{ended}"), &free);
        let found = cluster.maint(["doctor"]).run().to_string();
        let stale = "held labels    with the held label of a lock that has ended: worker-1\n";
        let hint = "to remove it: `kubectl maint doctor --fix`";
        assert!(found.contains(stale) && found.contains(hint), "{found}");
        assert_eq!(keys(cluster, ended), (true, true));

        let fixed = cluster.maint(["doctor", "--fix"]).run().to_string();
        assert!(
            fixed.contains("ok       held labels    removed: worker-1\n"),
            "{fixed}"
        );
        assert_eq!(keys(cluster, ended), (false, false));
        assert_eq!(keys(cluster, held), (true, true));
        let found = cluster.maint(["doctor", "--fix"]).run().to_string();
        assert!(
            found.contains("held labels    1 node with the held label\n"),
            "{found}"
        );

        // Without a lock id, nobody knows whether its lock has ended.
        let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
        cluster.patch(&format!("/api/v1/nodes/{by_hand}"), &label);
        let left = cluster.maint(["doctor", "--fix"]).run().to_string();
        assert!(
            left.contains("and it was not removed: worker-3\n"),
            "{left}"
        );
        assert_eq!(keys(cluster, by_hand), (true, false));
    });
}
