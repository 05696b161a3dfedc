//! Dry runs: nothing is written, nothing is run.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::Stage;

/// The versions of everything that fencing writes to.
fn versions(stage: &Stage, node: &str) -> [Option<Value>; 2] {
    let lease = ["lease", "-n", "kube-node-maintenance", node];
    [&["node", node][..], &lease].map(|what| {
        stage
            .get(what)
            .map(|object| object["metadata"]["resourceVersion"].clone())
    })
}

#[test]
fn a_dry_run_prints_the_hook_and_never_runs_it() {
    let (stage, node) = Stage::with_silent_node("rehearsal");
    stage.maint(["acquire", &node]).succeeds();
    stage.maint(["release", &node]).succeeds();
    let before = versions(&stage, &node);
    assert!(before.iter().all(Option::is_some));
    let ran = stage.directory().join("ran");
    let script = format!("touch '{}'", ran.display());
    for mode in ["client", "server"] {
        let dry_run = format!("--dry-run={mode}");
        let hook = ["fence", &node, &dry_run, "--", "sh", "-c", &script];
        let run = stage.maint(hook).succeeds();
        assert!(
            run.stderr.contains("would run on this machine: sh -c"),
            "{run}"
        );
        let word = ["fence", &node, &dry_run, "--powered-off=dark"];
        stage.maint(word).succeeds();
        assert_eq!(versions(&stage, &node), before, "{mode}");
    }
    assert!(!ran.exists());
    assert_snapshot!(
        stage.maint(["fence", &node, "--dry-run=server", "--", "power", "off it"]).run(),
        @r#"
    $ kubectl maint fence worker-1 --dry-run=server -- power "off it"
    node/worker-1 fenced by alice@bastion, with power (server dry run)
    -- stderr
    node/worker-1 on hold until it is unfenced (server dry run)
    would run on this machine: power 'off it'
    -- exit code 0
    "#
    );

    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let before = versions(&stage, &node);
    for mode in ["client", "server"] {
        let dry_run = format!("--dry-run={mode}");
        stage.maint(["unfence", &node, &dry_run]).succeeds();
        let hook = ["unfence", &node, &dry_run, "--", "sh", "-c", &script];
        stage.maint(hook).succeeds();
        assert_eq!(versions(&stage, &node), before, "{mode}");
    }
    assert!(!ran.exists());
    assert_snapshot!(stage.maint(["unfence", &node, "--dry-run"]).run(), @"
    $ kubectl maint unfence worker-1 --dry-run
    node/worker-1 unfenced (dry run)
    -- stderr
    node/worker-1: the hold of its fencing is ended (dry run)
    -- exit code 0
    ");
}
