//! The command `describe`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Maint, ago, in_one_line, on_both, on_one, requests};

/// What the page says to run next, with single spaces.
fn next_commands(describe: Maint, node: &str) -> Vec<String> {
    let page = describe.succeeds().stdout.replace(node, "worker-1");
    let lines = page.lines().skip_while(|line| *line != "Next commands:");
    lines.skip(1).map(in_one_line).collect()
}

#[test]
fn a_page_has_the_lock_the_node_and_what_to_run_next() {
    on_both("describe-page", |cluster| {
        let node = cluster.node("worker-1");
        let describe = || cluster.maint(["describe", "node", &node]);
        assert_snapshot!(describe().run(), @"
        $ kubectl maint describe node worker-1
        Name: worker-1
        Lock:
          State:  Free
        Node:
          Status:     Ready
          Heartbeat:  -
        Next commands:
          Lock it:  kubectl maint acquire worker-1 -m WHY
        -- exit code 0
        ");
        let reason = "new kernel:\n- drain\n\u{1b}[31m- reboot";
        cluster.maint(["acquire", &node, "-m", reason]).succeeds();
        assert_snapshot!(describe().run(), @r"
        $ kubectl maint describe node worker-1
        Name: worker-1
        Lock:
          State:        Locked
          Holder:       alice@bastion
          Reason:       new kernel:
                        - drain
                        \u{1b}[31m- reboot
          Acquired:     [time] ([length] ago)
          Renewed:      [time] ([length] ago)
          Expires:      [time] (in 30m)
          Lock ID:      [lock-id]
          Transitions:  1
        Node:
          Status:     Ready
          Heartbeat:  -
        Next commands:
          Extend it:   kubectl maint renew worker-1
          Release it:  kubectl maint release worker-1
        -- exit code 0
        ");
        assert_eq!(
            next_commands(describe().holder("bob@laptop"), &node),
            [
                "Wait for it: kubectl maint acquire worker-1 --wait -m WHY",
                "If nobody works there: kubectl maint release worker-1 --force -m WHY"
            ]
        );
        cluster.maint(["release", &node, "-m", "done"]).succeeds();
        assert_snapshot!(describe().run(), @"
        $ kubectl maint describe node worker-1
        Name: worker-1
        Lock:
          State:        Free
          Transitions:  1
          Last holder:  alice@bastion
          Released:     [time] ([length] ago)
          Note:         done
        Node:
          Status:     Ready
          Heartbeat:  -
        Next commands:
          Lock it:  kubectl maint acquire worker-1 -m WHY
        -- exit code 0
        ");
        cluster.maint(["hold", &node, "-m", "bad disk"]).succeeds();
        assert_snapshot!(describe().run(), @"
        $ kubectl maint describe node worker-1
        Name: worker-1
        Lock:
          State:        OnHold
          Holder:       alice@bastion
          Reason:       bad disk
          Acquired:     [time] ([length] ago)
          Renewed:      [time] ([length] ago)
          Lock ID:      [lock-id]
          Transitions:  2
          Last holder:  alice@bastion
        Node:
          Status:        Ready
          Heartbeat:     -
          Set by locks:  kubectl-maint.dev/held=alice-bastion
                         remediation.medik8s.io/exclude-from-remediation=true
                         cluster-autoscaler.kubernetes.io/scale-down-disabled=true
        Next commands:
          End the hold:  kubectl maint unhold worker-1
        -- exit code 0
        ");
        assert_eq!(
            next_commands(describe().holder("bob@laptop"), &node),
            [
                "Wait for it: kubectl maint acquire worker-1 --wait -m WHY",
                "If nobody works there: kubectl maint unhold worker-1"
            ]
        );
    });
}

#[test]
fn an_expired_lock_has_hints_for_its_holder_and_for_others() {
    on_one("describe-expired", |cluster| {
        let node = cluster.node("worker-1");
        let expired = json!({
            "holderIdentity": "alice@bastion",
            "acquireTime": ago(5430),
            "renewTime": ago(5430),
            "leaseDurationSeconds": 1800,
            "leaseTransitions": 1,
        });
        cluster.lease(&node, &expired);
        let describe = || cluster.maint(["describe", &node]);
        assert_eq!(
            next_commands(describe(), &node),
            [
                "Continue: kubectl maint renew worker-1",
                "Release it: kubectl maint release worker-1"
            ]
        );
        assert_eq!(
            next_commands(describe().holder("bob@laptop"), &node),
            ["Check what is left to do, then: kubectl maint acquire worker-1 -m WHY"]
        );
    });
}

/// The holder's clock may be ahead.
#[test]
fn a_time_in_the_future_is_not_shown_as_past() {
    on_one("describe-ahead", |cluster| {
        let node = cluster.node("worker-1");
        let ahead = json!({
            "holderIdentity": "alice@bastion",
            "acquireTime": ago(60),
            "renewTime": ago(-1020),
            "leaseDurationSeconds": 600,
            "leaseTransitions": 1,
        });
        cluster.lease(&node, &ahead);
        let run = cluster.maint(["describe", &node]).succeeds();
        let line = |key: &str| run.stdout.lines().find(|line| line.contains(key));
        assert!(
            line("Acquired:").is_some_and(|line| line.ends_with(" ago)")),
            "{run}"
        );
        assert!(
            line("Renewed:").is_some_and(|line| line.contains(" (in 17m)")),
            "{run}"
        );
    });
}

#[test]
fn several_nodes_have_a_page_each_and_those_that_do_not_exist_an_error() {
    on_one("describe-several", |cluster| {
        let (one, two) = (cluster.node("one"), cluster.node("two"));
        let typed = cluster.name("three");
        let run = cluster.maint(["describe", &one, &typed, &two]).run();
        assert_snapshot!(run, @r#"
        $ kubectl maint describe one three two
        Name: one
        Lock:
          State:  Free
        Node:
          Status:     Ready
          Heartbeat:  -
        Next commands:
          Lock it:  kubectl maint acquire one -m WHY


        Name: two
        Lock:
          State:  Free
        Node:
          Status:     Ready
          Heartbeat:  -
        Next commands:
          Lock it:  kubectl maint acquire two -m WHY
        -- stderr
        Error from server (NotFound): nodes "three" not found
        hint: list all nodes with `kubectl maint status --all`
        -- exit code 1
        "#);
        let run = cluster.maint(["describe", &one, "-v6"]).succeeds();
        let what = "Lease, Node, heartbeat and the Lease of medik8s";
        assert_eq!(requests(&run), vec!["GET"; 4], "{what}");
        let run = cluster.maint(["describe"]).run();
        assert_eq!(run.code, 2, "{run}");
    });
}
