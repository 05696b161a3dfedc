//! A wrong local clock: the age of a heartbeat is measured by the server's clock, and a warning
//! says so.

use crate::support::Treatment::Ahead;
use crate::support::{Run, Stage};

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
    let run = behind(&stage, 10, &[&fence[..], &["--dry-run"]].concat());
    is_told(&run, "behind", 0);
    // By a server clock that is 290 s behind, this heartbeat is only 10 s old, so the node is
    // alive.
    is_told(&behind(&stage, -290, &fence), "ahead of", 6);
    is_told(&behind(&stage, 10, &fence), "behind", 0);
    let run = behind(&stage, 10, &["unfence", &node, "--dry-run"]);
    is_told(&run, "behind", 6);
}
