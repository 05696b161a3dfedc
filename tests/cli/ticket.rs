//! The ticket of a lock: it is shown with the reason, and removed with it.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Cluster, on_one};

fn ticket(cluster: &Cluster, node: &str) -> Value {
    cluster.lease_of(node)["metadata"]["annotations"]["kubectl-maint.dev/ticket"].clone()
}

#[test]
fn is_shown_with_the_reason() {
    on_one("ticket-shown", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let acquire = ["acquire", &node, "-m", "new kernel", "--ticket", "OPS-7"];
        cluster.maint(acquire).succeeds();
        assert_eq!(ticket(cluster, &node), "OPS-7");
        let bob = cluster.maint(["acquire", &node, "--ticket", "OPS-8"]);
        assert_snapshot!(bob.holder("bob@laptop").run(), @r#"
        $ kubectl maint acquire worker-1 --ticket OPS-8
        -- stderr
        error: cannot acquire node/worker-1: locked by alice@bastion: "new kernel", ticket OPS-7 (since [time], until [time], [length] left)
        hint: wait for it by adding `--wait`
        -- exit code 3
        "#);
        let status = cluster.maint(["status", &node]).succeeds();
        assert!(status.stdout.contains("new kernel [OPS-7]"), "{status}");
        let page = cluster.maint(["describe", &node]).succeeds();
        let line = page.stdout.lines().find(|line| line.contains("Ticket:"));
        assert!(line.is_some_and(|line| line.ends_with(" OPS-7")), "{page}");
        let json = cluster.maint(["status", &node, "-o", "json"]).succeeds();
        let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(json["items"][0]["ticket"], "OPS-7");
    });
}

#[test]
fn stays_with_its_acquisition_and_no_longer() {
    on_one("ticket-gone", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let maint = |line: &str| {
            let words = line.split_whitespace().chain([&*node]);
            cluster.maint(words).succeeds();
        };
        cluster
            .maint(["acquire", &node, "--ticket", "OPS-1"])
            .succeeds();
        maint("renew");
        assert_eq!(ticket(cluster, &node), "OPS-1");
        maint("acquire --reentry --ticket https://tickets.example/2?a=b");
        assert_eq!(ticket(cluster, &node), "https://tickets.example/2?a=b");
        maint("release");
        assert_eq!(ticket(cluster, &node), Value::Null);
        maint("hold -m why --ticket OPS-3");
        assert_eq!(ticket(cluster, &node), "OPS-3");
        assert_eq!(cluster.maint(["renew", &node]).run().code, 3);
        cluster.maint(["hold", &node, "-m", "because"]).succeeds();
        assert_eq!(ticket(cluster, &node), "OPS-3");
        maint("hold -m because --ticket OPS-4");
        maint("unhold");
        maint("acquire");
        assert_eq!(ticket(cluster, &node), Value::Null);
        maint("release");
    });
}

#[test]
fn is_short_and_escaped() {
    on_one("ticket-odd", |cluster| {
        let node = cluster.node("worker-1");
        let annotations = json!({"kubectl-maint.dev/ticket": "OPS\u{1b}[31m"});
        let spec = json!({"holderIdentity": "kubeadm-by-hand"});
        cluster.lease_with(&node, &annotations, &spec);
        let run = cluster.maint(["acquire", &node]).run();
        assert!(run.stderr.contains(r"ticket OPS\u{1b}[31m"), "{run}");
        let long = "x".repeat(257);
        for ticket in ["", "a\nb", &long] {
            let run = cluster.maint(["acquire", &node, "--ticket", ticket]).run();
            assert_eq!(run.code, 2, "{run}");
            let says = "a ticket must have 1 to 256 bytes, and no control characters";
            assert!(run.stderr.contains(says), "{run}");
        }
    });
}
