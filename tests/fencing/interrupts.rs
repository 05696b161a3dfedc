//! Ctrl-C while a hold is on its way to the node's Lease, or its end, and answers to these that are lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;

use crate::support::{LABELLING, Stage, Treatment};

/// Whether it writes to a Lease that is a lock.
fn is_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("/namespaces/kube-node-maintenance/leases/")
}

/// Keeps that, `before` of which pass.
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

/// Keeps the first of that alone.
fn keeping_first() -> impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static {
    let is_first = AtomicBool::new(true);
    move |method, path| match is_write(method, path) && is_first.swap(false, Ordering::SeqCst) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// Keeps what is written to Nodes, except for the held label.
fn keeping_nodes(method: &Method, path: &str) -> Treatment {
    let is_write = *method == Method::PATCH && path.contains("/nodes/");
    match is_write && !path.contains(LABELLING) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// An unreachable node whose Lease is there already, so that its hold is a patch.
fn with_lease(prefix: &str) -> (Stage, String) {
    let (stage, node) = Stage::with_unreachable_node(prefix);
    stage.maint(["acquire", &node]).succeeds();
    stage.maint(["release", &node]).succeeds();
    (stage, node)
}

/// Nobody waits for as long as a request may take: and then the hold is there, and there is a way to end it.
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

/// An answer that comes within that moment is heard, and what was taken is given back.
#[test]
fn a_hold_that_succeeds_after_an_interrupt_is_ended() {
    let (stage, node) = with_lease("given-back");
    let proxy = stage.proxy(keeping_first());
    let fence = ["fence", &node, "--powered-off=dark"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    // However busy the machine is, the moment begins when both are there.
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

/// The same without anybody's Ctrl-C: the server doesn't answer in time.
#[test]
fn a_hold_that_gets_no_answer_may_still_be_written() {
    let (stage, node) = with_lease("unknown-hold");
    let proxy = stage.proxy(keeping_after(0));
    let fence = ["fence", &node, "--powered-off=dark", "--request-timeout=5s"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).run();
    assert_eq!(run.code, 1, "{run}");
    let message = format!(
        "error: unknown whether node/{node} was put on hold: the write may still take effect ("
    );
    assert!(run.stderr.contains(&message), "{run}");
    let ends = format!("; to undo it, run `kubectl maint unfence {node}`\n");
    assert!(run.stderr.contains(&ends), "{run}");
}

/// Record and taint are gone by then: it is unfenced, and the hold ends when its end lands.
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

    // The way out that it names, with the first write still under way.
    unfence().args(["--yes"]).succeeds();
    stage.is_untouched(&node);
    assert_eq!(kept.passes(), 409);
}

/// The write was already complete when Ctrl-C was handled. The output still says that it was interrupted,
/// as with other verbs.
#[test]
fn an_unfence_that_is_done_after_an_interrupt_was_interrupted() {
    let (stage, node) = Stage::with_unreachable_node("done-late");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(keeping_first());
    let (run, kept) = proxy.holds_up(stage.maint(["unfence", &node]));
    // However busy the machine is, the moment begins when both are there.
    run.is_sent(Signal::STOP);
    run.interrupt();
    assert_eq!(kept.passes(), 200);
    run.is_sent(Signal::CONT);
    assert_snapshot!(run.ends(), @"
    $ kubectl maint unfence worker-1
    node/worker-1 unfenced
    -- stderr
    node/worker-1: fencing hold ended
    error: interrupted
    -- exit code 130
    ");
    stage.is_untouched(&node);
}

/// So it is with the hold of a run that failed, which is given back.
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
    stage.is_untouched(&node);
}

/// Somebody took the node over while record and taint were on their way: it is unfenced, and theirs.
#[test]
fn a_hold_that_somebody_takes_meanwhile_keeps_no_node_fenced() {
    let (stage, node) = Stage::with_unreachable_node("taken-end");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(keeping_nodes);
    let run = stage
        .maint(["unfence", &node])
        .kubeconfig(&proxy.kubeconfig);
    let run = run.start();
    let mut kept = proxy.kept();
    let hold = ["hold", &node, "-m", "mine", "--take-over", "--yes"];
    stage.maint(hold).holder("mallory@laptop").succeeds();
    // The control plane may also write to the Node: `unfence` then repeats its write.
    while kept.passes() == 409 {
        kept = proxy.kept();
    }
    assert_snapshot!(run.ends(), @"
    $ kubectl maint unfence worker-1
    node/worker-1 unfenced
    -- stderr
    Warning: the fencing hold on node/worker-1 was lost: mallory@laptop has the lock now
    -- exit code 0
    ");
    assert_eq!(stage.record(&node), None);
    assert!(!stage.is_tainted(&node));
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:mallory@laptop"));
}

/// Only the waiting ends.
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
