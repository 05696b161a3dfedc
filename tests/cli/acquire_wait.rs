//! Waiting for the lock of a node that somebody else holds (`--wait`).

mod clocks;
mod multiple_nodes;
mod terminal;

use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::Treatment::{Answer, Keep};
use crate::support::{Cluster, Kept, Maint, Proxy, Running, ago, holder_of, on_both, on_one};

/// Creates a node that bob has locked.
pub(super) fn held_by_bob(cluster: &Cluster, short: &str) -> String {
    let node = cluster.node(short);
    cluster.lease(&node, &json!({}));
    bob(cluster, &["acquire", &node, "-m", "disk"]).succeeds();
    node
}

/// Creates a node whose lock, held by a client that is gone, can be acquired in about eight seconds. The lock has not
/// expired for the first five.
pub(super) fn about_to_expire(cluster: &Cluster, short: &str) -> String {
    let node = cluster.node(short);
    let spec = json!({
        "holderIdentity": "bob@laptop",
        "leaseDurationSeconds": 5,
        "acquireTime": ago(3),
        "renewTime": ago(0),
        "leaseTransitions": 1,
    });
    cluster.lease(&node, &spec);
    node
}

pub(super) fn bob(cluster: &Cluster, arguments: &[&str]) -> Maint {
    cluster.maint(arguments).holder("bob@laptop")
}

#[test]
fn a_released_node_is_acquired() {
    on_both("wait-release", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster
            .maint(["acquire", &node, "--wait"])
            .until_it_says("waiting for node/");
        bob(cluster, &["release", &node]).succeeds();
        // In a script, one line names the holder that it waits for, and then the result is printed.
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint acquire worker-1 --wait
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        waiting for node/worker-1: locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        "#);
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("alice@bastion"));
    });
}

#[test]
fn an_expired_node_is_acquired() {
    on_one("wait-expiry", |cluster| {
        let node = about_to_expire(cluster, "worker-1");
        let run = cluster.maint(["acquire", &node, "--wait", "-q", "-o", "name"]);
        let run = run.succeeds();
        assert_eq!(run.stdout, format!("node/{node}\n"));
        // The warning is the same as for any expired lock.
        let warning = format!("Warning: node/{node} had an expired lock of bob@laptop");
        assert!(run.stderr.starts_with(&warning), "{run}");
    });
}

#[test]
fn a_free_node_is_acquired_at_once() {
    on_one("wait-free", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let run = cluster.maint(["acquire", &node, "--wait", "--timeout=0"]);
        run.succeeds();
    });
}

#[test]
fn a_timeout_names_the_holder() {
    on_one("wait-timeout", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster.maint(["acquire", &node, "--wait", "--timeout=4s"]);
        assert_snapshot!(run.run(), @r#"
        $ kubectl maint acquire worker-1 --wait --timeout=4s
        -- stderr
        waiting for node/worker-1: locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        error: timed out after 4s waiting for node/worker-1: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: to wait longer, increase --timeout or remove it
        -- exit code 4
        "#);
        // With `--timeout 0`, it tries once and does not wait.
        let run = cluster.maint(["acquire", &node, "--wait", "--timeout", "0"]);
        run.fails(4);
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn a_renewal_prints_no_new_line() {
    on_one("wait-renewal", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster
            .maint(["acquire", &node, "--wait"])
            .until_it_says("waiting for node/");
        bob(cluster, &["renew", &node]).succeeds();
        bob(cluster, &["release", &node]).succeeds();
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(run.stderr.matches("waiting for node/").count(), 1, "{run}");
    });
}

#[test]
fn a_new_holder_prints_a_new_line() {
    on_one("wait-another", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let mut run = cluster
            .maint(["acquire", &node, "--wait"])
            .until_it_says("waiting for node/");
        let carol = ["hold", &node, "-m", "fire", "--take-over", "--yes"];
        cluster.maint(carol).holder("carol@desk").succeeds();
        run.says("on hold by carol@desk");
        cluster
            .maint(["unhold", &node])
            .holder("carol@desk")
            .succeeds();
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(run.stderr.matches("waiting for node/").count(), 2, "{run}");
    });
}

/// Another command of the same user may hold the lock and release it later.
#[test]
fn waiting_for_your_own_lock_has_a_hint_to_continue() {
    on_one("wait-own", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        let run = cluster
            .maint(["acquire", &node, "--wait"])
            .until_it_says("waiting for node/");
        cluster.maint(["release", &node]).succeeds();
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1 --wait
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        waiting for node/worker-1: you already hold this lock as alice@bastion (since [time], until [time], [length] left); free when released, or at [time] unless renewed; release it with `kubectl maint release worker-1`, or use --reentry instead
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
    });
}

#[test]
fn your_own_hold_is_waited_for_too() {
    on_one("wait-own-hold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        let run = cluster
            .maint(["acquire", &node, "--wait"])
            .until_it_says("waiting for node/");
        cluster.maint(["unhold", &node]).succeeds();
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint acquire worker-1 --wait
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        waiting for node/worker-1: on hold by you as alice@bastion: "disk" (since [time]); free when the hold is ended; end it with `kubectl maint unhold worker-1`, or use --reentry instead
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        "#);
    });
}

#[test]
fn a_hold_waits_too() {
    on_one("wait-hold", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster
            .maint(["hold", &node, "-m", "new disk", "--wait"])
            .until_it_says("waiting for node/");
        bob(cluster, &["release", &node]).succeeds();
        assert_eq!(run.ends().code, 0);
        assert_eq!(
            holder_of(cluster, &node).as_deref(),
            Some("kubeadm:alice@bastion")
        );
    });
}

#[test]
fn a_dry_run_waits_for_nobody() {
    on_one("wait-dry", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster.maint(["acquire", &node, "--wait", "--dry-run"]);
        run.fails(3);
    });
}

#[test]
fn a_deleted_node_ends_the_wait() {
    on_both("wait-gone", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let run = cluster
            .maint(["acquire", &node, "--wait"])
            .until_it_says("waiting for node/");
        cluster.delete(&format!("/api/v1/nodes/{node}"));
        let run = run.ends();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("(NotFound)"), "{run}");
    });
}

#[test]
fn ctrl_c_while_it_waits_leaves_nothing() {
    for (prefix, signal) in [
        ("wait-int", Signal::INT),
        ("wait-term", Signal::TERM),
        ("wait-hup", Signal::HUP),
        ("wait-quit", Signal::QUIT),
    ] {
        on_one(prefix, |cluster| {
            let node = held_by_bob(cluster, "worker-1");
            let before = cluster.lease_of(&node);
            let run = cluster
                .maint(["acquire", &node, "--wait", "-o", "json"])
                .until_it_says("waiting for node/");
            run.is_sent(signal);
            let run = run.ends();
            assert_eq!(run.code, 130, "{run}");
            assert_eq!(run.item()["error"]["code"], "Interrupted", "{run}");
            assert_eq!(cluster.lease_of(&node), before);
        });
    }
}

/// Starts `acquire --wait` on a node of bob's and releases bob's lock. Returns when `proxy` keeps the write that
/// acquires it.
fn about_to_take(cluster: &Cluster, node: &str, proxy: &Proxy) -> (Running, Kept) {
    let run = cluster
        .maint(["acquire", node, "--wait", "-q"])
        .kubeconfig(&proxy.kubeconfig)
        .start();
    bob(cluster, &["release", node]).succeeds();
    (run, proxy.kept())
}

#[test]
fn ctrl_c_while_a_write_hangs_says_that_it_may_land() {
    on_one("wait-write", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let proxy = cluster.proxy_for(Keep, |method, _| method == Method::PATCH);
        let (mut run, kept) = about_to_take(cluster, &node, &proxy);
        run.interrupt();
        run.says("may still take effect");
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1 --wait -q
        -- stderr
        error: interrupted: the write for node/worker-1 was in progress and may still take effect
        hint: check with `kubectl maint status worker-1`
        -- exit code 130
        ");
        assert_eq!(kept.passes(), 200);
    });
}

#[test]
fn ctrl_c_during_a_successful_write_releases() {
    on_both("wait-lands", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let proxy = cluster.proxy_for_writes(&[Keep]);
        let (run, kept) = about_to_take(cluster, &node, &proxy);
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        // The interrupt or the answer may come first. Either way the output must match the lock: released, or held.
        match run.code {
            130 => assert_eq!(holder_of(cluster, &node), None, "{run}"),
            code => {
                let holder = holder_of(cluster, &node);
                assert_eq!((code, holder.as_deref()), (0, Some("alice@bastion")));
            }
        }
    });
}

#[test]
fn without_the_right_to_watch_it_still_waits() {
    on_both("wait-blind", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let proxy = cluster.proxy_for(Answer(403, None), |_, path| path.contains("watch=true"));
        let start = |arguments: &[&str]| {
            let maint = cluster.maint(arguments).kubeconfig(&proxy.kubeconfig);
            maint.until_it_says("could not watch for changes")
        };
        let waiting = start(&["wait", &node]);
        bob(cluster, &["release", &node]).succeeds();
        assert_eq!(waiting.ends().code, 0);
        bob(cluster, &["acquire", &node]).succeeds();
        let acquiring = start(&["acquire", &node, "--wait"]);
        bob(cluster, &["release", &node]).succeeds();
        let run = acquiring.ends();
        assert_eq!(run.code, 0, "{run}");
        let warnings = run.stderr.matches("could not watch for changes");
        assert_eq!(warnings.count(), 1, "{run}");
    });
}

#[test]
fn impossible_waits_are_usage_errors() {
    let cluster = Cluster::nowhere();
    for arguments in [
        &["acquire", "a", "--timeout", "30s"][..],
        &["acquire", "a", "b", "--wait", "--partial"],
        &["hold", "a", "-m", "x", "--wait", "--take-over"],
        &["acquire", "a", "--wait", "--timeout", "30"],
    ] {
        let run = cluster.maint(arguments).run();
        assert_eq!(run.code, 2, "{run}");
    }
}
