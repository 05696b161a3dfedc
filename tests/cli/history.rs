//! The history of recent locks in a node's Lease.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Cluster, LEASES, ago, in_memory, on_both, on_one, on_real, requests};

const HISTORY: &str = "kubectl-maint.dev/history";

fn note(cluster: &Cluster, node: &str, key: &str) -> Value {
    cluster.lease_of(node)["metadata"]["annotations"][key].clone()
}

#[test]
fn shows_who_had_the_lock_and_how_each_ended() {
    on_both("history", |cluster| {
        let node = cluster.node("worker-1");
        let by = |holder: &str, arguments: &[&str]| {
            cluster.maint(arguments).holder(holder).succeeds();
        };
        by(
            "alice",
            &["acquire", &node, "-m", "new kernel", "--ticket", "OPS-7"],
        );
        by("alice", &["release", &node]);
        by("bob", &["acquire", &node, "-m", "disk errors"]);
        by(
            "alice",
            &[
                "release",
                &node,
                "--force",
                "--yes",
                "-m",
                "bob is on holiday",
            ],
        );
        by("bob", &["acquire", &node]);
        let times = json!({"spec": {
            "acquireTime": ago(7200), "renewTime": ago(7200), "leaseDurationSeconds": 60,
        }});
        cluster.patch(&format!("{LEASES}/{node}"), &times);
        by("alice", &["acquire", &node, "-m", "firmware"]);
        by("alice", &["renew", &node, "-m", "more firmware"]);
        by("alice", &["hold", &node, "-m", "bad DIMM"]);
        by(
            "carol",
            &["hold", &node, "-m", "burning smell", "--take-over", "--yes"],
        );
        let run = cluster.maint(["history", &node]).run();
        // Shows every length below one minute as 0s, because the machine may be slow.
        let shown = (0..60).fold(run.to_string(), |shown, seconds| {
            let length = format!("]   {:<6}", format!("{seconds}s"));
            shown.replace(&length, "]   0s    ")
        });
        assert_snapshot!(shown, @"
        $ kubectl maint history worker-1
        NODE               HOLDER   FROM                   LASTED   ENDED                 REASON
        worker-1   carol    [time]   -        current               burning smell
        worker-1   alice    [time]   0s       taken over by carol   bad DIMM
        worker-1   alice    [time]   0s       replaced              more firmware
        worker-1   bob      [time]   60s      expired               -
        worker-1   bob      [time]   0s       released by alice     disk errors
        worker-1   alice    [time]   0s       released              new kernel
        -- exit code 0
        ");
        let run = cluster
            .maint(["history", &node, "-o", "json", "-v6"])
            .succeeds();
        assert_eq!(requests(&run), ["GET"], "{run}");
        let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let outcomes = list["items"].as_array().expect("items").iter();
        let outcomes: Vec<&Value> = outcomes.map(|item| &item["outcome"]).collect();
        let expected = [
            "Current",
            "TakenOver",
            "Replaced",
            "Expired",
            "Released",
            "Released",
        ];
        assert_eq!(outcomes, expected, "{run}");
        let first = &list["items"][5];
        assert_eq!(
            (&first["ticket"], &first["reason"]),
            (&json!("OPS-7"), &json!("new kernel"))
        );
        assert_eq!(list["items"][4]["endedBy"], "alice");
    });
}

#[test]
fn shows_all_nodes_or_that_nothing_is_recorded() {
    in_memory("history-all", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let run = cluster.maint(["history", &nodes[0]]).succeeds();
        assert_eq!(
            (&run.stdout[..], &run.stderr[..]),
            ("", "No locks are recorded\n")
        );
        let run = cluster.maint(["history", "missing"]).run();
        assert_eq!(run.code, 1, "{run}");
        for node in &nodes {
            cluster.maint(["acquire", node, "-m", "disk"]).succeeds();
            cluster.maint(["release", node]).succeeds();
        }
        let run = cluster
            .maint(["history", "--no-headers", "-o", "wide"])
            .succeeds();
        let first = |line: &str| line.split_whitespace().next().map(ToOwned::to_owned);
        let shown: Vec<String> = run.stdout.lines().filter_map(first).collect();
        assert_eq!(shown, nodes, "{run}");
    });
}

#[test]
fn what_others_wrote_stays_and_breaks_nothing() {
    on_both("history-others", |cluster| {
        let node = cluster.node("worker-1");
        let theirs = "kubectl-maint.dev/history-of-theirs";
        let notes = json!({(HISTORY): "see the wiki", (theirs): "kept"});
        cluster.lease_with(&node, &notes, &json!({}));
        for verb in ["acquire", "release", "hold", "unhold"] {
            let message = ["-m", "disk"];
            let given = if verb == "unhold" { &[][..] } else { &message };
            cluster.maint([verb, &node]).args(given).succeeds();
            assert_eq!(note(cluster, &node, HISTORY), "see the wiki", "{verb}");
            assert_eq!(note(cluster, &node, theirs), "kept", "{verb}");
        }
        let run = cluster.maint(["history", &node]).succeeds();
        assert!(run.stdout.contains("<unreadable>"), "{run}");
        let run = cluster.maint(["history", &node, "-o", "json"]).succeeds();
        assert!(run.stdout.contains(r#""outcome": "Unreadable""#), "{run}");

        // Without the annotation, a new history begins.
        let removed = json!({"metadata": {"annotations": {(HISTORY): null}}});
        cluster.patch(&format!("{LEASES}/{node}"), &removed);
        cluster.maint(["acquire", &node]).succeeds();
        assert_eq!(note(cluster, &node, HISTORY), Value::Null);
        cluster.maint(["release", &node]).succeeds();
        assert!(note(cluster, &node, HISTORY).is_string());
        assert_eq!(note(cluster, &node, theirs), "kept");
    });
}

#[test]
fn is_kept_without_further_requests() {
    on_real("history-requests", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let run = cluster.maint(["release", &node, "-v6"]).succeeds();
        assert_eq!(requests(&run), ["GET", "PATCH"], "{run}");
        assert!(note(cluster, &node, HISTORY).is_string());
    });
}

#[test]
fn a_node_whose_locks_cannot_be_read_has_an_error() {
    on_one("history-error", |cluster| {
        let run = cluster.maint(["history", "nosuch", "-o", "json"]).run();
        assert_eq!(run.code, 1, "{run}");
        let item = run.item();
        assert_eq!(item["node"], "nosuch");
        assert_eq!(item["error"]["code"], "NotFound");
        assert!(item.get("outcome").is_none(), "{item}");
        let nowhere = Cluster::nowhere();
        let run = nowhere.maint(["history", "worker-1", "-o", "json"]).run();
        assert_eq!(
            (run.code, &run.item()["node"]),
            (1, &json!("worker-1")),
            "{run}"
        );
        for format in ["name", "wide"] {
            let run = cluster.maint(["history", "nosuch", "-o", format]).run();
            assert_eq!((run.code, &*run.stdout), (1, ""), "{run}");
        }
    });
}
