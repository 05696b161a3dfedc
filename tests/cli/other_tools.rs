//! What other tools are doing to a node, as seen in the keys that they set: warnings, `--strict`, `describe` and the
//! wide status.

use serde_json::{Value, json};

use crate::support::{Cluster, LEASES, ago, holder_of, on_both, on_one, on_real, requests};

/// The path of medik8s' Leases.
const MEDIK8S: &str = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases";

/// Creates a node that cluster-autoscaler is deleting and kured is rebooting.
fn disrupted(cluster: &Cluster, short: &str) -> String {
    let node = cluster.node(short);
    let began = chrono::Utc::now().timestamp() - 270;
    let rebooting = chrono::Utc::now() - chrono::TimeDelta::seconds(150);
    let patch = json!({
        "metadata": {"annotations": {"weave.works/kured-reboot-in-progress": rebooting.to_rfc3339()}},
        "spec": {"taints": [{
            "key": "ToBeDeletedByClusterAutoscaler",
            "value": began.to_string(),
            "effect": "NoSchedule",
        }]},
    });
    cluster.patch(&format!("/api/v1/nodes/{node}"), &patch);
    node
}

fn has_lease(cluster: &Cluster, node: &str) -> bool {
    let path = format!("{LEASES}/{node}");
    cluster.try_send("GET", &path, None).is_ok()
}

const DELETING: &str = "cluster-autoscaler is deleting this node (4m";
const REBOOTING: &str = "kured is rebooting it (2m";

#[test]
fn those_who_lock_a_node_are_warned_and_nothing_else_changes() {
    on_one("tools-warn", |cluster| {
        let node = disrupted(cluster, "worker-1");
        for (verb, extra) in [
            ("acquire", &["-m", "disk"][..]),
            ("hold", &["-m", "disk"]),
            ("with", &["--", "true"]),
        ] {
            let arguments = [&[verb, &node, "-v6"][..], extra].concat();
            let run = cluster.maint(arguments).succeeds();
            let warnings: Vec<&str> = run
                .stderr
                .lines()
                .filter(|line| line.starts_with("Warning: "))
                .collect();
            assert_eq!(warnings.len(), 2, "{run}");
            for (line, expected) in warnings.iter().zip([DELETING, REBOOTING]) {
                assert!(line.contains(&format!(": {expected}")), "{run}");
            }
            assert!(!run.stdout.contains("kured"), "{run}");
            if verb == "acquire" {
                let sent = requests(&run);
                assert_eq!(sent[..2], ["GET"; 2], "the Lease and the Node: {run}");
                assert_ne!(sent[2], "GET", "{run}");
            }
            let end = if verb == "hold" { "unhold" } else { "release" };
            cluster.maint([end, &node]).succeeds();
        }
    });
}

#[test]
fn a_few_named_nodes_are_read_whole_and_selected_ones_are_not() {
    on_one("tools-many", |cluster| {
        let node = disrupted(cluster, "worker-1");
        let other = cluster.node("worker-2");
        let run = cluster.maint(["acquire", &node, &other]).succeeds();
        assert!(run.stderr.contains(DELETING), "{run}");
        assert!(!run.stderr.contains("worker-2:"), "{run}");
        cluster.maint(["release", &node, &other]).succeeds();
        let label = json!({"metadata": {"labels": {"pool": cluster.name("gpu")}}});
        cluster.patch(&format!("/api/v1/nodes/{node}"), &label);
        let selector = format!("pool={}", cluster.name("gpu"));
        let run = cluster.maint(["acquire", "-l", &selector]).succeeds();
        assert!(!run.stderr.contains(DELETING), "{run}");
        cluster.maint(["release", &node]).succeeds();
        // --strict reads whole Nodes.
        let strict = cluster
            .maint(["acquire", "-l", &selector, "--strict"])
            .run();
        assert_eq!(strict.code, 6, "{strict}");
        assert!(strict.stderr.contains(DELETING), "{strict}");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn strict_refuses_before_it_writes() {
    on_one("tools-strict", |cluster| {
        let node = disrupted(cluster, "worker-1");
        let other = cluster.node("worker-2");
        for (verb, extra) in [
            ("acquire", &[][..]),
            ("hold", &["-m", "disk"]),
            ("with", &["--", "true"]),
        ] {
            let arguments = [&[verb, &other, &node, "--strict"][..], extra].concat();
            let run = cluster.maint(arguments).run();
            assert_eq!(run.code, 6, "{run}");
            assert!(
                run.stderr
                    .starts_with("error: nothing was locked, because of --strict: node/"),
                "{run}"
            );
            assert!(run.stderr.contains(&format!(": {DELETING}")), "{run}");
            assert!(!has_lease(cluster, &node) && !has_lease(cluster, &other));
        }
        cluster.maint(["acquire", &other, "--strict"]).succeeds();
    });
}

#[test]
fn describe_and_the_wide_status_show_it() {
    on_one("tools-show", |cluster| {
        let node = disrupted(cluster, "worker-1");
        let calm = cluster.node("worker-2");
        let page = cluster.maint(["describe", "node", &node]).succeeds().stdout;
        let lines: Vec<&str> = page.lines().collect();
        let first = lines.iter().position(|line| line.contains("Other tools:"));
        let first = first.expect("an entry");
        assert!(lines[first].contains(DELETING), "{page}");
        assert!(lines[first + 1].contains(REBOOTING), "{page}");
        let page = cluster.maint(["describe", "node", &calm]).succeeds().stdout;
        assert!(!page.contains("Other tools"), "{page}");
        let wide = ["status", &node, &calm, "-o", "wide"];
        let wide = cluster.maint(wide).succeeds().stdout;
        let rows: Vec<&str> = wide.lines().collect();
        assert!(rows[0].ends_with("OTHER TOOLS"), "{wide}");
        assert!(
            rows[1].contains(DELETING) && rows[1].contains("; kured"),
            "{wide}"
        );
        assert!(rows[2].ends_with('-'), "{wide}");
    });
}

#[test]
fn a_wide_status_of_all_nodes_reads_the_cordoned_ones() {
    on_one("tools-wide", |cluster| {
        let label = json!({"pool": cluster.name("pool")});
        let cordoned = cluster.node_with("worker-1", &label, &json!({"unschedulable": true}));
        cluster.node_with("worker-2", &label, &json!({}));
        let drain =
            json!({"spec": {"taints": [{"key": "medik8s.io/drain", "effect": "NoSchedule"}]}});
        cluster.patch(&format!("/api/v1/nodes/{cordoned}"), &drain);
        let selector = format!("pool={}", cluster.name("pool"));
        let wide = ["status", "-l", &selector, "-o", "wide", "-v6"];
        let run = cluster.maint(wide).succeeds();
        let row = run.stdout.lines().find(|row| row.contains("worker-1"));
        let row = row.expect("a row");
        assert!(
            row.contains("medik8s node maintenance is draining it; cordoned"),
            "{run}"
        );
        assert_eq!(requests(&run), ["GET"; 4], "three lists and one Node");
        let plain = cluster.maint(["status", "-l", &selector, "-v6"]).succeeds();
        assert_eq!(requests(&plain), ["GET"; 2], "no Node");
    });
}

#[test]
fn a_cordon_names_who_set_it() {
    on_real("tools-by", |cluster| {
        // The pool label is needed: the server does not track field managers of an object that was created without any
        // field.
        let node = cluster.node_with("worker-1", &json!({"pool": "gpu"}), &json!({}));
        let cordoned = cluster.plane().kubectl(&["cordon", &node]);
        cordoned.expect("it is cordoned");
        let run = cluster.maint(["acquire", &node]).succeeds();
        let by = ": cordoned by kubectl ";
        assert!(run.stderr.contains(by), "{run}");
    });
}

#[test]
fn a_valid_lease_of_medik8s_is_shown_and_refuses_strict() {
    on_both("tools-medik8s", |cluster| {
        let node = cluster.node("worker-1");
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "medik8s-leases"},
        });
        cluster.create("/api/v1/namespaces", &namespace);
        let lease = |renewed: i64| -> Value {
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": format!("node-{node}")},
                "spec": {
                    "holderIdentity": "node-healthcheck",
                    "acquireTime": ago(renewed),
                    "renewTime": ago(renewed),
                    "leaseDurationSeconds": 600,
                },
            })
        };
        cluster.create(MEDIK8S, &lease(60));
        let held = "node-healthcheck holds its medik8s Lease";
        let page = cluster.maint(["describe", "node", &node]).succeeds().stdout;
        assert!(page.contains(held), "{page}");
        let run = cluster.maint(["acquire", &node, "--strict"]).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains(held), "{run}");
        let hold = ["hold", &node, "-m", "disk"];
        let run = cluster.maint(hold).arg("--strict").run();
        assert_eq!(run.code, 6, "{run}");
        assert_eq!(run.stderr.matches(held).count(), 1, "{run}");
        // A plain lock is short, so it gets no warning and costs no additional request.
        let run = cluster.maint(["acquire", &node, "-v6"]).succeeds();
        assert!(!run.stderr.contains(held), "{run}");
        assert!(!run.stderr.contains(MEDIK8S), "{run}");
        cluster.maint(["release", &node]).succeeds();
        let run = cluster.maint(hold).arg("-v6").succeeds();
        let warning = format!("Warning: node/{node}: {held}\n");
        assert_eq!(run.stderr.matches(&warning).count(), 1, "{run}");
        assert_eq!(run.stderr.matches(MEDIK8S).count(), 1, "{run}");
        assert_eq!(requests(&run).len(), 8, "{run}");
        cluster.maint(["unhold", &node]).succeeds();
        cluster.delete(&format!("{MEDIK8S}/node-{node}"));
        cluster.create(MEDIK8S, &lease(6000));
        cluster.maint(["acquire", &node, "--strict"]).succeeds();
        let run = cluster.maint(hold).succeeds();
        assert!(!run.stderr.contains(held), "{run}");
    });
}

#[test]
fn a_taint_that_somebody_else_set_is_reported_and_that_of_a_fencing_is_not() {
    on_one("tools-out-of-service", |cluster| {
        let node = cluster.node("worker-1");
        let path = format!("/api/v1/nodes/{node}");
        let key = "node.kubernetes.io/out-of-service";
        let taint = json!([{"key": key, "value": "nodeshutdown", "effect": "NoExecute"}]);
        cluster.patch(&path, &json!({"spec": {"taints": taint}}));
        let says =
            "somebody marked it out of service without `fence`: Kubernetes deletes its pods\n";
        let each = [
            (["acquire", &node, "-m", "disk"], "release"),
            (["hold", &node, "-m", "disk"], "unhold"),
            (["with", &node, "--", "true"], "release"),
        ];
        for (arguments, end) in each {
            let run = cluster.maint(arguments).succeeds();
            assert_eq!(run.stderr.matches(says).count(), 1, "{run}");
            cluster.maint([end, &node]).succeeds();
        }
        let record = json!({"kubectl-maint.dev/fenced": "{}"});
        cluster.patch(&path, &json!({"metadata": {"annotations": record}}));
        for (arguments, end) in each {
            let run = cluster.maint(arguments).succeeds();
            assert!(!run.stderr.contains("out of service without"), "{run}");
            cluster.maint([end, &node]).succeeds();
        }
    });
}

#[test]
fn without_the_right_to_read_nodes_only_strict_fails() {
    on_real("tools-right", |cluster| {
        let node = disrupted(cluster, "worker-1");
        let plane = cluster.plane();
        let user = plane.user("tools-nobody", &[]).expect("a user");
        let leases = ["get", "list", "watch", "create", "patch"];
        let rule = control_plane::Rule::new("coordination.k8s.io", &["leases"], &leases);
        plane.grant("tools-nobody", &[rule]).expect("rights");
        let as_user = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&user).run();
        let run = as_user(&["acquire", &node, "--strict"]);
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains(": no permission to read it"), "{run}");
        assert!(!has_lease(cluster, &node));
        let run = as_user(&["acquire", &node]);
        assert_eq!(run.code, 0, "{run}");
        assert!(!run.stderr.contains("kured"), "{run}");
    });
}

const SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const DISRUPT: &str = "karpenter.sh/do-not-disrupt";
const EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";
const LOCK_ID: &str = "kubectl-maint.dev/held-lock-id";

/// The opt-outs on a Node with their values, sorted, and whether the Node has the lock id of a lock.
fn opt_outs(cluster: &Cluster, node: &str) -> (Vec<String>, bool) {
    let metadata = cluster.get(&format!("/api/v1/nodes/{node}"))["metadata"].clone();
    let maps = [&metadata["annotations"], &metadata["labels"]];
    let pairs = maps.iter().filter_map(|map| map.as_object()).flatten();
    let known = pairs.filter(|(key, _)| [SCALE_DOWN, DISRUPT, EXCLUDE].contains(&key.as_str()));
    let mut found: Vec<String> = known
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    found.sort();
    (found, metadata["annotations"].get(LOCK_ID).is_some())
}

fn of_auto() -> Vec<String> {
    vec![format!("{SCALE_DOWN}=true"), format!("{EXCLUDE}=true")]
}

#[test]
fn a_hold_sets_opt_outs_and_its_end_removes_them() {
    on_both("opt-outs", |cluster| {
        let node = cluster.node("worker-1");
        let hold = ["hold", &node, "-m", "disk"];
        for end in ["unhold", "release"] {
            let run = cluster.maint(hold).succeeds();
            assert!(!run.stderr.contains("is not set"), "{run}");
            assert_eq!(opt_outs(cluster, &node), (of_auto(), true));
            // Another `hold` keeps them.
            cluster.maint(hold).succeeds();
            assert_eq!(opt_outs(cluster, &node), (of_auto(), true));
            cluster.maint([end, &node]).succeeds();
            assert_eq!(opt_outs(cluster, &node), (Vec::new(), false));
        }
        let karpenter = cluster.maint(hold).arg("--opt-outs=karpenter").succeeds();
        let expected = vec![format!("{DISRUPT}=true")];
        assert_eq!(opt_outs(cluster, &node), (expected, true), "{karpenter}");
        cluster.maint(["unhold", &node]).succeeds();
        cluster.maint(hold).arg("--opt-outs=none").succeeds();
        assert_eq!(opt_outs(cluster, &node), (Vec::new(), true));
        cluster.maint(["unhold", &node]).succeeds();
        cluster.maint(hold).arg("--dry-run").succeeds();
        assert_eq!(opt_outs(cluster, &node), (Vec::new(), false));
        let wrong = cluster.maint(hold).arg("--opt-outs=kured").run();
        assert_eq!(wrong.code, 2, "{wrong}");
        assert!(
            wrong
                .stderr
                .contains("use auto, none, cluster-autoscaler, karpenter"),
            "{wrong}"
        );
    });
}

#[test]
fn a_value_of_the_user_is_reported_or_survives() {
    on_one("opt-outs-user", |cluster| {
        let node = cluster.node("worker-1");
        let label = json!({
            "annotations": {SCALE_DOWN: "true", DISRUPT: "false"},
            "labels": {"karpenter.sh/nodepool": "default"},
        });
        let path = format!("/api/v1/nodes/{node}?fieldManager=kubectl-annotate");
        cluster.patch(&path, &json!({"metadata": label}));
        let run = cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        let conflict = format!(": {DISRUPT} was not changed: it is already false");
        assert!(run.stderr.contains(&conflict), "{run}");
        let kept = vec![format!("{SCALE_DOWN}=true"), format!("{DISRUPT}=false")];
        let mut held = [&kept[..], &[format!("{EXCLUDE}=true")]].concat();
        held.sort();
        assert_eq!(opt_outs(cluster, &node), (held, true));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(opt_outs(cluster, &node), (kept, false));
    });
}

#[test]
fn without_the_right_to_patch_nodes_a_hold_works_and_says_so() {
    on_real("opt-outs-right", |cluster| {
        let node = cluster.node("worker-1");
        let plane = cluster.plane();
        let leases = ["get", "list", "watch", "create", "patch"];
        let leases = control_plane::Rule::new("coordination.k8s.io", &["leases"], &leases);
        let nodes = control_plane::Rule::new("", &["nodes"], &["get", "list"]);
        let user = plane.user("opt-outs-user", &[]).expect("a user");
        plane
            .grant("opt-outs-user", &[leases, nodes])
            .expect("rights");
        let hold = ["hold", &node, "-m", "disk", "--holder", "uma"];
        let run = cluster.maint(hold).kubeconfig(&user).run();
        assert_eq!(run.code, 0, "{run}");
        let said = "worker-1 is on hold without the held label: ";
        assert!(run.stderr.contains(said), "{run}");
        assert_eq!(opt_outs(cluster, &node), (Vec::new(), false));
        // Somebody with the right sets the opt-outs, and this user cannot remove them.
        cluster.maint(hold).succeeds();
        assert_eq!(opt_outs(cluster, &node), (of_auto(), true));
        let unhold = ["unhold", &node, "--holder", "uma"];
        let run = cluster.maint(unhold).kubeconfig(&user).run();
        assert_eq!(run.code, 0, "{run}");
        let said = "worker-1, if the lock set them: ";
        assert!(run.stderr.contains(said), "{run}");
        // The next hold takes them over, and removes them when it ends.
        cluster.maint(hold).succeeds();
        cluster.maint(unhold).succeeds();
        assert_eq!(opt_outs(cluster, &node), (Vec::new(), false));
    });
}
