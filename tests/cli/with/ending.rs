//! However the command ends, none of its processes is left, and only then is the node released.

use std::slice;

use insta::assert_snapshot;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{briefly, with};
use crate::support::Treatment::{Answer, Keep, Pass};
use crate::support::{LEASES, Maint, Plugin, Running, holder_of, in_memory, on_both, on_one};

/// A command that prints its process id, with a child in its own session that does the same. Both ignore TERM.
const FAMILY: &str = "trap '' TERM; echo $$; \
                      setsid /bin/sh -c 'echo $$; while :; do sleep 1000; done' & \
                      while :; do sleep 1000; done";

/// A process, by a pidfd: it never refers to a later process with the same id.
struct Process(std::os::fd::OwnedFd);

impl Process {
    /// The process whose id is the next line of output.
    fn named_by(running: &mut Running) -> Self {
        let line = running.line();
        let pid = line.parse().ok().and_then(Pid::from_raw);
        let pid = pid.unwrap_or_else(|| panic!("a process id: {line:?}"));
        Self(pidfd_open(pid, PidfdFlags::empty()).expect("it lives"))
    }

    /// Waits until the process has ended.
    fn is_gone(&self) {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut files = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut files, None).expect("a poll");
    }
}

fn family(with: Maint) -> (Running, [Process; 2]) {
    let mut running = with.start();
    let processes = [(); 2].map(|()| Process::named_by(&mut running));
    (running, processes)
}

#[test]
fn signals_are_meant_for_the_command() {
    on_one("with-signals", |cluster| {
        let node = cluster.node("worker-1");
        let script = "trap 'echo asked; exit 15' TERM; echo on; while :; do sleep 0.1; done";
        let mut running = with(cluster, slice::from_ref(&node), script).start();
        assert_eq!(running.line(), "on");
        running.is_sent(Signal::TERM);
        let run = running.ends();
        assert_eq!((&run.stdout[..], run.code), ("asked\n", 15), "{run}");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn a_signal_that_the_command_ignores_is_reported_once() {
    on_one("with-ignores", |cluster| {
        let node = cluster.node("worker-1");
        let script = "trap '' INT; echo $$; while :; do sleep 0.1; done";
        let mut running = with(cluster, slice::from_ref(&node), script).start();
        let pid = running.line();
        running.interrupt();
        let kill = format!(
            "Warning: the command is still running after SIGINT: the lock is kept until it ends; to end it now, \
             run `kill -KILL {pid}`\n"
        );
        running.says(&kill);
        running.interrupt();
        let pid = pid.parse().ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), Signal::KILL).expect("it runs");
        let run = running.ends();
        assert_eq!(run.code, 128 + 9, "{run}");
        assert_eq!(run.stderr.matches("still running").count(), 1, "{run}");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn orphans_are_ended_before_the_node_is_free() {
    on_one("with-left", |cluster| {
        let node = cluster.node("worker-1");
        let ready = cluster.directory().join("ready");
        let ready = ready.display();
        // On TERM, the process that was left prints who holds the node.
        let left = format!(
            "trap '$PLUGIN status {node} -o name --state=locked; exit' TERM; echo on; : > '{ready}'; \
             while :; do sleep 0.1; done"
        );
        let script = format!("{{ {left} }} & until [ -e '{ready}' ]; do sleep 0.1; done; exit 7");
        let mut running = with(cluster, slice::from_ref(&node), &script).start();
        assert_eq!(running.line(), "on");
        let run = running.ends();
        assert_eq!(run.stdout, format!("node/{node}\n"));
        assert!(run.stderr.contains(" running; ending "), "{run}");
        assert_eq!(run.code, 7, "{run}");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn it_dies_with_a_killed_wrapper() {
    on_one("with-kill", |cluster| {
        let node = cluster.node("worker-1");
        let (running, processes) = family(with(cluster, slice::from_ref(&node), FAMILY));
        running.is_sent(Signal::KILL);
        for process in processes {
            process.is_gone();
        }
        running.ends_killed();
    });
}

#[test]
fn it_does_not_outlive_the_lease_of_a_stopped_wrapper() {
    on_both("with-stop", |cluster| {
        let node = cluster.node("worker-1");
        let (running, processes) = family(briefly(cluster, &node, FAMILY));
        running.is_sent(Signal::STOP);
        for process in processes {
            process.is_gone();
        }
        running.is_sent(Signal::CONT);
        let run = running.ends();
        assert_eq!(run.code, 5, "{run}");
        let said = "it was not renewed in time. Either its Lease was edited, or this process or machine was paused";
        assert!(run.stderr.contains(said), "{run}");
    });
}

#[test]
fn it_dies_with_a_killed_supervisor() {
    on_one("with-heir", |cluster| {
        let node = cluster.node("worker-1");
        let (running, processes) = family(with(cluster, slice::from_ref(&node), FAMILY));
        let supervisor = running.children();
        let [supervisor] = supervisor[..] else {
            panic!("one supervisor: {supervisor:?}");
        };
        kill_process(supervisor, Signal::KILL).expect("it lives");
        for process in processes {
            process.is_gone();
        }
        let run = running.ends().without_stdout();
        assert_eq!(run.code, 137, "{run}");
        assert!(
            run.stderr
                .contains("the command's supervisor was killed or stopped"),
            "{run}"
        );
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn without_a_release_if_its_credential_plugin_hangs() {
    in_memory("end-login", |cluster| {
        let node = cluster.node("worker-1");
        // The release ends at the time limit for requests. Without one, it ends when the lock expires.
        for (limits, why) in [
            ("--request-timeout 5s", ": unknown whether node/"),
            (
                "--request-timeout 0 --grace 1s --lease-duration 18s",
                " before its lock expired",
            ),
        ] {
            let plugin = cluster.plugin(Plugin::NEVER_HANGS);
            let go = cluster.directory().join("go");
            let script = format!("echo at work; until [ -e {go:?} ]; do sleep 0.1; done; exit 7");
            let with = cluster.maint(["with", &node]).args(limits.split(' '));
            let with = with.args(["--", "/bin/sh", "-c", &script]);
            let mut running = plugin.of(with).start();
            assert_eq!(running.line(), "at work");
            plugin.answers(0);
            std::fs::write(&go, "").expect("a file");
            let run = running.ends();
            assert_eq!(run.code, 7, "{run}");
            assert!(run.stderr.contains(why), "{run}");
            assert!(!plugin.has_outlived(), "{run}");
            std::fs::remove_file(&go).expect("a file");
            cluster.delete(&format!("{LEASES}/{node}"));
        }
    });
}

#[test]
fn a_release_that_is_refused_has_a_hint_how_to_repeat_it() {
    on_one("ending-refused", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Pass, Answer(403, None)]);
        let with = cluster.maint(["with", "-q", &node, "--", "true"]);
        assert_snapshot!(with.kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint with -q worker-1 -- true
        -- stderr
        Warning: could not release node/worker-1: Error from server (Forbidden): the proxy says so
        hint: it expires at [time]; release it now with `kubectl maint release worker-1 --lock-id [lock-id] --holder alice@bastion/with-[process]`
        -- exit code 0
        ");
    });
}

#[test]
fn a_release_that_hangs_is_not_waited_for_after_the_lock_expired() {
    on_one("ending-late", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Pass, Keep, Keep, Keep, Keep, Keep, Keep]);
        let with = briefly(cluster, &node, "true");
        let run = with.kubeconfig(&proxy.kubeconfig).run();
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stderr.contains("could not release node/"), "{run}");
    });
}

#[test]
fn an_interrupt_during_the_release_leaves_the_lock_to_expire() {
    on_one("ending-interrupt", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Pass, Keep, Keep, Keep, Keep]);
        let with = cluster.maint(["with", "-q", &node, "--", "true"]);
        let (run, _kept) = proxy.holds_up(with);
        run.is_sent(Signal::INT);
        assert_snapshot!(run.ends(), @"
        $ kubectl maint with -q worker-1 -- true
        -- stderr
        Warning: interrupted: the release of node/worker-1 may still take effect; if not, the lock expires
        -- exit code 0
        ");
    });
}

#[test]
fn processes_that_the_command_leaves_are_counted() {
    on_one("ending-left", |cluster| {
        let node = cluster.node("worker-1");
        let lone = "sleep 1000 >/dev/null 2>&1 &";
        let run = with(cluster, slice::from_ref(&node), lone).succeeds();
        let said = "the command left 1 process running; ending it\n";
        assert!(run.stderr.contains(said), "{run}");
        let run = with(cluster, &[node], &format!("{lone} {lone}")).succeeds();
        let said = "the command left 2 processes running; ending them\n";
        assert!(run.stderr.contains(said), "{run}");
    });
}
