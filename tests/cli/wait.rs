//! `wait`: it waits until nodes are free or locked.

use insta::assert_snapshot;
use serde_json::json;

use crate::acquire_wait::{about_to_expire, bob, held_by_bob};
use crate::support::Treatment::Keep;
use crate::support::{
    Cluster, LEASES, as_text, at_a_terminal, holder_of, in_memory, on_both, on_one,
};

fn free(cluster: &Cluster, short: &str) -> String {
    let node = cluster.node(short);
    cluster.lease(&node, &json!({}));
    node
}

#[test]
fn reached_states_need_no_waiting() {
    on_one("for-now", |cluster| {
        let (node, held) = (cluster.node("worker-1"), held_by_bob(cluster, "worker-2"));
        let now = "--timeout=0";
        assert_snapshot!(cluster.maint(["wait", &node, now]).run(), @"
        $ kubectl maint wait worker-1 --timeout=0
        node/worker-1 is free
        -- exit code 0
        ");
        assert_snapshot!(cluster.maint(["wait", &held, "--for=locked", now]).run(), @r#"
        $ kubectl maint wait worker-2 --for=locked --timeout=0
        node/worker-2 is locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        -- exit code 0
        "#);
        let name = cluster.maint(["wait", &held, "--for=locked", now, "-o", "name"]);
        assert_eq!(name.succeeds().stdout, format!("node/{held}\n"));
    });
}

#[test]
fn a_release_ends_it_and_reserves_nothing() {
    on_both("for-release", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster.maint(["wait", &node]).until_it_says("waiting for ");
        bob(cluster, &["release", &node]).succeeds();
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint wait worker-1
        node/worker-1 is free
        -- stderr
        waiting for node/worker-1 to be free: it is locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        -- exit code 0
        "#);
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn expired_locks_become_free_by_time_alone() {
    on_one("for-expiry", |cluster| {
        let node = about_to_expire(cluster, "worker-1");
        assert_snapshot!(cluster.maint(["wait", &node, "-q"]).run(), @"
        $ kubectl maint wait worker-1 -q
        -- exit code 0
        ");
        assert_snapshot!(cluster.maint(["wait", &node]).run(), @"
        $ kubectl maint wait worker-1
        node/worker-1 has an expired lock of bob@laptop (since [time], expired at [time], [length] ago)
        -- exit code 0
        ");
    });
}

#[test]
fn a_timeout_shows_the_state() {
    on_one("for-timeout", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        assert_snapshot!(cluster.maint(["wait", &node, "--timeout=4s"]).run(), @r#"
        $ kubectl maint wait worker-1 --timeout=4s
        -- stderr
        waiting for node/worker-1 to be free: it is locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        error: timed out after 4s waiting for node/worker-1 to be free: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint wait worker-1`
        -- exit code 4
        "#);
        let free = free(cluster, "worker-2");
        let held = ["wait", &free, "--for=locked", "--timeout=4s", "-q"];
        cluster.maint(held).fails(4);
    });
}

/// The time limit also applies to the first request, and to `acquire --wait`.
#[test]
fn a_server_that_does_not_answer_is_waited_for_no_longer() {
    on_one("for-nobody", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        let proxy = cluster.proxy(|_, _| Keep);
        let run = |words: &[&str]| {
            let maint = cluster.maint(words).arg("--timeout=1s");
            maint.kubeconfig(&proxy.kubeconfig).run()
        };
        assert_snapshot!(run(&["wait", &nodes[0]]), @"
        $ kubectl maint wait worker-1 --timeout=1s
        -- stderr
        error: timed out after 1s: the API server did not answer
        hint: to wait longer, increase --timeout or remove it
        -- exit code 4
        ");
        assert_eq!(run(&["wait", &nodes[0], &nodes[1]]).code, 4);
        assert_eq!(run(&["acquire", &nodes[0], "--wait"]).code, 4);
        assert_eq!(
            run(&["hold", &nodes[0], &nodes[1], "-m", "disk", "--wait"]).code,
            4
        );
    });
}

#[test]
fn many_nodes_are_awaited_by_their_holders() {
    in_memory("for-holders", |cluster| {
        let nodes: Vec<String> = (1..=12)
            .map(|n| cluster.node(&format!("n-{n:02}")))
            .collect();
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        for (holder, nodes) in [("carol@desk", &nodes[..2]), ("bob@laptop", &nodes[2..])] {
            let acquire = [&["acquire", "-m", "disk"], nodes].concat();
            cluster.maint(acquire).holder(holder).succeeds();
        }
        let wait = [&["wait", "--timeout=1s"], &nodes[..]].concat();
        let run = cluster.maint(&wait).run();
        let first = run.stderr.lines().next();
        let expected =
            "waiting for 12 of 12 nodes to be free; holders: bob@laptop (10), carol@desk (2)";
        assert_eq!(first, Some(expected), "{run}");
    });
}

#[test]
fn the_line_on_a_terminal_names_holders_and_the_time_limit_and_fits() {
    in_memory("for-line", |cluster| {
        let nodes = ["gke-prod-default-pool-1a2b3c4d-x5y6", "n-2", "n-3"];
        let nodes = nodes.map(|node| cluster.node(node));
        let [one, two, three] = &nodes;
        for (holder, nodes) in [
            ("alice@example.com", &[one, two][..]),
            ("node-maintenance-controller@worker-7", &[three]),
        ] {
            let acquire = cluster.maint(["acquire", "-m", "disk"]).args(nodes);
            acquire.holder(holder).succeeds();
        }
        let wait = cluster.maint(["wait", "--timeout=30m"]).args(&nodes);
        let mut terminal = at_a_terminal(wait);
        let line = r"waiting for 3 of 3 nodes to be free[^\x1b\r\n]*";
        let (_, line) = terminal.exp_regex(line).expect("a line");
        let line = as_text(&line);
        let (head, holders) = line.split_once("); ").expect("a time limit");
        let (_, countdown) = head.split_once(" (times out in ").expect("a time limit");
        assert!(
            countdown.starts_with("29:") || countdown == "30:00",
            "{line}"
        );
        assert!(holders.starts_with("holders: alice@ex"), "{line}");
        assert!(
            line.chars().count() < 80 && line.trim_end().ends_with('…'),
            "{line}"
        );
    });
}

#[test]
fn many_nodes_that_time_out_take_one_line() {
    in_memory("for-many", |cluster| {
        let nodes: Vec<String> = (10..18).map(|n| cluster.node(&format!("n-{n}"))).collect();
        bob(cluster, &["acquire", "--all", "--yes", "-m", "disk"]).succeeds();
        assert_snapshot!(cluster.maint(["wait", "--all", "--timeout=4s", "-q"]).run(), @r#"
        $ kubectl maint wait --all --timeout=4s -q
        -- stderr
        error: timed out after 4s waiting for 8 nodes to be free (n-10, n-11, n-12, n-13, n-14 and 3 more): locked by bob@laptop: "disk" (since [time] or later, the last until [time])
        hint: wait for them with `kubectl maint wait n-10 n-11 n-12 n-13 n-14 n-15 n-16 n-17`
        -- exit code 4
        "#);
        cluster.maint(["wait", "--all", "--timeout=0"]).fails(4);
        let json = ["wait", "--all", "--timeout=0", "-o", "json"];
        let list: serde_json::Value =
            serde_json::from_str(&cluster.maint(json).run().stdout).expect("JSON");
        let items = list["items"].as_array().expect("a list");
        assert_eq!(items.len(), nodes.len(), "{list}");
        assert!(
            items.iter().all(|item| item["error"]["code"] == "TimedOut"),
            "{list}"
        );
    });
}

#[test]
fn a_lease_that_is_being_deleted_is_not_free() {
    on_both("for-deleting", |cluster| {
        let node = free(cluster, "worker-1");
        let lease = format!("{LEASES}/{node}");
        let keep = |finalizers| json!({"metadata": {"finalizers": finalizers}});
        cluster.patch(&lease, &keep(json!(["example.com/kept"])));
        cluster.delete(&lease);
        assert_snapshot!(cluster.maint(["wait", &node, "--timeout=4s"]).run(), @"
        $ kubectl maint wait worker-1 --timeout=4s
        -- stderr
        waiting for node/worker-1 to be free: it has a Lease that is being deleted
        error: timed out after 4s waiting for node/worker-1 to be free: its Lease is being deleted
        hint: retry when the Lease is gone; check with `kubectl maint status worker-1`
        -- exit code 4
        ");
        let acquire = ["acquire", &node, "--wait", "--timeout=4s"];
        assert_eq!(cluster.maint(acquire).run().code, 4);
        let status = cluster.maint(["status", &node, "--no-headers"]).run();
        assert!(status.stdout.contains(" being deleted "), "{status}");
        cluster.patch(&lease, &keep(json!([])));
        cluster.maint(["wait", &node, "--timeout=30s"]).succeeds();
    });
}

#[test]
fn a_hold_is_not_a_lock() {
    on_one("for-held", |cluster| {
        let node = free(cluster, "worker-1");
        let mut run = cluster.maint(["wait", &node, "--for=locked"]).start();
        run.says("to be locked: ");
        bob(cluster, &["hold", &node, "-m", "disk"]).succeeds();
        run.says("is on hold by bob@laptop");
        bob(cluster, &["unhold", &node]).succeeds();
        run.says("is free\n");
        bob(cluster, &["acquire", &node]).succeeds();
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stdout.contains("is locked by bob@laptop"), "{run}");
    });
}

#[test]
fn ones_own_lock_is_not_free() {
    on_one("for-own", |cluster| {
        let node = free(cluster, "worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        assert_snapshot!(cluster.maint(["wait", &node, "--timeout=0"]).run(), @"
        $ kubectl maint wait worker-1 --timeout=0
        -- stderr
        error: node/worker-1 is not free: locked by you as alice@bastion (since [time], until [time], [length] left)
        hint: release it with `kubectl maint release worker-1`
        -- exit code 4
        ");
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_snapshot!(cluster.maint(["wait", &node, "--timeout=0"]).run(), @r#"
        $ kubectl maint wait worker-1 --timeout=0
        -- stderr
        error: node/worker-1 is not free: on hold by you as alice@bastion: "disk" (since [time])
        hint: end the hold with `kubectl maint unhold worker-1`
        -- exit code 4
        "#);
    });
}

#[test]
fn free_nodes_have_no_lock_id() {
    let cluster = Cluster::nowhere();
    assert_snapshot!(cluster.maint(["wait", "worker-1", "-o", "lock-id"]).run(), @"
    $ kubectl maint wait worker-1 -o lock-id
    -- stderr
    error: -o lock-id needs another --for: a free node has no lock id
    hint: use --for=locked, or remove -o lock-id
    -- exit code 2
    ");
}

#[test]
fn each_of_several_nodes_is_printed_when_it_reaches_the_state() {
    on_one("for-several", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| held_by_bob(cluster, short));
        let third = free(cluster, "worker-3");
        let run = cluster
            .maint(["wait", &nodes[0], &nodes[1], &third])
            .until_it_says("worker-2 to be free: it is locked by ");
        bob(cluster, &["release", &nodes[1]]).succeeds();
        bob(cluster, &["release", &nodes[0]]).succeeds();
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint wait worker-1 worker-2 worker-3
        node/worker-3 is free
        node/worker-2 is free
        node/worker-1 is free
        -- stderr
        waiting for node/worker-1 to be free: it is locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        waiting for node/worker-2 to be free: it is locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        -- exit code 0
        "#);
    });
}

#[test]
fn a_name_that_no_node_has_is_an_error() {
    on_one("for-unknown", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        cluster.node("worker-2");
        let run = cluster
            .maint(["wait", &node, &cluster.name("worker-9")])
            .run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.to_string().contains("did you mean worker-2"), "{run}");
    });
}

#[test]
fn a_deleted_node_ends_it() {
    on_both("for-gone", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster.maint(["wait", &node]).until_it_says("waiting for ");
        cluster.delete(&format!("/api/v1/nodes/{node}"));
        let run = run.ends();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("(NotFound)"), "{run}");
    });
}

#[test]
fn ctrl_c_ends_it() {
    on_one("for-ctrl-c", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster.maint(["wait", &node]).until_it_says("waiting for ");
        run.interrupt();
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint wait worker-1
        -- stderr
        waiting for node/worker-1 to be free: it is locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        error: interrupted
        -- exit code 130
        "#);
    });
}
