//! Lost answers of the server, and Ctrl-C while the command waits for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Kept, LABELLING, Proxy, Running, Stage, Treatment};

/// Whether this is a write to a Node that is not about the held label.
fn is_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH
        && path.contains("/nodes/")
        && !path.contains("dryRun")
        && !path.contains(LABELLING)
}

/// Keeps writes to Nodes.
fn keeping(method: &Method, path: &str) -> Treatment {
    match is_write(method, path) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// Keeps only the first write to a Node.
fn keeping_first() -> impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static {
    let writes = AtomicUsize::new(0);
    move |method, path| {
        let is_first = is_write(method, path) && writes.fetch_add(1, Ordering::SeqCst) == 0;
        match is_first {
            true => Treatment::Keep,
            false => Treatment::Pass,
        }
    }
}

/// Starts `fence --powered-off` for `node` as alice, and waits for the first request that `proxy` keeps.
fn fencing(stage: &Stage, node: &str, proxy: &Proxy, more: &[&str]) -> (Running, Kept) {
    let fence = stage.maint(["fence", node, "--powered-off=dark"]);
    proxy.holds_up(fence.args(more))
}

/// Lets a write to the Node pass. The control plane may also write to it: the write is then repeated.
fn passes(mut kept: Kept, proxy: &Proxy) {
    while kept.passes() == 409 {
        kept = proxy.kept();
    }
}

/// The server does not answer the write of the record, so the record may still be written later.
#[test]
fn a_record_that_gets_no_answer_may_still_be_written_and_the_hold_stays() {
    let (stage, node) = Stage::with_unreachable_node("no-answer");
    let is_hit = Arc::new(AtomicBool::new(false));
    let proxy = stage.proxy(move |method, path| {
        if is_write(method, path) {
            is_hit.store(true, Ordering::SeqCst);
            return Treatment::Keep;
        }
        match is_hit.load(Ordering::SeqCst) && path.contains("/nodes/") {
            true => Treatment::Answer(503, None),
            false => Treatment::Pass,
        }
    });
    let (run, kept) = fencing(&stage, &node, &proxy, &["--request-timeout=5s"]);
    let run = run.ends();
    assert_eq!(run.code, 1, "{run}");
    let line =
        format!("error: unknown whether node/{node} was fenced: the write may still take effect (");
    assert!(run.stderr.contains(&line), "{run}");
    assert!(run.stderr.contains("); its lock is kept\n"), "{run}");
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    drop(kept);
}

/// Once the Node has another resource version, the first write can no longer take effect.
#[test]
fn a_record_without_an_answer_is_written_again_for_another_version() {
    let (stage, node) = Stage::with_unreachable_node("outdated");
    let proxy = stage.proxy(keeping_first());
    let (run, kept) = fencing(&stage, &node, &proxy, &["--request-timeout=5s"]);
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    stage.patch_node(&node, &label);
    let run = run.ends();
    assert_eq!(run.code, 0, "{run}");
    let line = format!("node/{node} fenced by alice@bastion, powered off: dark");
    assert!(run.stdout.contains(&line), "{run}");
    assert!(stage.is_tainted(&node));
    drop(kept);
}

#[test]
fn a_record_that_is_written_after_an_interrupt_is_reported() {
    let (stage, node) = Stage::with_unreachable_node("late-record");
    let proxy = stage.proxy(keeping);
    let interrupted = || {
        let (run, kept) = fencing(&stage, &node, &proxy, &[]);
        run.interrupt();
        let code = kept.passes();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        (code, run)
    };
    // The control plane may change the Node first, and the record is refused then.
    let run = (0..10)
        .map(|_| interrupted())
        .find_map(|(code, run)| (code == 200).then_some(run))
        .expect("one is written");
    let line = format!("node/{node} fenced by alice@bastion, powered off: dark");
    assert!(run.stdout.contains(&line), "{run}");
    assert!(stage.is_tainted(&node));
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
}

#[test]
fn an_interrupted_record_may_still_take_effect() {
    let (stage, node) = Stage::with_unreachable_node("interrupted-record");
    let proxy = stage.proxy(keeping);
    let (run, kept) = fencing(&stage, &node, &proxy, &[]);
    run.interrupt();
    let run = run.ends();
    assert_eq!(run.code, 130, "{run}");
    let line = format!(
        "error: unknown whether node/{node} was fenced: the write may still take effect (interrupted)"
    );
    assert!(run.stderr.contains(&line), "{run}");
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    drop(kept);
}

/// The other run uses the same hold.
#[test]
fn a_run_whose_hook_annotation_is_refused_leaves_the_hold() {
    let (stage, node) = Stage::with_unreachable_node("too-late");
    let proxy = stage.proxy(keeping_first());
    let (run, kept) = proxy.holds_up(stage.maint(["fence", &node, "--", "true"]));
    let other = json!({
        "id": "other", "who": "alice@bastion", "program": "sh",
        "since": "2026-01-01T00:00:00Z", "until": "2099-01-01T00:00:00Z",
    });
    stage.annotate(&node, "kubectl-maint.dev/hook", &other);
    assert_eq!(kept.passes(), 409);
    let run = run.ends();
    assert_eq!(run.code, 3, "{run}");
    let told = format!("a hook may still be running for node/{node}: sh, started by alice@bastion");
    assert!(run.stderr.contains(&told), "{run}");
    assert_eq!(stage.hook(&node), Some(other));
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
}

/// The hook has succeeded, and its annotation stays until the record is written. The hint's command continues from
/// there.
#[test]
fn an_interrupted_record_of_a_hook_has_a_hint_to_continue() {
    let (stage, node) = Stage::with_unreachable_node("interrupted-hook");
    stage.maint(["hold", &node, "-m", "dark"]).succeeds();
    let proxy = stage.proxy(keeping);
    let fence = || stage.maint(["fence", &node, "--timeout=1m", "--", "echo", "off"]);
    let (run, announcement) = proxy.holds_up(fence());
    passes(announcement, &proxy);
    let record = proxy.kept();
    run.interrupt();
    let run = run.ends();
    assert_snapshot!(run, @"
    $ kubectl maint fence worker-1 --timeout=1m -- echo off
    -- stderr
    off
    error: unknown whether node/worker-1 was fenced: the write may still take effect (interrupted); its lock is kept
    hint: check with `kubectl maint status worker-1`; to continue, run the command again with --resume=[id] before `--`
    -- exit code 130
    ");
    drop(record);
    let again = fence().run();
    assert_snapshot!(again, @"
    $ kubectl maint fence worker-1 --timeout=1m -- echo off
    -- stderr
    error: a hook may still be running for node/worker-1: echo, started by alice@bastion at [time] (until [time] at the latest)
    hint: wait for it to end; if that run was interrupted, run the command again with --resume=[id] before `--`
    -- exit code 3
    ");
    assert_eq!(run.resume(), again.resume());
    let resumed = ["fence", &node, "--timeout=1m", again.resume()];
    let resumed = stage.maint(resumed).args(["--", "echo", "off"]).succeeds();
    let line = format!("node/{node} fenced by alice@bastion, with echo\n");
    assert_eq!(resumed.stdout, line);
    assert_eq!(stage.hook(&node), None);
}

#[test]
fn an_interrupted_unfence_may_still_take_effect() {
    let (stage, node) = Stage::with_unreachable_node("interrupted-return");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(keeping);
    let (run, kept) = proxy.holds_up(stage.maint(["unfence", &node]));
    run.interrupt();
    let run = run.ends();
    assert_eq!(run.code, 130, "{run}");
    let line =
        format!("error: unknown whether node/{node} was unfenced: the write may still take effect");
    assert!(run.stderr.contains(&line), "{run}");
    assert!(stage.is_tainted(&node));
    drop(kept);
}

/// The caller's own lock was ended by another command while the record was being written.
#[test]
fn a_node_whose_lock_ends_while_it_is_fenced_is_put_on_hold() {
    let (stage, node) = Stage::with_unreachable_node("ended-lock");
    stage.maint(["hold", &node, "-m", "dark"]).succeeds();
    let proxy = stage.proxy(keeping_first());
    let (run, kept) = fencing(&stage, &node, &proxy, &[]);
    stage.maint(["unhold", &node]).succeeds();
    let status = kept.passes();
    let run = run.ends();
    if status == 409 {
        // The control plane changed the Node first, so nothing was recorded yet.
        assert_eq!(run.code, 5, "{run}");
        return stage.is_untouched(&node);
    }
    assert_eq!(run.code, 0, "{run}");
    let ended = format!("Warning: the lock on node/{node} was ended");
    assert!(run.stderr.contains(&ended), "{run}");
    assert!(run.stderr.contains("on hold until it is unfenced"), "{run}");
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    stage.is_untouched(&node);
}

/// Answers with an unavailable server once, to the first request that `is_meant` selects.
fn away_once(
    is_meant: impl Fn(&Method, &str) -> bool + Send + Sync + 'static,
) -> impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static {
    let was_away = AtomicBool::new(false);
    move |method, path| match is_meant(method, path) && !was_away.swap(true, Ordering::SeqCst) {
        true => Treatment::Answer(503, None),
        false => Treatment::Pass,
    }
}

/// The hook is the expensive step, so its record is retried while the API server is unavailable.
#[test]
fn after_a_hook_has_succeeded_its_record_is_tried_until_the_server_is_back() {
    for (prefix, what, requests) in [
        ("away-record", "/", 25),
        ("away-zone", "/nodes?", 3),
        ("away-beat", "/kube-node-lease/", 3),
    ] {
        let (stage, node) = Stage::with_unreachable_node(prefix);
        let ran = stage.directory().join("ran");
        let hook_ran = ran.clone();
        let refused = AtomicUsize::new(0);
        let proxy = stage.proxy(move |_, path| {
            let is_away = path.contains(what) && hook_ran.exists();
            match is_away && refused.fetch_add(1, Ordering::SeqCst) < requests {
                true => Treatment::Answer(503, None),
                false => Treatment::Pass,
            }
        });
        let script = format!("echo once >> '{}'", ran.display());
        let fence = stage.maint(["fence", &node, "--", "sh", "-c", &script]);
        let run = fence.kubeconfig(&proxy.kubeconfig).succeeds();
        let line = format!("node/{node} fenced by alice@bastion, with sh\n");
        assert_eq!(run.stdout, line, "{run}");
        let message = format!("Warning: could not read node/{node}; retrying (");
        assert!(run.stderr.contains(&message), "{run}");
        assert_eq!(std::fs::read_to_string(ran).expect("it ran"), "once\n");
    }
}

#[test]
fn reads_of_the_remains_are_retried_if_the_server_was_away() {
    let (stage, node) = Stage::with_unreachable_node("away-follow");
    let proxy = stage.proxy(away_once(|_, path| path.contains("/volumeattachments")));
    let fence = stage.maint(["fence", &node, "--powered-off=dark"]);
    let run = fence.kubeconfig(&proxy.kubeconfig).run();
    assert_eq!(run.code, 0, "{run}");
    let line = format!("could not read node/{node}; retrying (");
    assert_eq!(run.stderr.matches(&line).count(), 1, "{run}");
    let line = format!("node/{node}: nothing is left to evict or detach");
    assert!(run.stderr.contains(&line), "{run}");
}
