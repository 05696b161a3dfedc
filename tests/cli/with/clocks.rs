//! If time may have passed that no local clock counted, the command is suspended until the lock has been checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use rustix::process::Signal;

use crate::support::Treatment::{Ahead, Answer, Keep, Pass};
use crate::support::{Cluster, Kept, LEASES, Proxy, Running, on_both, on_one};
use crate::wall_clock::{self, Clock};

/// Prints its process id, and then which signal it gets.
const COMMAND: &str = "exec 2>/dev/null; trap 'echo over; exit 3' USR1; \
                       trap 'echo asked to end; exit 0' TERM; \
                       echo $$; while :; do sleep 0.1; done";

/// Starts a command, on a machine that learns from the answer to a renewal that it was paused for 4 s. Returns the run,
/// the command's process id, and the check that the suspended command waits for. Checks are kept at the proxy while
/// `keeps` is true.
fn paused(cluster: &Cluster, node: &str, keeps: &Arc<AtomicBool>) -> (Running, i32, Kept, Proxy) {
    let is_paused = Arc::new(AtomicBool::new(false));
    let keeps = keeps.clone();
    let proxy = cluster.proxy({
        let (is_paused, has_jumped) = (is_paused.clone(), AtomicBool::new(false));
        move |method, path| match *method {
            // Without the watch, only the check sees changes of the Lease.
            _ if path.contains("watch") => Answer(503, None),
            Method::PATCH if is_paused.load(Ordering::SeqCst) => {
                has_jumped.store(true, Ordering::SeqCst);
                Ahead(4)
            }
            // Only reads of Leases are kept: reads of Events, which show who waits, are not checks.
            Method::GET
                if path.contains("/leases/")
                    && has_jumped.load(Ordering::SeqCst)
                    && keeps.load(Ordering::SeqCst) =>
            {
                Keep
            }
            _ => Pass,
        }
    });
    let line = [
        "with",
        node,
        "--request-timeout=5s",
        "--grace=1s",
        "--lease-duration=24s",
    ];
    let mut running = cluster
        .maint(line)
        .args(["--", "/bin/sh", "-c", COMMAND])
        .kubeconfig(&proxy.kubeconfig)
        .start();
    let command = running.line().parse().expect("a process id");
    is_paused.store(true, Ordering::SeqCst);
    let check = proxy.kept();
    running.says("the command is suspended (SIGSTOP) until its lock has been checked");
    assert_eq!(state(command), "T");
    (running, command, check, proxy)
}

/// The state of a process in `/proc`: `T` is stopped.
fn state(process: i32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn it_continues_if_the_lock_is_still_held() {
    on_one("jump-held", |cluster| {
        let node = cluster.node("worker-1");
        let keeps = Arc::new(AtomicBool::new(true));
        let (mut running, _, check, _proxy) = paused(cluster, &node, &keeps);
        // Later checks pass: on a busy machine, another pause may be suspected.
        keeps.store(false, Ordering::SeqCst);
        // A signal sent to the suspended command is handled when the command continues.
        running.is_sent(Signal::USR1);
        assert_eq!(check.passes(), 200);
        running.says("the command continues");
        assert_eq!(running.line(), "over");
        let run = running.ends();
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains("released"), "{run}");
    });
}

#[test]
fn it_is_killed_if_the_lock_is_lost() {
    on_both("jump-lost", |cluster| {
        let node = cluster.node("worker-1");
        let keeps = Arc::new(AtomicBool::new(true));
        let (running, _, check, _proxy) = paused(cluster, &node, &keeps);
        cluster.delete(&format!("{LEASES}/{node}"));
        assert_eq!(check.passes(), 404);
        let run = running.ends();
        assert_eq!(run.stdout, "", "it did not go on to end: {run}");
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stderr.contains("was deleted"), "{run}");
        assert!(!run.stderr.contains("continues"), "{run}");
    });
}

#[test]
fn it_is_killed_if_nobody_answers_in_time() {
    on_one("jump-silent", |cluster| {
        let node = cluster.node("worker-1");
        let keeps = Arc::new(AtomicBool::new(true));
        let (running, _, _never_passes, _proxy) = paused(cluster, &node, &keeps);
        let run = running.ends();
        assert_eq!(run.stdout, "", "it did not go on to end: {run}");
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stderr.contains("could not be renewed in time"), "{run}");
    });
}

#[test]
fn a_command_that_is_ending_is_killed_when_another_lock_comes_into_doubt() {
    let Some(library) = wall_clock::library() else {
        return;
    };
    on_one("jump-ending", |cluster| {
        let [a, b] = ["a", "b"].map(|short| cluster.node(short));
        let has_jumped = Arc::new(AtomicBool::new(false));
        let proxy = cluster.proxy({
            let (has_jumped, end) = (has_jumped.clone(), format!("/leases/{b}"));
            move |method, path| {
                let is_check = method == Method::GET && path.contains(&end);
                match is_check && has_jumped.load(Ordering::SeqCst) {
                    true => Keep,
                    false => Pass,
                }
            }
        });
        let clock = Clock::ahead(cluster.directory(), 0);
        let line = ["with", &a, &b, "--grace=5m", "--lease-duration=1h"];
        let stays = "exec 2>/dev/null; trap 'echo asked to end' TERM; echo begun; \
                     while :; do sleep 0.1; done";
        let mut maint = cluster.maint(line).args(["--", "/bin/sh", "-c", stays]);
        for (name, value) in wall_clock::environment(&library, &clock.fault()) {
            maint = maint.env(name, value);
        }
        let mut running = maint.kubeconfig(&proxy.kubeconfig).start();
        assert_eq!(running.line(), "begun");
        cluster.delete(&format!("{LEASES}/{a}"));
        assert_eq!(running.line(), "asked to end");
        has_jumped.store(true, Ordering::SeqCst);
        clock.set(5);
        // The command's grace period is longer than the test's time limit. The check may still be connecting when
        // everything has ended.
        running.says(&format!("node/{b} released"));
        let run = running.ends();
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stderr.contains("was deleted"), "{run}");
    });
}
