//! The command `doctor`: its requests, and what it finds that locks left on Nodes.

use serde_json::{Value, json};

use crate::support::{Cluster, LEASES, ago, in_memory};

const SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const REMEDIATION: &str = "remediation.medik8s.io/exclude-from-remediation";

/// Returns the lines that `doctor` prints about what locks set on Nodes.
fn held_labels(cluster: &Cluster, flags: &[&str]) -> String {
    let words = [&["doctor"], flags].concat();
    let run = cluster.maint(words).run();
    let lines = run.stdout.lines();
    let lines = lines.skip_while(|line| !line.contains("held labels "));
    let lines = lines.take_while(|line| !line.contains("other locks "));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

/// Whether the Node has each of the two opt-outs.
fn opt_outs(cluster: &Cluster, node: &str) -> [bool; 2] {
    let metadata = cluster.get(&format!("/api/v1/nodes/{node}"))["metadata"].clone();
    [
        metadata["annotations"][SCALE_DOWN] != Value::Null,
        metadata["labels"][REMEDIATION] != Value::Null,
    ]
}

/// Removes the held label, and with `with_annotations` also the annotations that explain it.
fn unlabel(cluster: &Cluster, node: &str, with_annotations: bool) {
    let path = format!("/api/v1/nodes/{node}");
    let mut patch = json!({"metadata": {"labels": {"kubectl-maint.dev/held": null}}});
    let annotations = cluster.get(&path)["metadata"]["annotations"].clone();
    let keys = annotations.as_object().into_iter().flatten();
    let held = keys.filter(|(key, _)| key.starts_with("kubectl-maint.dev/held-"));
    let nulls = held.map(|(key, _)| (key.clone(), Value::Null)).collect();
    if with_annotations {
        patch["metadata"]["annotations"] = Value::Object(nulls);
    }
    cluster.patch(&path, &patch);
}

#[test]
fn long_lists_come_page_by_page() {
    in_memory("doctor-pages", |cluster| {
        let untracked = |number: usize| {
            let name = format!("lock-{number:03}");
            cluster.create(LEASES, &json!({"metadata": {"name": name}}));
        };
        (0..501).for_each(untracked);
        let run = cluster.maint(["doctor", "-v6"]).run();
        let lists = |path: &str| {
            let lists = run.stderr.lines().filter(|line| line.contains(path));
            lists.filter(|line| line.contains("limit=500")).count()
        };
        assert_eq!(lists("kube-node-maintenance/leases?"), 2, "{run}");
        assert_eq!(lists("/api/v1/nodes?"), 1, "{run}");
        assert!(run.stdout.contains("leases         501 "), "{run}");
    });
}

#[test]
fn names_of_checks_are_single_words() {
    in_memory("doctor-names", |cluster| {
        let names = cluster.maint(["doctor", "-o", "name"]).run().stdout;
        assert!(names.contains("check/HeldLabels\n"), "{names}");
        assert!(!names.contains(' '), "{names}");
    });
}

#[test]
fn opt_outs_left_without_a_label_are_found_and_removed() {
    in_memory("doctor-opt-outs", |cluster| {
        for (short, with_annotations) in [("worker-1", false), ("worker-2", true)] {
            let node = cluster.node(short);
            cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
            unlabel(cluster, &node, with_annotations);
            // The opt-outs belong to the hold, so they stay.
            let found = held_labels(cluster, &["--fix"]);
            assert!(!found.contains("ended or expired"), "{found}");
            assert_eq!(opt_outs(cluster, &node), [true, true]);

            cluster.delete(&format!("{LEASES}/{node}"));
            let found = held_labels(cluster, &[]);
            let left = format!(
                "note     held labels    these nodes still have the held label, opt-outs or a cordon of a lock that has ended or expired: {node}\n\
                 to remove them: `kubectl maint doctor --fix`\n"
            );
            assert_eq!(found, left);
            let fixed = held_labels(cluster, &["--fix"]);
            assert_eq!(
                fixed,
                format!(
                    "ok       held labels    removed the held label, opt-outs and cordons of locks that have ended or expired from: {node}\n"
                )
            );
            assert_eq!(opt_outs(cluster, &node), [false, false]);
            let found = held_labels(cluster, &[]);
            assert_eq!(
                found,
                "ok       held labels    0 nodes with the held label\n"
            );
        }
    });
}

#[test]
fn overdue_holds_are_listed() {
    in_memory("doctor-overdue", |cluster| {
        let (late, early) = (cluster.node("worker-1"), cluster.node("worker-2"));
        let hold = ["hold", &late, &early, "-m", "disk", "--expect-until=2h"];
        cluster.maint(hold).holder("bob@laptop").succeeds();
        let past =
            json!({"metadata": {"annotations": {"kubectl-maint.dev/hold-until": ago(11100)}}});
        cluster.patch(&format!("{LEASES}/{late}"), &past);
        let found = cluster.maint(["doctor"]).run().stdout;
        let words: Vec<&str> = found.split_whitespace().collect();
        let said = format!(
            "note leases holds past their expected end: {late} (bob@laptop, overdue by 3h5m) if the work is done: `kubectl maint unhold NODE`"
        );
        assert!(words.join(" ").contains(&said), "{found}");
    });
}
