//! What is said where a Lease changes from outside, or by the command itself.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{at_work, with};
use crate::support::{Cluster, LEASES, Run, ago, on_both};

/// Waits, at the end of a line, until it is ended.
const PATIENT: &str = "exec 2>/dev/null; echo at work; while :; do sleep 0.1; done";

/// A command under the lock of `node`, while its Lease is edited by hand.
fn edited(cluster: &Cluster, node: &str, edit: &Value) -> Run {
    let running = at_work(with(cluster, &[node.to_owned()], PATIENT));
    cluster.patch(&format!("{LEASES}/{node}"), edit);
    running.ends()
}

#[test]
fn an_edit_that_keeps_the_holder_is_no_take_over() {
    on_both("outside-nonce", |cluster| {
        cluster.namespace();
        let node = cluster.node("worker-1");
        let edit = json!({"spec": {"leaseTransitions": 7}});
        assert_snapshot!(edited(cluster, &node, &edit), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "exec 2>/dev/null; echo at work; while :; do sleep 0.1; done"
        -- stderr
        node/worker-1 locked until released, by alice@bastion/with-[process]; running on this machine: /bin/sh -c 'exec 2>/dev/null; echo at work; while :; do sleep 0.1; done'
        lease/worker-1 created
        error: node/worker-1 has another acquisition in the same name, alice@bastion/with-[process]: its Lease was edited, or released and acquired again
        hint: the command is being ended; if somebody broke it, an Event says who and why: kubectl describe node worker-1
        -- exit code 5
        "#);
    });
}

#[test]
fn an_edit_that_shortens_the_lease_is_told_from_a_server_that_is_away() {
    on_both("outside-short", |cluster| {
        cluster.namespace();
        let node = cluster.node("worker-1");
        let edit = json!({"spec": {"leaseDurationSeconds": 1, "renewTime": ago(0)}});
        assert_snapshot!(edited(cluster, &node, &edit), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "exec 2>/dev/null; echo at work; while :; do sleep 0.1; done"
        -- stderr
        node/worker-1 locked until released, by alice@bastion/with-[process]; running on this machine: /bin/sh -c 'exec 2>/dev/null; echo at work; while :; do sleep 0.1; done'
        lease/worker-1 created
        error: node/worker-1 was not renewed in time: its Lease was to end at [time], 1s after its last renewal; was it edited, or this process or its machine stopped?
        hint: the command is ended before its lease runs out; to see: kubectl maint status worker-1
        -- exit code 5
        "#);
    });
}

#[test]
fn the_command_itself_may_release_it() {
    on_both("outside-own", |cluster| {
        cluster.namespace();
        let node = cluster.node("worker-1");
        // It may be ended with the loop before it has ended by itself, and says so.
        let script = "$PLUGIN release $MAINT_NODE --holder $MAINT_HOLDER 2>/dev/null; \
                      while :; do sleep 0.1; done";
        assert_snapshot!(with(cluster, &[node], script).run(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "$PLUGIN release $MAINT_NODE --holder $MAINT_HOLDER 2>/dev/nu"
        node/worker-1 released
        -- stderr
        node/worker-1 locked until released, by alice@bastion/with-[process]; running on this machine: /bin/sh -c '$PLUGIN release $MAINT_NODE --holder $MAINT_HOLDER 2>/dev/null; while :; do sleep 0.1; done'
        lease/worker-1 created
        error: node/worker-1 was released while the command had it
        hint: the command is being ended; if somebody broke it, an Event says who and why: kubectl describe node worker-1
        -- exit code 5
        "#);
    });
}

#[test]
fn under_ones_own_with_a_refusal_says_how_to_be_its_holder() {
    on_both("outside-under", |cluster| {
        cluster.namespace();
        let node = cluster.node("worker-1");
        let script = "$PLUGIN acquire $MAINT_NODE --reentry";
        assert_snapshot!(with(cluster, &[node], script).run(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "$PLUGIN acquire $MAINT_NODE --reentry"
        -- stderr
        node/worker-1 locked until released, by alice@bastion/with-[process]; running on this machine: /bin/sh -c '$PLUGIN acquire $MAINT_NODE --reentry'
        lease/worker-1 created
        error: cannot lock node/worker-1: locked by alice@bastion/with-[process] (since [time], until [time], [length] left)
        hint: this runs under that lock of `with`; to act as its holder: kubectl maint --holder alice@bastion/with-[process] acquire worker-1 --reentry
        node/worker-1 released
        -- exit code 3
        "#);
    });
}

#[test]
fn what_would_end_ones_own_with_is_not_offered() {
    on_both("outside-hints", |cluster| {
        cluster.namespace();
        let node = cluster.node("worker-1");
        let hints = |line: &str| {
            let script = format!("unset MAINT_LOCK_ID MAINT_TOKEN; $PLUGIN {line}");
            let run = with(cluster, std::slice::from_ref(&node), &script).run();
            let run = run.to_string();
            let hints = run
                .lines()
                .filter(|line| line.trim_start().starts_with("hint: "));
            hints.map(str::trim).collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(hints("hold $MAINT_NODE -m disk"), @"hint: this runs under that lock of `with`, and would end with it: leave the command first, then: kubectl maint hold worker-1 -m disk");
        assert_snapshot!(hints("release $MAINT_NODE"), @"hint: this runs under that lock of `with`, which is released when the command ends: leave it");
        assert_snapshot!(hints("wait $MAINT_NODE --timeout 0"), @"hint: this runs under that lock of `with`, which lasts until the command ends: nothing to wait for");
    });
}
