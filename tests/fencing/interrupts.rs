//! Ctrl-C while the write that begins or ends a fencing hold is in progress, and lost answers to such writes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;

use crate::support::{LABELLING, Stage, Treatment};

/// Whether this is a write to the Lease of a lock, and no dry run.
fn is_write(method: &Method, path: &str) -> bool {
    let is_lock = path.contains("/namespaces/kube-node-maintenance/leases/");
    *method == Method::PATCH && is_lock && !path.contains("dryRun")
}

/// Keeps writes to locks after the first `before` ones.
fn keeping_after(before: usize) -> impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static {
    let writes = AtomicUsize::new(0);
    move |method, path| {
        let is_late = is_write(method, path) && writes.fetch_add(1, Ordering::SeqCst) >= before;
        match is_late {
            true => Treatment::Keep,
            false => Treatment::Pass,
        }
    }
}

/// Keeps only the first write to a lock.
fn keeping_first() -> impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static {
    let is_first = AtomicBool::new(true);
    move |method, path| match is_write(method, path) && is_first.swap(false, Ordering::SeqCst) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// Keeps writes to Nodes, except for the held label.
fn keeping_nodes(method: &Method, path: &str) -> Treatment {
    let is_write = *method == Method::PATCH && path.contains("/nodes/");
    match is_write && !path.contains(LABELLING) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// An unreachable node that already has a Lease, so that the hold is written by a PATCH.
fn with_lease(prefix: &str) -> (Stage, String) {
    let (stage, node) = Stage::with_unreachable_node(prefix);
    stage.maint(["acquire", &node]).succeeds();
    stage.maint(["release", &node]).succeeds();
    (stage, node)
}

/// An interrupted run does not wait for the full request timeout. The hold is written later, and there is a command to
/// end it.
#[test]
fn an_interrupted_hold_may_still_take_effect() {
    let (stage, node) = with_lease("late-hold");
    let proxy = stage.proxy(keeping_after(0));
    let fence = ["fence", &node, "--powered-off=dark"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    run.interrupt();
    assert_snapshot!(run.ends(), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: unknown whether node/worker-1 was put on hold: the write may still take effect (interrupted)
    hint: to continue, run the command again; to undo it, run `kubectl maint unfence worker-1`
    -- exit code 130
    ");
    stage.is_untouched(&node);

    assert_eq!(kept.passes(), 200);
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    let unhold = stage.maint(["unhold", &node]).run();
    assert_eq!(unhold.code, 6, "{unhold}");
    stage.maint(["unfence", &node, "--yes"]).succeeds();
    stage.is_untouched(&node);
}

/// If the answer still comes after Ctrl-C, the hold is ended again.
#[test]
fn a_hold_that_succeeds_after_an_interrupt_is_ended() {
    let (stage, node) = with_lease("given-back");
    let proxy = stage.proxy(keeping_first());
    let fence = ["fence", &node, "--powered-off=dark"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    // Stopped, because both the signal and the answer must be there when the process continues, also on a busy machine.
    run.is_sent(Signal::STOP);
    run.interrupt();
    assert_eq!(kept.passes(), 200);
    run.is_sent(Signal::CONT);
    assert_snapshot!(run.ends(), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    node/worker-1 on hold until it is unfenced
    node/worker-1: fencing hold ended
    error: interrupted
    -- exit code 130
    ");
    stage.is_untouched(&node);
}

/// The record and the taint are already removed, so the node is unfenced. The hold ends when this write takes effect.
#[test]
fn an_interrupted_end_of_the_hold_may_still_take_effect() {
    let (stage, node) = Stage::with_unreachable_node("late-end");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(keeping_after(0));
    let unfence = || stage.maint(["unfence", &node]);
    let run = unfence().kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    run.interrupt();
    assert_snapshot!(run.ends(), @"
    $ kubectl maint unfence worker-1
    node/worker-1 unfenced
    -- stderr
    error: unknown whether the hold on node/worker-1 was ended: the write may still take effect (interrupted)
    hint: check with `kubectl maint status worker-1`; end it with `kubectl maint unfence worker-1`
    -- exit code 130
    ");
    assert_eq!(stage.record(&node), None);
    assert!(!stage.is_tainted(&node));
    assert!(stage.holder(&node).is_some());

    // The command of the hint works while the first write is still in progress.
    unfence().args(["--yes"]).succeeds();
    stage.is_untouched(&node);
    assert_eq!(kept.passes(), 409);
}

/// A run that fails ends its own hold, and that write may have an unknown outcome too.
#[test]
fn a_hold_whose_end_is_unknown_is_reported() {
    let (stage, node) = with_lease("late-return");
    let proxy = stage.proxy(keeping_after(1));
    let fence = ["fence", &node, "--", "false"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    run.is_sent(Signal::TERM);
    assert_snapshot!(run.ends(), @"
    $ kubectl maint fence worker-1 -- false
    -- stderr
    node/worker-1 on hold until it is unfenced
    Warning: unknown whether the hold on node/worker-1 was ended: the write may still take effect (interrupted); check with `kubectl maint status worker-1`; end it with `kubectl maint unfence worker-1`
    error: node/worker-1 was not fenced: the hook failed with exit code 1
    hint: check the machine of node/worker-1: the hook may have changed it; it printed nothing
    -- exit code 1
    ");
    assert_eq!(kept.passes(), 200);
    // The held label stays for `doctor --fix`.
    assert_eq!(stage.holder(&node), None);
    assert_eq!(stage.record(&node), None);
    assert!(!stage.is_tainted(&node));
}

/// Somebody takes over the lock while the record and the taint are being removed, and may be working on the machine.
#[test]
fn a_node_whose_hold_somebody_takes_over_meanwhile_stays_fenced() {
    let (stage, node) = Stage::with_unreachable_node("taken-end");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(keeping_nodes);
    let run = stage
        .maint(["unfence", &node])
        .kubeconfig(&proxy.kubeconfig);
    let run = run.start();
    let kept = proxy.kept();
    let hold = ["hold", &node, "-m", "mine", "--take-over", "--yes"];
    stage.maint(hold).holder("mallory@laptop").succeeds();
    // The new hold labels the Node, so the write is based on an earlier version.
    assert_eq!(kept.passes(), 409);
    assert_snapshot!(run.ends(), @r#"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: on hold by mallory@laptop: "mine" (since [time])
    hint: ask mallory@laptop to unfence the node; if nobody works there, take the lock over first with `kubectl maint hold worker-1 -m WHY --take-over`
    -- exit code 3
    "#);
    assert!(stage.record(&node).is_some() && stage.is_tainted(&node));
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:mallory@laptop"));
}

/// The interrupt ends only the wait.
#[test]
fn a_node_that_is_fenced_stays_so_after_an_interrupt() {
    let (stage, node) = Stage::with_unreachable_node("stays-fenced");
    stage.create_pod_that_stays(&node);
    let running = stage
        .maint(["fence", &node, "--powered-off=dark"])
        .args(["--accept-risk=no-owner", "-m", "it can go"])
        .until_it_says("waiting for 1 pod");
    running.interrupt();
    let run = running.ends();
    let said = format!(
        "node/{node} stays fenced; see what is left with `kubectl maint status --pods {node}`\nerror: interrupted\n"
    );
    assert!(run.stderr.ends_with(&said), "{run}");
    assert_eq!(run.code, 130, "{run}");
    assert!(stage.record(&node).is_some() && stage.is_tainted(&node));
}
