//! The command `renew`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{LEASES, ago, in_memory, on_both, on_one, on_real, requests};

#[test]
fn ones_own_lease_is_extended_and_never_shortened() {
    on_both("renew-own", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["acquire", &node, "-m", "new kernel"])
            .succeeds();
        assert_snapshot!(
            cluster.maint(["renew", &node, "--duration", "1h", "-m", "firmware"]).run(),
            @"
        $ kubectl maint renew worker-1 --duration 1h -m firmware
        node/worker-1 renewed by alice@bastion until [time] (1h)
        -- exit code 0
        "
        );
        let lease = cluster.lease_of(&node);
        assert_eq!(
            lease["metadata"]["annotations"]["kubectl-maint.dev/reason"],
            "firmware"
        );
        assert_snapshot!(cluster.maint(["renew", &node, "--duration", "1m"]).run(), @"
        $ kubectl maint renew worker-1 --duration 1m
        node/worker-1 not extended, because the lock already lasts longer: locked by alice@bastion until [time] (1h)
        -- stderr
        hint: to keep it for longer, run `kubectl maint hold worker-1 -m firmware`
        -- exit code 0
        ");
        let duration = cluster.lease_of(&node)["spec"]["leaseDurationSeconds"].as_u64();
        assert!(duration > Some(3500), "{duration:?}");
    });
}

/// All nodes end up locked, although one lock lasts longer than requested.
#[test]
fn a_lock_that_lasts_longer_is_acquired_again_by_reentry() {
    in_memory("renew-reentry", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let first = ["acquire", &nodes[0], "--duration", "1h"];
        cluster.maint(first).succeeds();
        let reentry = cluster.maint(["acquire", "--reentry"]).args(&nodes);
        assert_snapshot!(reentry.run(), @"
        $ kubectl maint acquire --reentry worker-1 worker-2
        node/worker-1 not extended, because the lock already lasts longer: locked by alice@bastion until [time] (1h)
        node/worker-2 acquired by alice@bastion until [time] (30m)
        -- stderr
        hint: to keep it for longer, run `kubectl maint hold worker-1 -m WHY`
        lease/worker-2 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1 worker-2
          kubectl maint renew worker-1 worker-2
          kubectl maint hold worker-1 worker-2 -m WHY
        2 of 2 nodes locked
        -- exit code 0
        ");
    });
}

#[test]
fn a_shorter_renewal_has_a_hint_to_add_time() {
    on_one("renew-add", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        let run = cluster.maint(["renew", &node, "--duration", "5m"]).run();
        assert_snapshot!(run, @"
        $ kubectl maint renew worker-1 --duration 5m
        node/worker-1 not extended, because the lock already lasts longer: locked by alice@bastion until [time] (30m)
        -- stderr
        hint: to add 5m, run `kubectl maint renew worker-1 --duration +5m`
        -- exit code 0
        ");
        cluster.maint(run.next_command()).succeeds();
    });
}

#[test]
fn time_is_added_to_what_is_left_up_to_an_hour_from_now() {
    on_one("renew-plus", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        let [short, long] = &nodes;
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let me = cluster.name("me");
        let maint = |words: &[&str]| cluster.maint(words).holder(&me);
        let acquire = |node: &str, duration: &str| {
            maint(&["acquire", node, "--duration", duration]).succeeds();
        };
        acquire(short, "10m");
        acquire(long, "45m");
        maint(&["renew", short, "--duration", "+20m"]).succeeds();
        let seconds = |node: &str| cluster.lease_of(node)["spec"]["leaseDurationSeconds"].clone();
        let added = seconds(short).as_u64();
        assert!(added > Some(29 * 60) && added <= Some(30 * 60), "{added:?}");
        // The other lock would last longer than 1h, so it is not changed.
        let before = cluster.lease_of(long);
        let run = maint(&["renew", "--mine", "--duration", "+20m"]).run();
        assert_snapshot!(run, @"
        $ kubectl maint renew --mine --duration +20m
        node/worker-1 renewed by me until [time] (50m)
        -- stderr
        error: cannot renew node/worker-2: [length] left; with 20m more, the lock would last longer than 1h
        hint: add at most 15m with `kubectl maint renew worker-2 --duration +15m`; to keep it for longer, run `kubectl maint hold worker-2 -m WHY`
        1 of 2 nodes renewed; not renewed: worker-2
        -- exit code 1
        ");
        assert_eq!(cluster.lease_of(long), before);
        maint(&["renew", long, "--duration", "+15m"]).succeeds();
        let bob = maint(&["renew", long, "--duration", "+50m"]).holder("bob@laptop");
        assert_eq!(bob.run().code, 3, "it is not bob's, whatever he adds");
    });
}

/// An expired lock has no time left to add to, and a user can't extend another user's lock.
#[test]
fn time_is_added_from_now_on_if_nothing_is_left() {
    on_one("renew-plus-late", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(
            &node,
            &json!({
                "holderIdentity": "alice@bastion",
                "acquireTime": ago(7200),
                "renewTime": ago(5400),
                "leaseDurationSeconds": 1800,
            }),
        );
        let add = |holder: &str| {
            let maint = cluster.maint(["renew", &node, "--duration", "+10m"]);
            maint.holder(holder).run()
        };
        assert_eq!(add("bob@laptop").code, 3);
        assert_eq!(add("alice@bastion").code, 0);
        assert_eq!(cluster.lease_of(&node)["spec"]["leaseDurationSeconds"], 600);
    });
}

#[test]
fn locks_of_others_are_refused() {
    on_one("renew-other", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        assert_snapshot!(cluster.maint(["renew", &node]).run(), @"
        $ kubectl maint renew worker-1
        -- stderr
        error: cannot renew node/worker-1: it is free
        hint: acquire it with `kubectl maint acquire worker-1 -m WHY`
        -- exit code 3
        ");
        let gone = cluster.name("decommissioned");
        cluster.maint(["renew", &gone]).fails(1);
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        assert_snapshot!(cluster.maint(["renew", &node]).run(), @"
        $ kubectl maint renew worker-1
        -- stderr
        error: cannot renew node/worker-1: locked by bob@laptop (since [time], until [time], [length] left); you are alice@bastion
        hint: wait for it with `kubectl maint acquire worker-1 -m WHY --wait`
        -- exit code 3
        ");
    });
}

#[test]
fn a_deleted_lease_is_reported() {
    on_both("renew-deleted", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        cluster.delete(&format!("{LEASES}/{node}"));
        let run = cluster.maint(["renew", &node]).run();
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains("its Lease was deleted"), "{run}");
    });
}

#[test]
fn an_own_expired_lock_is_renewed_with_a_warning() {
    on_one("renew-late", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(
            &node,
            &json!({
                "holderIdentity": "alice@bastion",
                "acquireTime": ago(7200),
                "renewTime": ago(5400),
                "leaseDurationSeconds": 1800,
                "leaseTransitions": 4,
            }),
        );
        assert_snapshot!(cluster.maint(["renew", &node]).run(), @"
        $ kubectl maint renew worker-1
        node/worker-1 renewed by alice@bastion until [time] (30m)
        -- stderr
        Warning: your lock on node/worker-1 had expired (since [time], expired at [time], [length] ago); nobody else acquired it
        -- exit code 0
        ");
    });
}

#[test]
fn a_lock_id_renews_only_its_acquisition() {
    on_one("renew-token", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let acquired = cluster
            .maint(["acquire", &node, "-o", "lock-id"])
            .succeeds();
        let id = acquired.stdout.trim_end();
        cluster.maint(["renew", &node, "--lock-id", id]).succeeds();
        cluster
            .maint(["renew", &node])
            .env("MAINT_LOCK_ID", id)
            .succeeds();

        cluster.maint(["release", &node]).succeeds();
        cluster.maint(["acquire", &node]).succeeds();
        let flag = cluster.maint(["renew", &node, "--lock-id", id]);
        flag.fails(3);
        let run = cluster
            .maint(["renew", &node])
            .env("MAINT_LOCK_ID", id)
            .run();
        assert_eq!(run.code, 3, "{run}");
    });
}

#[test]
fn mine_are_the_locks_of_the_caller_without_holds() {
    on_one("renew-mine", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3", "worker-4"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        // The holder is unique to this test, because other tests share the server.
        let me = cluster.name("me");
        cluster
            .maint(["acquire", &nodes[1], &nodes[0]])
            .holder(&me)
            .succeeds();
        cluster
            .maint(["hold", &nodes[2], "-m", "disk"])
            .holder(&me)
            .succeeds();
        assert_snapshot!(cluster.maint(["renew", "--mine"]).holder(&me).run(), @"
        $ kubectl maint renew --mine
        node/worker-1 renewed by me until [time] (30m)
        node/worker-2 renewed by me until [time] (30m)
        -- stderr
        2 of 2 nodes renewed
        -- exit code 0
        ");
        cluster.maint(["release", "--mine"]).holder(&me).succeeds();
        assert_snapshot!(cluster.maint(["renew", "--mine"]).holder(&me).run(), @"
        $ kubectl maint renew --mine
        -- stderr
        error: nothing to renew: you (me) have no lock
        hint: end your holds with `kubectl maint unhold --mine`
        -- exit code 1
        ");
    });
}

#[test]
fn your_own_hold_cannot_be_renewed() {
    on_one("renew-hold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_snapshot!(cluster.maint(["renew", &node]).run(), @r#"
        $ kubectl maint renew worker-1
        -- stderr
        error: cannot renew node/worker-1: on hold by you as alice@bastion: "disk" (since [time])
        hint: a hold does not expire; set its expected end with `kubectl maint hold worker-1 -m disk --expect-until TIME`
        -- exit code 3
        "#);
    });
}

#[test]
fn it_takes_two_requests_a_node_or_one_list_and_one_each() {
    on_real("renew-requests", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        cluster.maint(["acquire"]).args(&nodes).succeeds();
        let one = cluster.maint(["renew", "-v6", &nodes[0]]).succeeds();
        assert_eq!(requests(&one), ["GET", "PATCH"], "{one}");
        let added = ["renew", "-v6", &nodes[0], "--duration", "+5m"];
        let added = cluster.maint(added).succeeds();
        assert_eq!(requests(&added), ["GET", "PATCH"], "{added}");
        let added = ["renew", "-v6", &nodes[0], &nodes[1], "--duration=+5m"];
        let added = cluster.maint(added).succeeds();
        assert_eq!(requests(&added), ["GET", "PATCH", "PATCH"], "{added}");
        let both = cluster.maint(["renew", "-v6"]).args(&nodes).succeeds();
        assert_eq!(requests(&both), ["GET", "PATCH", "PATCH"], "{both}");
    });
}

/// Another tool wrote a duration of years, and the lock expired nevertheless: the renewal does not use that duration
/// again.
#[test]
fn a_lease_of_years_is_renewed_for_as_long_as_maintenance_may_take() {
    on_both("renew-years", |cluster| {
        let node = cluster.node("worker-1");
        let years =
            json!({"holderIdentity": "alice@bastion", "leaseDurationSeconds": 2_147_483_647});
        cluster.lease(&node, &years);
        let run = cluster.maint(["renew", &node]).succeeds();
        assert!(run.stdout.ends_with(" (1h)\n"), "{run}");
        let duration = &cluster.lease_of(&node)["spec"]["leaseDurationSeconds"];
        assert_eq!(*duration, json!(3600));
    });
}

#[test]
fn the_lock_id_of_another_node_is_called_so() {
    on_one("renew-other-id", |cluster| {
        let [first, second] = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let acquired = cluster.maint(["acquire", &first, "-o", "lock-id"]);
        let acquired = acquired.succeeds();
        let id = acquired.stdout.trim_end();
        cluster.maint(["acquire", &second]).succeeds();
        for verb in ["renew", "release"] {
            let run = cluster.maint([verb, &second, "--lock-id", id]).run();
            let said = format!(
                "error: the lock id does not match the lock of node/{second}; node/{second} is locked by you as alice@bastion ("
            );
            assert!(run.stderr.starts_with(&said), "{run}");
            assert_eq!(run.code, 3, "{run}");
        }
        let bob = ["release", &second, "--force", "--yes", "-m=test"];
        cluster.maint(bob).succeeds();
        let bob = cluster.maint(["acquire", &second, "-m", "disk"]);
        bob.holder("bob@laptop").succeeds();
        let json = cluster.maint(["renew", &second, "--lock-id", id, "-o", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json.run().stdout).expect("JSON");
        let error = &json["items"][0]["error"];
        assert_eq!(error["code"], "WrongLockId", "{json}");
        assert_eq!(error["holder"], "bob@laptop", "{json}");
        assert_eq!(error["reason"], "disk", "{json}");
    });
}
