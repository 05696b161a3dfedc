//! Why a node is not fenced.

use control_plane::Rule;
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Run, Stage, eventually};

fn fence(stage: &Stage, node: &str, more: &[&str]) -> Run {
    stage
        .maint(["fence", node, "--powered-off=dark"])
        .args(more)
        .run()
}

/// `--powered-off` is refused for a node that sends heartbeats.
#[test]
fn a_node_with_a_current_heartbeat_is_not_fenced() {
    let (stage, node) = Stage::with_unreachable_node("alive");
    stage.beats(&node);
    let run = fence(&stage, &node, &[]);
    assert_eq!(run.code, 6, "{run}");
    let message = format!("cannot fence node/{node}: its kubelet is alive (last heartbeat ");
    assert!(run.stderr.contains(&message), "{run}");
    stage.is_untouched(&node);
}

/// If most of a zone is unreachable, `fence` continues only with an accepted risk.
#[test]
fn the_loss_of_most_of_a_zone_is_suspect() {
    let (stage, node) = Stage::with_unreachable_node("rack-7");
    stage.stops_heartbeats(&stage.name("worker-2"));
    let run = fence(&stage, &node, &["--dry-run"]);
    assert_eq!(run.code, 0, "{run}");
    stage.stops_heartbeats(&stage.name("worker-3"));
    let run = fence(&stage, &node, &[]);
    assert_eq!(run.code, 6, "{run}");
    let message =
        format!("error: cannot fence node/{node}: 3 of 3 nodes of zone rack-7 are unreachable: ");
    assert!(run.stderr.contains(&message), "{run}");
    let hint =
        format!("hint: if you know that node/{node} is off, add --accept-risk=mass-loss -m WHY\n");
    assert!(run.stderr.ends_with(&hint), "{run}");
    stage.is_untouched(&node);
    assert_eq!(fence(&stage, &node, &["--accept-risk=mass-loss"]).code, 2);
    let other = "--accept-risk=unread";
    let run = fence(&stage, &node, &[other, "-m", "the rack burns"]);
    assert_eq!(run.code, 6, "{run}");
    let hint = format!("hint: if you know that node/{node} is off, add --accept-risk=mass-loss\n");
    assert!(run.stderr.ends_with(&hint), "{run}");
    // The same command, with the flags of the hint.
    let words = [other, "--accept-risk=mass-loss"];
    let words = [&words[..], &["-m", "the rack burns", "--dry-run"]].concat();
    let run = fence(&stage, &node, &words);
    assert_eq!(run.code, 0, "{run}");
    let run = fence(
        &stage,
        &node,
        &["--accept-risk=mass-loss", "-m", "the rack burns"],
    );
    assert_eq!(run.code, 0, "{run}");
    assert!(stage.is_tainted(&node));
}

/// A user who may not read the other nodes must accept the unknown, or is refused.
#[test]
fn an_unread_zone_is_a_separate_unknown() {
    let (stage, node) = Stage::with_unreachable_node("unseen");
    let rules = [
        Rule::new("", &["nodes"], &["get", "patch"]),
        Rule::new("", &["pods"], &["list"]),
        Rule::new("storage.k8s.io", &["volumeattachments"], &["list"]),
        Rule::new("", &["namespaces", "events"], &["create"]),
        Rule::new(
            "coordination.k8s.io",
            &["leases"],
            &["get", "create", "patch"],
        ),
    ];
    let name = stage.name("zoe");
    let user = stage.plane.user(&name, &[]).expect("a kubeconfig");
    stage.plane.grant(&name, &rules).expect("rights");
    let fence = |more: &[&str]| {
        let fence = stage.maint(["fence", &node, "--powered-off=dark"]);
        fence.args(more).kubeconfig(&user).run()
    };
    assert_snapshot!(fence(&[]), @r#"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: cannot fence node/worker-1: unknown how many other nodes are unreachable: no permission to list nodes
    hint: to fence it anyway, add --accept-risk=unread -m WHY
    -- exit code 6
    "#);
    let another = fence(&["--accept-risk=mass-loss", "-m", "I see them"]);
    assert_eq!(another.code, 6, "{another}");
    stage.is_untouched(&node);
    let run = fence(&["--accept-risk=unread", "-m", "I see them"]);
    assert_eq!(run.code, 0, "{run}");
    let unread =
        "Warning: unknown how many other nodes are unreachable: no permission to list nodes\n";
    assert!(run.stderr.contains(unread), "{run}");
    assert!(stage.is_tainted(&node));
    assert_eq!(stage.record(&node).expect("a record")["why"], "I see them");
}

/// The message names the holder.
#[test]
fn locks_of_others_are_not_fenced() {
    let (stage, node) = Stage::with_unreachable_node("held");
    let acquire = stage.maint(["acquire", &node, "-m", "new disk"]);
    acquire.holder("bob@laptop").succeeds();
    assert_snapshot!(fence(&stage, &node, &[]), @r#"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: cannot fence node/worker-1: locked by bob@laptop: "new disk" (since [time], until [time], [length] left)
    hint: ask bob@laptop to release it; if nobody works there, take the lock over first with `kubectl maint hold worker-1 -m WHY --take-over`
    -- exit code 3
    "#);
    assert!(!stage.is_tainted(&node));
    assert_eq!(stage.holder(&node).as_deref(), Some("bob@laptop"));
}

/// Another tool that is working on the node does not know our holds.
#[test]
fn a_remediation_is_not_disturbed() {
    let (stage, node) = Stage::with_unreachable_node("remedy");
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    stage.create(&[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "medik8s-leases"}}),
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": format!("node-{node}"), "namespace": "medik8s-leases"},
            "spec": {
                "holderIdentity": "self-node-remediation",
                "leaseDurationSeconds": 600, "renewTime": now,
            },
        }),
    ]);
    assert_snapshot!(fence(&stage, &node, &[]), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: cannot fence node/worker-1: another tool is already repairing it: self-node-remediation
    hint: wait until it has finished, or stop it first
    -- exit code 6
    ");
    stage.is_untouched(&node);
    stage.kubectl(&[
        "delete",
        "lease",
        "-n",
        "medik8s-leases",
        &format!("node-{node}"),
    ]);
    for taint in [
        "medik8s.io/remediation=self-node-remediation:NoExecute",
        "remediation.medik8s.io/fence-agents-remediation:NoSchedule",
    ] {
        stage.kubectl(&["taint", "node", &node, taint]);
        let run = fence(&stage, &node, &[]);
        assert_eq!(run.code, 6, "{run}");
        let (said, _) = taint.split_once(':').expect("an effect");
        let message = format!("another tool is already repairing it: {said}");
        assert!(run.stderr.contains(&message), "{run}");
        stage.is_untouched(&node);
        stage.kubectl(&["taint", "node", &node, &format!("{taint}-")]);
    }
}

/// The roles of users and fencers in deploy/rbac.yaml are enough. For a user with only the role of users, the output names
/// the missing rights, and nothing is changed.
#[test]
fn fencers_have_the_rights_and_users_see_which_are_missing() {
    let (stage, node) = Stage::with_unreachable_node("rights");
    let [namespace, rbac] = [
        concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/namespace.yaml"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/rbac.yaml"),
    ];
    stage.kubectl(&["apply", "-f", namespace, "-f", rbac]);
    let users = "kubectl-maint:users";
    let user = stage.plane.user("uma", &[users]).expect("a kubeconfig");
    let fencer = stage
        .plane
        .user("fay", &[users, "kubectl-maint:fencers"])
        .expect("a kubeconfig");
    for (group, verb, resource) in [
        (users, "patch", "leases.coordination.k8s.io"),
        ("kubectl-maint:fencers", "patch", "nodes"),
    ] {
        let plane = stage.plane;
        let allowed = plane.await_allowed(&[group], verb, resource, "kube-node-maintenance");
        allowed.expect("it is granted");
    }
    let fence = ["fence", &node, "--powered-off=dark"];
    let ran = stage.directory().join("ran");
    let hook = ["fence", &node, "--", "touch", ran.to_str().expect("a path")];
    let run = stage.maint(fence).kubeconfig(&user).run();
    assert_eq!(run.code, 1, "{run}");
    let message = "hint: ask an administrator for permission to list pods; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n";
    assert!(run.stderr.contains(message), "{run}");
    let pods = Rule::new("", &["pods"], &["list"]);
    stage.plane.grant("uma", &[pods]).expect("rights");
    assert_snapshot!(stage.maint(fence).kubeconfig(&user).run(), @r#"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: cannot fence node/worker-1: unknown whether another tool is repairing it: no permission to get leases.coordination.k8s.io in namespace medik8s-leases
    hint: to fence it anyway, add --accept-risk=unread -m WHY
    -- exit code 6
    "#);
    let insist = ["--accept-risk=unread", "-m", "no medik8s here"];
    let run = stage
        .maint(["fence", &node])
        .args(insist)
        .args(&hook[2..])
        .kubeconfig(&user)
        .run();
    assert_eq!(run.code, 1, "{run}");
    assert!(!ran.exists(), "who can't record it powers nothing off");
    assert_snapshot!(stage.maint(fence).args(insist).kubeconfig(user).run(), @r#"
    $ kubectl maint fence worker-1 --powered-off=dark --accept-risk=unread -m "no medik8s here"
    -- stderr
    Warning: unknown whether another tool is repairing node/worker-1: no permission to get leases.coordination.k8s.io in namespace medik8s-leases
    node/worker-1 on hold until it is unfenced
    Warning: node/worker-1 is on hold without the held label: Error from server (Forbidden): nodes "worker-1" is forbidden: User "uma" cannot patch resource "nodes" in API group "" at the cluster scope
    node/worker-1: fencing hold ended
    Error from server (Forbidden): nodes "worker-1" is forbidden: User "uma" cannot patch resource "nodes" in API group "" at the cluster scope
    hint: ask an administrator for permission to patch nodes; `kubectl maint install` creates the roles (deploy/rbac.yaml)
    -- exit code 1
    "#);
    stage.is_untouched(&node);
    let run = stage.maint(fence).kubeconfig(&fencer).succeeds();
    assert!(!run.stderr.contains("Warning"), "{run}");
    stage.comes_back(&node, "boot-2");
    let run = stage
        .maint(["unfence", &node])
        .kubeconfig(&fencer)
        .succeeds();
    assert!(!run.stderr.contains("Warning"), "{run}");
    stage.is_untouched(&node);
}

/// Exactly one of the two proofs must be given, for a node that exists.
#[test]
fn exactly_one_proof_is_required() {
    let (stage, node) = Stage::with_unreachable_node("usage");
    assert_snapshot!(stage.maint(["fence", &node]).run(), @r#"
    $ kubectl maint fence worker-1
    -- stderr
    error: missing proof that the node is off
    hint: add `--powered-off="HOW YOU KNOW"` or `-- HOOK`
    -- exit code 2
    "#);
    assert_eq!(
        stage.maint(["fence", &node, "--powered-off= "]).run().code,
        2
    );
    let both = ["fence", &node, "--powered-off=dark", "--", "true"];
    assert_eq!(stage.maint(both).run().code, 2);
    assert_eq!(fence(&stage, &node, &["-o", "lock-id"]).code, 2);
    assert_snapshot!(fence(&stage, &stage.name("worker-l"), &[]), @r#"
    $ kubectl maint fence worker-l --powered-off=dark
    -- stderr
    Error from server (NotFound): nodes "worker-l" not found
    hint: did you mean worker-1, worker-2?
    -- exit code 1
    "#);
    stage.is_untouched(&node);
}

/// The clock of this kubelet is one minute behind, but its heartbeat is seen to change.
#[test]
fn a_kubelet_with_a_slow_clock_is_alive() {
    let (stage, node) = Stage::with_unreachable_node("slow-clock-alive");
    let beats = || {
        let late = chrono::Utc::now() - chrono::TimeDelta::seconds(60);
        stage.beats_at(&node, late);
    };
    beats();
    let fence = stage.maint(["fence", &node, "--powered-off=dark"]);
    let mut run = fence.start();
    eventually("it is refused", || {
        beats();
        run.is_over()
    });
    let run = run.ends();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("its kubelet is alive"), "{run}");
    stage.is_untouched(&node);
}

/// A later release may have written it.
#[test]
fn an_unreadable_record_is_shown_before_it_is_replaced() {
    let (stage, node) = Stage::with_unreachable_node("unreadable-record");
    let record = json!({"version": 3, "who": "bob"});
    stage.annotate(&node, "kubectl-maint.dev/fenced", &record);
    for more in [&["--dry-run"][..], &[]] {
        let run = stage
            .maint(["fence", &node, "--powered-off=dark"])
            .args(more);
        let run = run.succeeds();
        let warning = format!(
            "Warning: node/{node} has an unreadable record of a fencing, perhaps of a later release; fencing it replaces that record: {record}"
        );
        assert!(run.stderr.contains(&warning), "{run}");
    }
}
