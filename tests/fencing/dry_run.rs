//! Dry runs write nothing and run no hook.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Stage;

/// What fencing writes: the resource version of the Lease, which only fencing changes, the record, the taint, and the
/// time of our last write to the Node. Other fields of the Node are left out, because controllers also write to it, and
/// take over its list of taints when they change theirs.
#[derive(Debug, PartialEq)]
struct Written {
    lease: Value,
    record: Option<Value>,
    taint: Option<Value>,
    times: Vec<Value>,
}

fn written(stage: &Stage, name: &str) -> Written {
    let lease = stage.lease(name);
    let node = stage.node(name);
    let managers = node["metadata"]["managedFields"].as_array();
    let ours = managers.expect("managers").iter();
    let ours = ours.filter(|entry| entry["manager"] == "kubectl-maint");
    Written {
        lease: lease.expect("a Lease")["metadata"]["resourceVersion"].clone(),
        record: stage.record(name),
        taint: stage.taint(name),
        times: ours.map(|entry| entry["time"].clone()).collect(),
    }
}

#[test]
fn a_dry_run_prints_the_hook_and_never_runs_it() {
    let (stage, node) = Stage::with_unreachable_node("rehearsal");
    stage.maint(["acquire", &node]).succeeds();
    stage.maint(["release", &node]).succeeds();
    let before = written(&stage, &node);
    assert_eq!(before.times, [Value::Null; 0]);
    let ran = stage.directory().join("ran");
    let script = format!("touch '{}'", ran.display());
    let hook = ["fence", &node, "--dry-run", "--", "sh", "-c", &script];
    let run = stage.maint(hook).succeeds();
    assert!(
        run.stderr.contains("would run on this machine: sh -c"),
        "{run}"
    );
    let word = ["fence", &node, "--dry-run", "--powered-off=dark"];
    stage.maint(word).succeeds();
    assert_eq!(written(&stage, &node), before);
    assert!(!ran.exists());
    assert_snapshot!(
        stage.maint(["fence", &node, "--dry-run", "--", "echo", "off it"]).run(),
        @r#"
    $ kubectl maint fence worker-1 --dry-run -- echo "off it"
    node/worker-1 fenced by alice@bastion, with echo (dry run)
    -- stderr
    node/worker-1 on hold until it is unfenced (dry run)
    would run on this machine: echo 'off it'
    -- exit code 0
    "#
    );

    let rehearsed = |verb: &[&str]| {
        let run = stage.maint(verb).args(["--dry-run", "-o", "json"]);
        run.succeeds().item()
    };
    let fence = ["fence", &node, "--powered-off=dark"];
    let message = rehearsed(&fence);
    assert_eq!(
        (&message["fenced"], &message["dryRun"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        message["fencingRecord"]["how"],
        json!({"poweredOff": "dark"})
    );
    let name = ["--dry-run", "-o", "name"];
    let run = stage.maint(fence).args(name).succeeds();
    assert_eq!(run.stdout, format!("node/{node}\n"));
    stage.fence(&node);
    let message = rehearsed(&fence);
    assert_eq!(
        (&message["fenced"], &message["dryRun"]),
        (&json!(true), &json!(true))
    );
    let (message, record) = (
        &message["fencingRecord"],
        stage.record(&node).expect("a record"),
    );
    for (field, stored) in [
        ("fencedBy", "who"),
        ("fencedAt", "when"),
        ("reason", "why"),
        ("how", "how"),
        ("bootId", "bootID"),
        ("nodeUid", "nodeUid"),
        ("lockId", "hold"),
    ] {
        assert_eq!(message[field], record[stored], "{field}");
    }
    stage.comes_back(&node, "boot-2");
    let before = written(&stage, &node);
    assert!(before.record.is_some() && before.taint.is_some());
    assert_eq!(before.times.len(), 1, "that of the fencing");
    stage.maint(["unfence", &node, "--dry-run"]).succeeds();
    let hook = ["unfence", &node, "--dry-run", "--", "sh", "-c", &script];
    stage.maint(hook).succeeds();
    assert_eq!(written(&stage, &node), before);
    assert!(!ran.exists());
    let message = rehearsed(&["unfence", &node]);
    assert_eq!(
        (&message["fenced"], &message["dryRun"]),
        (&json!(false), &json!(true))
    );
    assert_snapshot!(stage.maint(["unfence", &node, "--dry-run"]).run(), @"
    $ kubectl maint unfence worker-1 --dry-run
    node/worker-1 unfenced (dry run)
    -- stderr
    node/worker-1: fencing hold ended (dry run)
    -- exit code 0
    ");
}
