//! A lost lock ends the command, and has its own exit code.

use std::io::{BufRead as _, BufReader, PipeWriter, Write as _};
use std::process::Stdio;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use insta::assert_snapshot;
use rustix::io::ioctl_fionbio;
use rustix::process::Signal;
use serde_json::json;

use super::{at_work, briefly, with};
use crate::support::Treatment::{Keep, Pass, Refuse};
use crate::support::{Cluster, LEASES, Plugin, Proxy, Run, ago, holder_of, on_both, on_one};

/// Prints when it has started and, at the end, which signal it got.
const CAREFUL: &str = "exec 2>/dev/null; trap 'echo asked to end; exit 0' TERM; \
                       echo at work; while :; do sleep 0.1; done";

#[test]
fn to_a_takeover() {
    on_both("lost-hold", |cluster| {
        let node = cluster.node("worker-1");
        let running = at_work(with(cluster, slice::from_ref(&node), CAREFUL));
        let take_over = ["hold", &node, "--take-over", "--yes", "-m", "it is on fire"];
        cluster.maint(take_over).holder("bob@laptop").succeeds();
        // The command exits with 0, but the lost lock decides the exit code.
        assert_snapshot!(running.ends(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "exec 2>/dev/null; trap 'echo asked to end; exit 0' TERM; ech"
        asked to end
        -- stderr
        node/worker-1 locked until the command ends, by alice@bastion/with-[process]; running on this machine: /bin/sh -c 'exec 2>/dev/null; trap '\''echo asked to end; exit 0'\'' TERM; echo at work; while :; do sleep 0.1; done'
        lease/worker-1 created
        error: lost the lock on node/worker-1 (the command is being ended): taken over by bob@laptop: "it is on fire" (since [time])
        hint: check with `kubectl maint status worker-1`
        -- exit code 5
        "#);
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:bob@laptop"));
    });
}

/// For example, because the terminal was stopped with Ctrl-S.
#[test]
fn ends_the_command_although_nobody_reads_stderr() {
    on_one("lost-unread", |cluster| {
        let node = cluster.node("worker-1");
        let with = ["with", "-q", &node, "--lease-duration=1h"];
        let with = cluster.maint(with).args(["--", "/bin/sh", "-c", CAREFUL]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        fill(&writer);
        let mut with = with.command();
        let mut running = with.stdout(Stdio::piped()).stderr(writer).spawn();
        let running = running.as_mut().expect("the plugin");
        let stdout = running.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        assert_eq!(line(), "at work");
        let force = ["release", &node, "--force", "--yes", "-m", "alice is away"];
        cluster.maint(force).holder("bob@laptop").succeeds();
        assert_eq!(line(), "asked to end");
        drop(reader);
        let code = running.wait().expect("it ends").code();
        assert_eq!(code, Some(5));
    });
}

/// Writes to a pipe until it is full.
fn fill(mut writer: &PipeWriter) {
    ioctl_fionbio(writer, true).expect("a mode");
    for chunk in [&[b'.'; 4096][..], b"."] {
        while writer.write(chunk).is_ok() {}
    }
    ioctl_fionbio(writer, false).expect("a mode");
}

#[test]
fn to_a_forced_release() {
    on_one("lost-force", |cluster| {
        let node = cluster.node("worker-1");
        let running = at_work(with(cluster, slice::from_ref(&node), CAREFUL));
        let force = ["release", &node, "--force", "--yes", "-m", "alice is away"];
        cluster.maint(force).holder("bob@laptop").succeeds();
        let run = running.ends();
        assert_eq!((run.code, &*run.stdout), (5, "asked to end\n"), "{run}");
        assert!(
            run.stderr
                .contains("released by bob@laptop: \"alice is away\"\n"),
            "{run}"
        );
    });
}

#[test]
fn by_deletion_of_its_lease() {
    on_both("lost-lease", |cluster| {
        let node = cluster.node("worker-1");
        let running = at_work(with(cluster, slice::from_ref(&node), CAREFUL));
        cluster.delete(&format!("{LEASES}/{node}"));
        let run = running.ends();
        assert_eq!((run.code, &*run.stdout), (5, "asked to end\n"), "{run}");
        assert!(run.stderr.contains(": its Lease was deleted\n"), "{run}");
        // Nothing is written after the loss.
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn of_several_any_one_ends_it_and_the_others_are_released() {
    on_one("lost-one", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let running = at_work(with(cluster, &nodes, CAREFUL));
        let take_over = ["hold", &nodes[1], "--take-over", "--yes", "-m", "fire"];
        cluster.maint(take_over).holder("bob@laptop").succeeds();
        let run = running.ends();
        assert_eq!((run.code, &*run.stdout), (5, "asked to end\n"), "{run}");
        assert!(
            run.stderr.contains(&format!("{} released\n", nodes[0])),
            "{run}"
        );
        assert_eq!(holder_of(cluster, &nodes[0]), None);
    });
}

/// A proxy that can be told to keep all further requests.
fn closable_proxy(cluster: &Cluster) -> (Proxy, Arc<AtomicBool>) {
    let closed = Arc::new(AtomicBool::new(false));
    let proxy = cluster.proxy({
        let closed = closed.clone();
        move |_, path| match path {
            // Watches are kept, because the proxy forwards only complete answers, and a watch never completes.
            _ if path.contains("watch") || closed.load(Ordering::SeqCst) => Keep,
            _ => Pass,
        }
    });
    (proxy, closed)
}

/// Runs `script` behind a proxy that closes once the script is running. Another test covers the warning before the
/// loss: on a slow machine there may be no time for one.
fn run_and_close(cluster: &Cluster, node: &str, script: &str) -> Run {
    let (proxy, closed) = closable_proxy(cluster);
    let running = at_work(briefly(cluster, node, script).kubeconfig(&proxy.kubeconfig));
    closed.store(true, Ordering::SeqCst);
    let mut run = running.ends();
    let said = run
        .stderr
        .lines()
        .filter(|line| !line.starts_with("Warning: "));
    run.stderr = said.map(|line| format!("{line}\n")).collect();
    run
}

#[test]
fn a_failed_renewal_and_the_next_success_are_reported() {
    on_one("lost-nearly", |cluster| {
        let node = cluster.node("worker-1");
        let (proxy, closed) = closable_proxy(cluster);
        let patient = "--request-timeout 5s --grace 1s --lease-duration 30s";
        let with = cluster.maint(["with", &node]).args(patient.split(' '));
        let with = with.args(["--", "/bin/sh", "-c", "while :; do sleep 0.1; done"]);
        let mut running = with
            .env("KUBECONFIG", &proxy.kubeconfig)
            .until_it_says("running on this machine");
        closed.store(true, Ordering::SeqCst);
        running.says(&format!(
            "Warning: could not renew node/{node}; retrying (Unable to connect"
        ));
        running.says("). Unless a renewal succeeds, the command will be ended at ");
        closed.store(false, Ordering::SeqCst);
        running.says(&format!("node/{node} renewed again\n"));
        running.is_sent(Signal::TERM);
        assert_eq!(running.ends().code, 143);
    });
}

#[test]
fn because_the_server_does_not_answer() {
    on_both("lost-way", |cluster| {
        let node = cluster.node("worker-1");
        let run = run_and_close(cluster, &node, CAREFUL);
        assert_eq!((run.code, &*run.stdout), (5, "asked to end\n"), "{run}");
        assert!(
            run.stderr.contains(
                "(the command is ended before the lock expires): it could not be renewed in time ("
            ),
            "{run}"
        );
        // A lost lock is not released. It expires.
        assert!(holder_of(cluster, &node).is_some());
    });
}

/// The supervisor ends the command in time, even while the plugin's process is stopped.
#[test]
fn noticed_after_the_command_was_ended() {
    on_one("lost-late", |cluster| {
        let node = cluster.node("worker-1");
        let (proxy, closed) = closable_proxy(cluster);
        let with = briefly(cluster, &node, CAREFUL).kubeconfig(&proxy.kubeconfig);
        let mut running = at_work(with);
        closed.store(true, Ordering::SeqCst);
        running.is_sent(Signal::STOP);
        assert_eq!(running.line(), "asked to end");
        running.is_sent(Signal::CONT);
        let run = running.ends();
        let lost = format!(
            "error: lost the lock on node/{node} (the command is ended before the lock expires): it was not renewed in time"
        );
        assert_eq!(run.stderr.matches(&lost).count(), 1, "{run}");
        assert_eq!(run.stderr.matches("hint: check with ").count(), 1, "{run}");
        assert_eq!(run.code, 5, "{run}");
    });
}

#[test]
fn kills_a_command_that_ignores_term() {
    on_one("lost-deaf", |cluster| {
        let node = cluster.node("worker-1");
        let deaf = "trap '' TERM; echo at work; while :; do sleep 1000; done";
        let run = run_and_close(cluster, &node, deaf);
        assert_eq!((run.code, &*run.stdout), (5, ""), "{run}");
    });
}

#[test]
fn because_its_credential_plugin_hangs() {
    on_one("lost-login", |cluster| {
        let node = cluster.node("worker-1");
        let plugin = cluster.plugin(Plugin::NEVER_HANGS);
        let running = at_work(plugin.of(briefly(cluster, &node, CAREFUL)));
        plugin.answers(0);
        let run = running.ends();
        assert_eq!(
            (run.stdout.as_str(), run.code),
            ("asked to end\n", 5),
            "{run}"
        );
        let lost = format!(
            "error: lost the lock on node/{node} (the command is ended before the lock expires): it could not be renewed in time ("
        );
        assert!(run.stderr.contains(&lost), "{run}");
        // The credential plugin ends with the command, not when it chooses to.
        assert!(!plugin.has_outlived(), "{run}");
        assert!(holder_of(cluster, &node).is_some());
    });
}

/// Without a watch, the next renewal detects the new Lease.
#[test]
fn to_a_lease_that_was_created_again() {
    on_one("lost-replaced", |cluster| {
        let proxy = cluster.proxy_for(Refuse(403, "not you"), |_, path| path.contains("watch="));
        for (short, holder, said) in [
            ("worker-1", "", "its Lease was deleted and created again\n"),
            (
                "worker-2",
                "bob@laptop",
                "its Lease was deleted and created again for bob@laptop (since ",
            ),
        ] {
            let node = cluster.node(short);
            let with = briefly(cluster, &node, CAREFUL);
            let running = at_work(with.kubeconfig(&proxy.kubeconfig));
            cluster.delete(&format!("{LEASES}/{node}"));
            let spec = json!({
                "holderIdentity": holder,
                "acquireTime": ago(0),
                "renewTime": ago(0),
                "leaseDurationSeconds": 60,
            });
            cluster.lease(&node, &spec);
            let run = running.ends();
            assert!(run.stderr.contains(said), "{run}");
            assert_eq!(run.code, 5, "{run}");
        }
    });
}
