//! The command `hold`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Run, events_of, holder_of, on_both, on_one};

#[test]
fn a_node_is_held_until_further_notice() {
    on_both("hold-free", |cluster| {
        let node = cluster.node("worker-1");
        assert_snapshot!(
            cluster.maint(["hold", &node, "-m", "disk", "--expect-until", "2d"]).run(),
            @"
        $ kubectl maint hold worker-1 -m disk --expect-until 2d
        node/worker-1 on hold by alice@bastion, expected until [time]
        -- stderr
        lease/worker-1 created
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        -- exit code 0
        "
        );
        let spec = &cluster.lease_of(&node)["spec"];
        assert_eq!(spec["holderIdentity"], "kubeadm:alice@bastion");
        assert_eq!(spec["leaseDurationSeconds"], i32::MAX);
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "two disks"]).run(), @r#"
        $ kubectl maint hold worker-1 -m "two disks"
        node/worker-1 hold updated by alice@bastion, expected until [time]
        -- stderr
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        -- exit code 0
        "#);
        assert_snapshot!(events_of(cluster, &node), @r#"
        Normal MaintenanceHold: alice@bastion put the node on hold for maintenance, expected until [time]: "disk"
        Normal MaintenanceHold: alice@bastion put the node on hold for maintenance, expected until [time]: "two disks"
        "#);
    });
}

#[test]
fn ones_own_lease_becomes_a_hold() {
    on_one("hold-own", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "takes longer"]).run(), @r#"
        $ kubectl maint hold worker-1 -m "takes longer"
        node/worker-1 on hold by alice@bastion; this replaces your lock, which would have expired at [time]
        -- stderr
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        -- exit code 0
        "#);
    });
}

#[test]
fn each_of_several_nodes_is_put_on_hold_separately() {
    on_one("hold-some", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3", "worker-4"];
        let nodes = nodes.map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let [one, two, three, four] = &nodes;
        for node in [two, three] {
            let bob = cluster.maint(["acquire", node]).holder("bob@laptop");
            bob.succeeds();
        }
        // The next steps name the nodes that are on hold. The hint to retry names the others.
        assert_snapshot!(cluster.maint(["hold", four, two, three, one, one, "-m", "rack"]).run(), @"
        $ kubectl maint hold worker-4 worker-2 worker-3 worker-1 worker-1 -m rack
        node/worker-4 on hold by alice@bastion
        node/worker-1 on hold by alice@bastion
        -- stderr
        error: cannot put node/worker-2 on hold: locked by bob@laptop (since [time], until [time], [length] left)
        error: cannot put node/worker-3 on hold: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for them with `kubectl maint hold worker-2 worker-3 -m rack --wait`; if nobody works there, take them over with `kubectl maint hold worker-2 worker-3 -m rack --take-over`
        Holds do not expire, and `kubectl drain` still evicts pods. To end them:
          kubectl maint unhold worker-4 worker-1
        2 of 4 nodes on hold; not put on hold: worker-2, worker-3
        -- exit code 3
        ");
        assert_eq!(
            holder_of(cluster, one).as_deref(),
            Some("kubeadm:alice@bastion")
        );
        assert_eq!(holder_of(cluster, two).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn locks_of_others_are_taken_over_only_after_a_confirmation() {
    on_both("hold-other", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["acquire", &node, "-m", "kernel"])
            .holder("bob@laptop")
            .succeeds();
        cluster.maint(["hold", &node, "-m", "fire"]).fails(3);
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "fire", "--take-over"]).run(), @r#"
        $ kubectl maint hold worker-1 -m fire --take-over
        -- stderr
        context [context], server [server], user [user]: 1 node
          node/worker-1 is locked by bob@laptop since [time] until [time]: "kernel"
        error: not confirmed: there is no terminal for a prompt
        hint: add --yes to confirm
        -- exit code 6
        "#);
        cluster
            .maint(["hold", &node, "-m", "fire", "--take-over", "--dry-run"])
            .succeeds();
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
        assert_snapshot!(
            cluster.maint(["hold", &node, "-m", "fire", "--take-over", "--yes"]).run(),
            @"
        $ kubectl maint hold worker-1 -m fire --take-over --yes
        node/worker-1 on hold by alice@bastion, taken over from bob@laptop
        -- stderr
        Warning: bob@laptop may still act on node/worker-1 until [time] at the latest
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        -- exit code 0
        "
        );
        assert_snapshot!(events_of(cluster, &node), @r#"
        Warning MaintenanceLockTakenOver: alice@bastion took over the maintenance lock of bob@laptop: "fire"
        Normal MaintenanceHold: alice@bastion put the node on hold for maintenance: "fire"
        "#);
        assert_eq!(
            cluster
                .maint(["hold", &node, "-m", "flood"])
                .holder("carol@desk")
                .run()
                .code,
            3
        );
        cluster
            .maint(["hold", &node, "-m", "flood", "--take-over", "--yes"])
            .holder("carol@desk")
            .succeeds();
    });
}

#[test]
fn a_reason_and_a_time_with_a_zone_are_required() {
    on_one("hold-usage", |cluster| {
        let node = cluster.node("worker-1");
        let refused = |arguments: &[&str]| -> Run {
            let run = cluster.maint(["hold", &node]).args(arguments).run();
            assert_eq!(run.code, 2, "{run}");
            run
        };
        refused(&[]);
        let empty = refused(&["-m", " "]);
        assert!(empty.stderr.contains("a hold needs a reason"), "{empty}");
        refused(&["-m", "disk", "--expect-until", "2040-01-01T12:00"]);
        assert_snapshot!(refused(&["-m", "disk", "--expect-until", "2020-01-01T12:00Z"]), @"
        $ kubectl maint hold worker-1 -m disk --expect-until 2020-01-01T12:00Z
        -- stderr
        error: --expect-until is in the past, by the API server's clock
        hint: use a time in the future
        -- exit code 2
        ");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn more_than_ten_nodes_by_selector_need_a_confirmation() {
    on_one("hold-many", |cluster| {
        let rack = cluster.name("rack");
        let selector = format!("rack={rack}");
        for number in 1..=11 {
            cluster.node_with(
                &format!("worker-{number}"),
                &json!({"rack": rack}),
                &json!({}),
            );
        }
        let hold = || cluster.maint(["hold", "-l", &selector, "-m", "rack moves"]);
        hold().fails(6);
        let run = hold().args(["--yes"]).succeeds();
        assert_eq!(run.stdout.lines().count(), 11, "{run}");
        assert!(run.stderr.ends_with("11 of 11 nodes on hold\n"), "{run}");
    });
}

/// A script that asked for a cordon must not continue without one.
#[test]
fn a_hold_that_stays_as_it_is_says_what_was_not_done() {
    on_one("hold-reentry", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "vendor"]).succeeds();
        let reentry = ["acquire", &node, "--reentry"];
        assert_snapshot!(cluster.maint(reentry).args(["-m", "new"]).run(), @"
        $ kubectl maint acquire worker-1 --reentry -m new
        node/worker-1 already on hold by you
        -- stderr
        Warning: you already have node/worker-1 on hold, and --reentry does not change a hold: -m has no effect
        hint: change the hold with `kubectl maint hold worker-1 -m new`
        -- exit code 0
        ");
        let cordon = ["-m", "new", "--cordon"];
        assert_snapshot!(cluster.maint(reentry).args(cordon).run(), @"
        $ kubectl maint acquire worker-1 --reentry -m new --cordon
        node/worker-1 already on hold by you
        -- stderr
        error: you already have node/worker-1 on hold, and --reentry does not change a hold: -m, --cordon have no effect
        hint: change the hold with `kubectl maint hold worker-1 -m new --cordon`
        -- exit code 1
        ");
        cluster.maint(["unhold", &node]).succeeds();
    });
}
