//! The label, if a command is killed between two of its writes, or if one of them arrives late.

use http::Method;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{expire, is_node_write, keys};
use crate::support::{Cluster, Treatment, holder_of, on_both, on_one};

/// Kills this command when it sends a write to a path that contains `path`. The write never reaches the server.
fn killed_before(cluster: &Cluster, arguments: &[&str], path: &'static str) {
    let proxy = cluster.proxy_for(Treatment::Keep, move |method, sent| {
        *method == Method::PATCH && sent.contains(path) && !sent.contains("dryRun")
    });
    drop(proxy.kills(cluster.maint(arguments)));
}

#[test]
fn a_hold_killed_before_its_label_writes_it_when_run_again() {
    on_one("label-hold-killed", |cluster| {
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
fn an_unhold_killed_after_the_label_ends_the_hold_when_run_again() {
    on_one("label-unhold-killed", |cluster| {
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

/// Lets a write of the held label arrive after its hold has ended. Returns the status code of the answer, and what is
/// on the Node.
fn late_label(cluster: &Cluster, node: &str) -> (u16, (bool, bool)) {
    let proxy = cluster.proxy_for(Treatment::Keep, is_node_write);
    let kept = proxy.kills(cluster.maint(["hold", node, "-m", "disk"]));
    cluster.maint(["unhold", node]).succeeds();
    assert_eq!(holder_of(cluster, node), None);
    (kept.passes(), keys(cluster, node))
}

#[test]
fn a_label_that_arrives_after_the_unhold_is_refused() {
    on_both("label-late", |cluster| {
        let node = cluster.node("worker-1");
        assert_eq!(late_label(cluster, &node), (409, (false, false)));
    });
}

#[test]
fn a_label_that_arrives_after_the_unhold_is_refused_on_a_node_of_earlier_holds() {
    on_one("label-late-again", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "fan"]).succeeds();
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(late_label(cluster, &node), (409, (false, false)));
    });
}

/// The killed unhold has marked the first hold as ending on the Node, so the label of that hold can't be written any
/// more.
#[test]
fn a_hold_after_a_killed_unhold_is_labeled_again() {
    on_one("label-hold-again", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        killed_before(cluster, &["unhold", &node], "/leases/");
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "disk"]).run(), @"
        $ kubectl maint hold worker-1 -m disk
        node/worker-1 on hold by alice@bastion
        -- stderr
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        -- exit code 0
        ");
        assert_eq!(keys(cluster, &node), (true, true));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

#[test]
fn of_a_lock_does_not_stay_if_a_command_is_killed() {
    on_one("label-lock-killed", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        killed_before(cluster, &["acquire", &node, "--protect"], "/nodes/");
        assert!(holder_of(cluster, &node).is_some());
        assert_eq!(keys(cluster, &node), (false, false));
        cluster.maint(["release", &node]).succeeds();

        cluster.maint(["acquire", &node, "--protect"]).succeeds();
        killed_before(cluster, &["release", &node], "/leases/");
        assert_eq!(keys(cluster, &node), (false, false));
        assert!(holder_of(cluster, &node).is_some());
        cluster.maint(["release", &node]).succeeds();
        assert_eq!(holder_of(cluster, &node), None);
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

/// The next command removes it, whichever commands were killed before.
#[test]
fn of_a_lock_that_expired_goes_even_if_the_next_holder_is_killed() {
    on_one("label-expired-killed", |cluster| {
        let node = cluster.node("worker-1");
        let bob = |verb: &[&str]| cluster.maint(verb).arg(&node).holder("bob@laptop");
        let take = ["acquire", &node, "--take-expired"];
        let leaves_keys = || {
            bob(&["acquire", "--protect", "--opt-outs=auto"]).succeeds();
            expire(cluster, &node);
            killed_before(cluster, &take, "/nodes/");
            assert_eq!(holder_of(cluster, &node).as_deref(), Some("alice@bastion"));
            assert_eq!(keys(cluster, &node), (true, true));
        };
        // The next command runs as the holder whose command was killed.
        for next in [
            &["release", &node][..],
            &["acquire", &node, "--reentry"],
            &["renew", &node],
        ] {
            leaves_keys();
            cluster.maint(next).succeeds();
            assert_eq!(keys(cluster, &node), (false, false), "{next:?}");
            cluster.maint(["release", &node]).succeeds();
        }
        // The next command runs as somebody else, after that lock has expired too.
        for next in [&["acquire", "--take-expired"][..], &["hold", "-m", "disk"]] {
            leaves_keys();
            expire(cluster, &node);
            bob(next).succeeds();
            bob(&["release"]).succeeds();
            assert_eq!(keys(cluster, &node), (false, false), "{next:?}");
        }
        leaves_keys();
        cluster
            .maint(["release", &node, "--force", "--yes"])
            .holder("carol@desk")
            .succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
        // A lock that replaced one without keys gets no `purpose` annotation.
        cluster.maint(["acquire", &node]).succeeds();
        let lease = cluster.lease_of(&node);
        assert_eq!(
            lease["metadata"]["annotations"]["kubectl-maint.dev/purpose"],
            Value::Null
        );
    });
}
