//! The command `unhold`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{events_of, holder_of, on_both, on_one, on_real, requests};

#[test]
fn ones_own_hold_ends_and_a_free_node_is_no_error() {
    on_one("unhold-own", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_snapshot!(cluster.maint(["unhold", &node]).run(), @r"
        $ kubectl maint unhold worker-1
        node/worker-1 hold ended
        -- exit code 0
        ");
        assert_eq!(holder_of(cluster, &node), None);
        assert_snapshot!(cluster.maint(["unhold", &node]).run(), @r"
        $ kubectl maint unhold worker-1
        node/worker-1 already free
        -- exit code 0
        ");
        assert_snapshot!(events_of(cluster, &node), @r#"
        Normal MaintenanceHold: alice@bastion put the node on hold for maintenance: "disk"
        Normal MaintenanceUnhold: alice@bastion ended their maintenance hold
        "#);
    });
}

#[test]
fn a_node_that_does_not_exist_is_not_free() {
    on_one("unhold-gone", |cluster| {
        let gone = cluster.name("decommissioned");
        cluster.maint(["unhold", &gone]).fails(1);
    });
}

#[test]
fn anothers_hold_needs_a_confirmation() {
    on_one("unhold-other", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["hold", &node, "-m", "disk", "--expect-until", "2d"])
            .holder("bob@laptop")
            .succeeds();
        assert_snapshot!(cluster.maint(["unhold", &node]).run(), @r#"
        $ kubectl maint unhold worker-1
        -- stderr
        context [context], server [server], user [user]: 1 node
          node/worker-1 is on hold by bob@laptop since [time], expected until [time]: "disk"
            ending it also undoes what it set on the node, such as a cordon
        error: not confirmed: there is no terminal for a prompt
        hint: add --yes to confirm
        -- exit code 6
        "#);
        assert_eq!(
            holder_of(cluster, &node).as_deref(),
            Some("kubeadm:bob@laptop")
        );
        cluster.maint(["unhold", &node, "--yes"]).succeeds();
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn a_hold_made_by_hand_is_ended_like_any_other() {
    on_both("unhold-by-hand", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({"holderIdentity": "kubeadm-ops"}));
        cluster.maint(["unhold", &node]).fails(6);
        cluster.maint(["unhold", &node, "--yes"]).succeeds();
        assert_eq!(holder_of(cluster, &node), None);
        // The Event is also visible on the Node, although this Lease has no owner.
        assert_snapshot!(
            events_of(cluster, &node),
            @"Warning MaintenanceUnhold: alice@bastion ended the maintenance hold of kubeadm-ops"
        );
    });
}

#[test]
fn an_event_needs_a_node() {
    on_both("unhold-nodeless", |cluster| {
        let gone = cluster.name("decommissioned");
        cluster.lease(&gone, &json!({"holderIdentity": "kubeadm-ops"}));
        let run = cluster.maint(["unhold", &gone, "--yes", "-v6"]).succeeds();
        // The Lease, its end, and the Node for the Event.
        assert_eq!(requests(&run), ["GET", "GET", "PATCH"], "{run}");
    });
}

#[test]
fn a_lock_cannot_be_unheld() {
    on_one("unhold-lease", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        assert_snapshot!(cluster.maint(["unhold", &node]).run(), @"
        $ kubectl maint unhold worker-1
        -- stderr
        error: cannot unhold node/worker-1: not on hold, but locked by alice@bastion (since [time], until [time], [length] left)
        hint: release it with `kubectl maint release worker-1`
        -- exit code 3
        ");
        let bob = cluster.maint(["unhold", &node, "--yes"]);
        bob.holder("bob@laptop").fails(3);
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("alice@bastion"));
    });
}

#[test]
fn mine_are_the_callers_own_holds() {
    on_one("unhold-mine", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let me = cluster.name("me");
        cluster
            .maint(["hold", "-m", "rack"])
            .args(&nodes[..2])
            .holder(&me)
            .succeeds();
        cluster.maint(["acquire", &nodes[2]]).holder(&me).succeeds();
        assert_snapshot!(cluster.maint(["unhold", "--mine"]).holder(&me).run(), @r#"
        $ kubectl maint unhold --mine
        node/worker-1 hold ended (on hold since [time]: "rack")
        node/worker-2 hold ended (on hold since [time]: "rack")
        -- stderr
        2 of 2 nodes free
        -- exit code 0
        "#);
        assert_eq!(holder_of(cluster, &nodes[2]).as_ref(), Some(&me));
        assert_snapshot!(cluster.maint(["unhold", "--mine"]).holder(&me).run(), @"
        $ kubectl maint unhold --mine
        -- stderr
        nothing to unhold: you (me) have no node on hold; release your locks with `kubectl maint release --mine`
        -- exit code 0
        ");
    });
}

#[test]
fn it_takes_two_requests_two_for_the_held_label_and_an_event() {
    on_real("unhold-requests", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        let run = cluster.maint(["unhold", "-v6", &node]).succeeds();
        let sent = ["GET", "GET", "PATCH", "PATCH", "POST"];
        assert_eq!(requests(&run), sent, "{run}");
    });
}
