//! `acquire --wait` with multiple nodes: they are locked one at a time, in name order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{bob, held_by_bob};
use crate::support::Treatment::{self, Keep, Pass};
use crate::support::{Cluster, holder_of, in_memory, on_both, on_one, requests, unless_stalled};

fn free(cluster: &Cluster, short: &str) -> String {
    let node = cluster.node(short);
    cluster.lease(&node, &json!({}));
    node
}

#[test]
fn they_are_taken_in_the_order_of_their_names() {
    on_one("turn-all", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let run = cluster
            .maint(["acquire", &second, &first, "--wait"])
            .until_it_says("(1 of 2 nodes locked)");
        assert_eq!(holder_of(cluster, &first).as_deref(), Some("alice@bastion"));
        bob(cluster, &["release", &second]).succeeds();
        // Results are printed in the order of the arguments.
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint acquire worker-2 worker-1 --wait
        node/worker-2 acquired by alice@bastion until [time] (30m)
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        waiting for node/worker-2 (1 of 2 nodes locked): locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-2 worker-1
          kubectl maint renew worker-2 worker-1
          kubectl maint hold worker-2 worker-1 -m WHY
        2 of 2 nodes locked
        -- exit code 0
        "#);
    });
}

#[test]
fn nodes_read_at_first_are_not_read_again() {
    on_one("turn-requests", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| free(cluster, short));
        let run = cluster
            .maint(["acquire", "--wait", "-v6"])
            .args(&nodes)
            .run();
        assert_eq!(run.code, 0, "{run}");
        // Each node is acquired by one write and renewed by a second one, which is the check at the
        // end.
        let (reads, writes) = (["GET"; 4], ["PATCH"; 6]);
        assert_eq!(requests(&run), [&reads[..], &writes].concat(), "{run}");
    });
}

#[test]
fn overlapping_callers_never_wait_for_each_other() {
    const ROUNDS: usize = 5;
    on_both("turn-overlap", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| free(cluster, short));
        let one = [&nodes[0], &nodes[1], &nodes[2]];
        let other = [&nodes[2], &nodes[1], &nodes[0]];
        thread::scope(|scope| {
            for (holder, nodes) in [("alice@bastion", one), ("bob@laptop", other)] {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        for verb in [&["acquire", "--wait", "--timeout", "60s"][..], &["release"]] {
                            cluster.maint(verb).args(nodes).holder(holder).succeeds();
                        }
                    }
                });
            }
        });
        for node in &nodes {
            let transitions = &cluster.lease_of(node)["spec"]["leaseTransitions"];
            assert_eq!(*transitions, json!(2 * ROUNDS), "{node}");
        }
    });
}

#[test]
fn a_timeout_releases_the_acquired_nodes() {
    on_one("turn-timeout", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let acquire = || {
            cluster.maint(["release", &first]).run();
            let acquire = cluster.maint(["acquire", "--wait", "--timeout", "4s"]);
            acquire.args([&first, &second]).run()
        };
        assert_snapshot!(unless_stalled(acquire), @r#"
        $ kubectl maint acquire --wait --timeout 4s worker-1 worker-2
        -- stderr
        waiting for node/worker-2 (1 of 2 nodes locked): locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        error: timed out after 4s waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: to wait longer, increase --timeout or remove it
        0 of 2 nodes acquired
        -- exit code 4
        "#);
        assert_eq!(holder_of(cluster, &first), None);
        let hold = || {
            cluster.maint(["release", &first]).run();
            let hold = ["hold", "-m", "rack", "--wait", "--timeout", "4s", "-q"];
            cluster.maint(hold).args([&first, &second]).run()
        };
        assert_snapshot!(unless_stalled(hold), @r#"
        $ kubectl maint hold -m rack --wait --timeout 4s -q worker-1 worker-2
        -- stderr
        error: timed out after 4s waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: to wait longer, increase --timeout or remove it; if nobody works there, take it over with `kubectl maint hold worker-2 -m rack --take-over`
        -- exit code 4
        "#);
        assert_eq!(holder_of(cluster, &first), None);
        assert_eq!(holder_of(cluster, &second).as_deref(), Some("bob@laptop"));
    });
}

/// No interrupt is involved: the code is 1, not 130.
#[test]
fn a_release_that_gets_no_answer_after_a_timeout_is_an_error() {
    in_memory("turn-unanswered", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let end = format!("/{first}");
        let is_acquired = AtomicBool::new(false);
        let proxy = cluster.proxy(move |method, path| {
            let is_write = *method == Method::PATCH && path.contains(&end);
            match is_write && is_acquired.swap(true, Ordering::SeqCst) {
                true => Keep,
                false => Pass,
            }
        });
        let run = cluster
            .maint(["acquire", "--wait", "--timeout", "4s"])
            .args([&first, &second]);
        assert_snapshot!(run.kubeconfig(&proxy.kubeconfig).run(), @r#"
        $ kubectl maint acquire --wait --timeout 4s worker-1 worker-2
        -- stderr
        waiting for node/worker-2 (1 of 2 nodes locked): locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        error: node/worker-1 was acquired but could not be released: unknown whether node/worker-1 was released: the write may still take effect (no answer within 2s)
        hint: release it with `kubectl maint release worker-1 --lock-id [lock-id]`
        error: timed out after 4s waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: to wait longer, increase --timeout or remove it
        not acquired: worker-2; unknown: worker-1
        -- exit code 1
        "#);
        assert_eq!(holder_of(cluster, &first).as_deref(), Some("alice@bastion"));
    });
}

/// Returns the annotations of a node's Lease.
fn annotations(cluster: &Cluster, node: &str) -> Value {
    cluster.lease_of(node)["metadata"]["annotations"].clone()
}

/// If the wait for another node fails, an earlier lock or hold keeps its reason and ticket.
#[test]
fn earlier_locks_keep_their_details_if_a_wait_times_out() {
    on_one("turn-found", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        for (before, verb) in [
            ("acquire -m disk --ticket T-1", "acquire -m new --reentry"),
            ("hold -m disk --ticket T-1 --expect-until 2d", "hold -m new"),
        ] {
            let words = before.split(' ').chain([&*first]);
            cluster.maint(words).succeeds();
            let found = annotations(cluster, &first);
            assert_eq!(found["kubectl-maint.dev/reason"], "disk");
            assert_eq!(found["kubectl-maint.dev/ticket"], "T-1");
            let words = verb.split(' ').chain(["--wait", "--timeout", "4s"]);
            let run = cluster.maint(words).args([&first, &second]).run();
            assert_eq!(run.code, 4, "{run}");
            assert_eq!(annotations(cluster, &first), found, "{verb}");
            cluster.maint(["release", &first]).succeeds();
        }
    });
}

/// If one of these last writes fails, the earlier locks may have changed. A warning names them.
#[test]
fn earlier_locks_that_may_have_the_new_reason_are_named() {
    in_memory("turn-rewritten", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| free(cluster, short));
        for node in &nodes {
            cluster.maint(["acquire", node, "-m", "before"]).succeeds();
        }
        let end = format!("/{}", nodes[1]);
        let writes = AtomicUsize::new(0);
        // The first two renew the lock: to enter it, and to check it.
        let proxy = cluster.proxy(move |method, path| {
            let is_it = *method == Method::PATCH && path.contains(&end);
            match is_it && writes.fetch_add(1, Ordering::SeqCst) == 2 {
                true => Treatment::Answer(403, None),
                false => Pass,
            }
        });
        let again = cluster.maint(["acquire", "--reentry", "--wait", "-m", "after"]);
        let again = again.args(&nodes).args(["--parallel", "1"]);
        let run = again.kubeconfig(&proxy.kubeconfig).run();
        assert_eq!(run.code, 1, "{run}");
        let [first, second] = nodes.map(|node| {
            let warning = format!(
                "Warning: your earlier lock on node/{node} may have the new reason, ticket and expected end; see `kubectl maint describe {node}`\n"
            );
            let reason = annotations(cluster, &node)["kubectl-maint.dev/reason"].clone();
            (run.stderr.contains(&warning), reason)
        });
        assert_eq!(first, (true, json!("after")), "{run}");
        assert_eq!(second, (true, json!("before")), "{run}");
    });
}

#[test]
fn the_new_reason_of_an_earlier_lock_is_written_once_all_are_locked() {
    on_one("turn-reason", |cluster| {
        let first = free(cluster, "worker-1");
        let second = free(cluster, "worker-2");
        for (before, verb) in [
            ("acquire -m disk", "acquire -m new --reentry --wait"),
            ("hold -m disk", "hold -m new --wait"),
        ] {
            let words = before.split(' ').chain([&*first]);
            cluster.maint(words).succeeds();
            let run = cluster.maint(verb.split(' ')).args([&first, &second]);
            run.succeeds();
            for node in [&first, &second] {
                let reason = annotations(cluster, node)["kubectl-maint.dev/reason"].clone();
                assert_eq!(reason, "new", "{verb}");
                cluster.maint(["release", node]).succeeds();
            }
        }
    });
}

#[test]
fn a_lease_that_became_a_hold_stays_after_a_failure() {
    on_one("turn-hold", |cluster| {
        let first = free(cluster, "worker-1");
        cluster.maint(["acquire", &first]).succeeds();
        let second = held_by_bob(cluster, "worker-2");
        let run = cluster
            .maint(["hold", "-m", "rack", "--wait", "--timeout", "4s", "-q"])
            .args([&first, &second])
            .run();
        assert_eq!(run.code, 4, "{run}");
        // The earlier lock can't be restored, and the holder does not want the node to become free.
        assert_eq!(
            holder_of(cluster, &first).as_deref(),
            Some("kubeadm:alice@bastion")
        );
    });
}

#[test]
fn ctrl_c_releases_the_acquired_nodes() {
    for (prefix, signal) in [("turn-int", Signal::INT), ("turn-quit", Signal::QUIT)] {
        on_one(prefix, |cluster| {
            let first = free(cluster, "worker-1");
            let second = held_by_bob(cluster, "worker-2");
            let run = cluster
                .maint(["acquire", &first, &second, "--wait"])
                .until_it_says("(1 of 2 nodes locked)");
            run.is_sent(signal);
            assert_snapshot!(run.ends(), @r#"
            $ kubectl maint acquire worker-1 worker-2 --wait
            -- stderr
            waiting for node/worker-2 (1 of 2 nodes locked): locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
            error: interrupted
            0 of 2 nodes acquired
            -- exit code 130
            "#);
            assert_eq!(holder_of(cluster, &first), None);
        });
    }
}

/// Before the command of `with` runs, there is no process to forward a signal to.
#[test]
fn term_before_the_command_runs_releases_the_nodes() {
    for (prefix, signal) in [
        ("turn-with-int", Signal::INT),
        ("turn-with-quit", Signal::QUIT),
    ] {
        on_one(prefix, |cluster| {
            let first = free(cluster, "worker-1");
            let second = held_by_bob(cluster, "worker-2");
            let line = ["with", &first, &second, "--wait", "--", "echo", "ran"];
            let run = cluster.maint(line).until_it_says("(1 of 2 nodes locked)");
            run.is_sent(signal);
            let run = run.ends();
            assert_eq!((run.stdout.as_str(), run.code), ("", 130), "{run}");
            assert_eq!(holder_of(cluster, &first), None);
        });
    }
}

#[test]
fn the_loss_of_one_lock_releases_the_others() {
    on_both("turn-loss", |cluster| {
        let first = free(cluster, "worker-1");
        let second = free(cluster, "worker-2");
        let third = held_by_bob(cluster, "worker-3");
        let run = cluster
            .maint(["acquire", &first, &second, &third, "--wait"])
            .until_it_says("(2 of 3 nodes locked)");
        let fire = ["hold", &second, "-m", "fire", "--take-over", "--yes"];
        cluster.maint(fire).holder("carol@desk").succeeds();
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint acquire worker-1 worker-2 worker-3 --wait
        -- stderr
        waiting for node/worker-3 (2 of 3 nodes locked): locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        error: lost the lock on node/worker-2: taken over by carol@desk: "fire" (since [time])
        hint: check with `kubectl maint status worker-2`
        0 of 3 nodes acquired
        -- exit code 5
        "#);
        assert_eq!(holder_of(cluster, &first), None);
        assert_eq!(
            holder_of(cluster, &second).as_deref(),
            Some("kubeadm:carol@desk")
        );
    });
}

#[test]
fn acquired_locks_are_renewed_during_the_wait() {
    on_both("turn-renewed", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let run = cluster
            .maint(["acquire", &first, &second, "--duration", "20s", "--wait"])
            .until_it_says("(1 of 2 nodes locked)");
        loop {
            let lease = cluster.lease_of(&first);
            assert_eq!(lease["spec"]["holderIdentity"], "alice@bastion");
            if lease["spec"]["renewTime"] != lease["spec"]["acquireTime"] {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        bob(cluster, &["release", &second]).succeeds();
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(cluster.lease_of(&first)["spec"]["leaseTransitions"], 1);
    });
}

#[test]
fn no_locks_are_kept_while_waiting_for_a_hold() {
    on_one("turn-behind", |cluster| {
        let first = free(cluster, "worker-1");
        let second = free(cluster, "worker-2");
        bob(cluster, &["hold", &second, "-m", "disk"]).succeeds();
        let run = cluster
            .maint(["acquire", &first, &second, "--wait"])
            .until_it_says("(0 of 2 nodes locked)");
        assert_eq!(holder_of(cluster, &first), None);
        bob(cluster, &["unhold", &second]).succeeds();
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint acquire worker-1 worker-2 --wait
        node/worker-1 acquired by alice@bastion until [time] (30m)
        node/worker-2 acquired by alice@bastion until [time] (30m)
        -- stderr
        waiting for node/worker-2 (0 of 2 nodes locked): on hold by bob@laptop: "disk" (since [time]); free when the hold is ended
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1 worker-2
          kubectl maint renew worker-1 worker-2
          kubectl maint hold worker-1 worker-2 -m WHY
        2 of 2 nodes locked
        -- exit code 0
        "#);
    });
}

/// Locks are kept for one duration while the wait goes on. Then they are released to let others
/// acquire them.
#[test]
fn acquired_locks_are_not_kept_for_longer_than_their_duration() {
    on_one("turn-yields", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let mut run = cluster
            .maint(["acquire", &first, &second, "--duration", "2s", "--wait"])
            .until_it_says("(1 of 2 nodes locked)");
        run.says("(0 of 2 nodes locked)");
        let carol = |verb: &str| cluster.maint([verb, &*first]).holder("carol@desk");
        carol("acquire").succeeds();
        bob(cluster, &["release", &second]).succeeds();
        run.says(": locked by carol@desk");
        carol("release").succeeds();
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
    });
}

#[test]
fn an_unknown_node_is_not_waited_for() {
    on_one("turn-unknown", |cluster| {
        let first = held_by_bob(cluster, "worker-1");
        let unknown = cluster.name("worker-9");
        let run = cluster.maint(["acquire", &first, &unknown, "--wait"]).run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("(NotFound)"), "{run}");
    });
}
