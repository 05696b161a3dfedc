//! A wrong local clock: the age of a heartbeat is measured by the server's clock, and a warning
//! says so.

use control_plane::{NodeSpec, Readiness};

use crate::support::Treatment::Ahead;
use crate::support::{HEARTBEAT_AGE, Run, Stage};

/// A run whose local clock is this many seconds behind the server's.
fn behind(stage: &Stage, seconds: i64, words: &[&str]) -> Run {
    let proxy = stage.proxy(move |_, _| Ahead(seconds));
    stage.maint(words).kubeconfig(&proxy.kubeconfig).run()
}

/// The warning appears exactly once, in dry and other runs, whether the node is fenced or refused.
#[track_caller]
fn is_told(run: &Run, way: &str, code: i32) {
    assert_eq!(run.code, code, "{run}");
    let message = run.stderr.lines().filter(|line| {
        line.starts_with("Warning: the local clock is ")
            && line.ends_with(&format!(" {way} the API server's; server time is used"))
    });
    assert_eq!(message.count(), 1, "{run}");
}

#[test]
fn fence_and_unfence_warn_about_a_wrong_local_clock() {
    let (stage, node) = Stage::with_unreachable_node("odd-clock");
    let fence = ["fence", &node, "--powered-off=dark"];
    for dry_run in ["--dry-run=client", "--dry-run=server"] {
        let run = behind(&stage, 10, &[&fence[..], &[dry_run]].concat());
        is_told(&run, "behind", 0);
    }
    // By a server clock that is 290 s behind, this heartbeat is only 10 s old, so the node is
    // alive.
    is_told(&behind(&stage, -290, &fence), "ahead of", 6);
    is_told(&behind(&stage, 10, &fence), "behind", 0);
    let run = behind(&stage, 10, &["unfence", &node, "--dry-run=server"]);
    is_told(&run, "behind", 6);
}

#[test]
fn force_delete_warns_about_a_wrong_local_clock() {
    let stage = Stage::new("odd-report");
    let unreachable = NodeSpec {
        name: stage.name("worker-1"),
        ready: Readiness::Unknown,
        heartbeat_age: HEARTBEAT_AGE,
        ..NodeSpec::default()
    };
    let target = format!("node/{}", unreachable.name);
    stage.plane.create_nodes(&[unreachable]).expect("a node");
    let force = ["force-delete", &target];
    is_told(&behind(&stage, 10, &force), "behind", 6);
    let dry_run = [&force[..], &["--dry-run=server"]].concat();
    is_told(&behind(&stage, -10, &dry_run), "ahead of", 6);
    let nowhere = ["force-delete", "pod/nowhere", "-n", "default"];
    is_told(&behind(&stage, 10, &nowhere), "behind", 1);
}
