//! The messages if a Lease is changed by others, or by the command itself.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{at_work, with};
use crate::support::{Cluster, LEASES, Run, ago, on_both, on_one};

/// Runs until it is killed.
const PATIENT: &str = "exec 2>/dev/null; echo at work; while :; do sleep 0.1; done";

/// Runs a command under the lock of `node`, and edits the Lease while the command runs.
fn edited(cluster: &Cluster, node: &str, edit: &Value) -> Run {
    let running = at_work(with(cluster, &[node.to_owned()], PATIENT));
    cluster.patch(&format!("{LEASES}/{node}"), edit);
    running.ends()
}

#[test]
fn an_edit_that_keeps_the_holder_is_no_take_over() {
    on_both("outside-nonce", |cluster| {
        let node = cluster.node("worker-1");
        let edit = json!({"spec": {"leaseTransitions": 7}});
        let run = edited(cluster, &node, &edit);
        assert_eq!(run.code, 5, "{run}");
        assert!(
            run.stderr.contains(": another lock of the same holder ("),
            "{run}"
        );
    });
}

#[test]
fn an_edit_that_shortens_the_lease_differs_from_an_unreachable_server() {
    on_one("outside-short", |cluster| {
        let node = cluster.node("worker-1");
        let edit = json!({"spec": {"leaseDurationSeconds": 4, "renewTime": ago(0)}});
        let run = edited(cluster, &node, &edit);
        assert_eq!(run.code, 5, "{run}");
        assert!(
            run.stderr
                .contains("it was not renewed in time. Either its Lease was edited"),
            "{run}"
        );
    });
}

#[test]
fn an_edit_that_removes_the_times_ends_the_lock() {
    on_one("outside-timeless", |cluster| {
        let node = cluster.node("worker-1");
        let edit = json!({"spec": {"acquireTime": null, "renewTime": null}});
        let run = edited(cluster, &node, &edit);
        let said = "it was not renewed in time. Either its Lease was edited";
        assert!(run.stderr.contains(said), "{run}");
        assert_eq!(run.code, 5, "{run}");
    });
}

#[test]
fn the_command_itself_may_release_it() {
    on_one("outside-own", |cluster| {
        let node = cluster.node("worker-1");
        // The release may be killed together with the loop before it prints its message. Its stderr
        // is dropped.
        let script = "$PLUGIN release $MAINT_NODE --holder $MAINT_HOLDER 2>/dev/null; \
                      while :; do sleep 0.1; done";
        let run = with(cluster, &[node], script).run();
        assert_eq!(run.code, 5, "{run}");
        assert!(
            run.stderr
                .contains("was released under its own holder name"),
            "{run}"
        );
    });
}

#[test]
fn under_ones_own_with_a_refusal_says_how_to_be_its_holder() {
    on_one("outside-under", |cluster| {
        let node = cluster.node("worker-1");
        let script = "$PLUGIN acquire $MAINT_NODE --reentry";
        let run = with(cluster, &[node], script).run();
        assert_eq!(run.code, 3, "{run}");
        assert!(
            run.stderr
                .contains("act as its holder by adding `--reentry --holder alice@bastion/with-"),
            "{run}"
        );
    });
}

#[test]
fn hints_do_not_end_the_callers_own_with() {
    on_one("outside-hints", |cluster| {
        let node = cluster.node("worker-1");
        let hints = |line: &str| {
            let script = format!("unset MAINT_LOCK_ID; $PLUGIN {line}");
            let run = with(cluster, std::slice::from_ref(&node), &script).run();
            let run = run.to_string();
            let hints = run
                .lines()
                .filter(|line| line.trim_start().starts_with("hint: "));
            hints.map(str::trim).collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(hints("hold $MAINT_NODE -m disk"), @"hint: this runs inside `with`, which has the lock; exit the command of `with` first");
        assert_snapshot!(hints("release $MAINT_NODE"), @"hint: this runs inside `with`, which releases the lock when its command ends: exit that command");
        assert_snapshot!(hints("unhold $MAINT_NODE"), @"hint: this runs inside `with`, which releases the lock when its command ends: exit that command");
        assert_snapshot!(hints("wait $MAINT_NODE --timeout 0"), @"hint: this runs inside `with`, which has the lock until its command ends; do not wait for it here");
    });
}

#[test]
fn an_edit_that_empties_the_holder_leaves_no_trace_but_events() {
    on_one("outside-empty", |cluster| {
        let node = cluster.node("worker-1");
        let run = edited(cluster, &node, &json!({"spec": {"holderIdentity": ""}}));
        let said = "it was released\nhint: an Event may say who ended it and why; see `kubectl describe node worker-1`\n";
        assert!(run.to_string().contains(said), "{run}");
        assert_eq!(run.code, 5, "{run}");
    });
}
