//! A closed pipe or a full disk. The command still does its work, but releases a lock whose result
//! is lost.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{holder_of, on_both, on_one};

#[test]
fn nobody_reads_stdout() {
    on_one("pipes-stdout", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        // A closed stdout, as in `| head -0`, is no error: both nodes are locked.
        cluster
            .maint(["acquire"])
            .args(&nodes)
            .unread_stdout()
            .succeeds();
        for node in &nodes {
            assert_eq!(
                cluster.lease_of(node)["spec"]["holderIdentity"],
                "alice@bastion"
            );
        }
        cluster
            .maint(["acquire", &nodes[0], "-o", "json", "--reentry"])
            .unread_stdout()
            .succeeds();
        cluster
            .maint(["acquire", "--help"])
            .unread_stdout()
            .succeeds();
        cluster.maint(["version"]).unread_stdout().succeeds();
    });
}

#[test]
fn nobody_reads_stderr() {
    on_one("pipes-stderr", |cluster| {
        let node = cluster.node("worker-1");
        // The messages on stderr are lost. The result and the exit code are not.
        assert_snapshot!(cluster.maint(["acquire", &node]).unread_stderr().run(), @"
        $ kubectl maint acquire worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- exit code 0
        ");
        assert_snapshot!(cluster.maint(["acquire", &node]).unread_stderr().run(), @"
        $ kubectl maint acquire worker-1
        -- exit code 3
        ");
        assert_eq!(
            cluster
                .maint(["acquire", "--nonsense"])
                .unread_stderr()
                .run()
                .code,
            2
        );
        cluster
            .maint(["release", &node, "-v=8"])
            .unread_stderr()
            .succeeds();
    });
}

/// Unlike a closed pipe, a full disk is an error: the result is lost, and a message says so.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    on_both("pipes-full", |cluster| {
        let node = cluster.node("worker-1");
        for words in [
            &["acquire", &node, "-o", "lock-id"][..],
            &["--help"],
            &["acquire", "--help"],
            &["completion", "bash"],
        ] {
            let full = std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .expect("the device");
            let output = cluster
                .maint(words)
                .command()
                .stdout(full)
                .output()
                .expect("the plugin was built");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                stderr.contains("error: could not write the result: "),
                "{words:?}: {stderr}"
            );
            assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
        }
    });
}

/// Without the lock id, nobody can use or release this lock.
#[test]
fn a_lock_whose_id_nobody_reads_is_released() {
    on_one("pipes-unread", |cluster| {
        let node = cluster.node("worker-1");
        for words in [
            &["acquire", &node, "-o", "lock-id"][..],
            &["acquire", &node, "-o", "json", "--opt-outs=none"],
            &["hold", &node, "-m", "disk", "-o", "yaml"],
        ] {
            let run = cluster.maint(words).unread_stdout().run();
            assert_eq!(run.code, 1, "{run}");
            assert!(
                run.stderr
                    .contains("error: could not write the result: broken pipe\n"),
                "{run}"
            );
            let released = "node/worker-1 was released, because";
            assert!(run.to_string().contains(released), "{run}");
            assert_eq!(holder_of(cluster, &node), None, "{run}");
        }
        let dry = cluster.maint(["acquire", &node, "-o", "json", "--dry-run"]);
        assert_eq!(dry.unread_stdout().run().code, 0);
    });
}

/// A release would not restore the earlier lock.
#[test]
fn a_lock_that_replaced_another_stays_even_if_nobody_reads_its_id() {
    on_one("pipes-kept", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let hold = ["hold", &node, "-m", "disk", "--cordon", "-o", "json"];
        let run = cluster.maint(hold).unread_stdout().run();
        assert_eq!(run.code, 1, "{run}");
        let stays =
            "node/worker-1 stays locked, although the result could not be written; its lock id is ";
        assert!(run.to_string().contains(stays), "{run}");
        assert!(!run.stderr.contains("released"), "{run}");
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"), "{run}");
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        assert_eq!(
            seen["metadata"]["labels"]["kubectl-maint.dev/held"],
            "alice-bastion"
        );
        assert_eq!(seen["spec"]["unschedulable"], true);
    });
}

/// The exit code tells a script that the command failed, and the script has no lock id to release
/// the lock.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_whose_result_cannot_be_written_is_released() {
    on_both("pipes-lock", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        for words in [
            &["acquire", "-o", "lock-id"][..],
            &["acquire"],
            &["hold", "-m", "disk"],
        ] {
            let full = std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .expect("the device");
            let words: Vec<&str> = words
                .iter()
                .copied()
                .chain(nodes.iter().map(String::as_str))
                .collect();
            let output = cluster
                .maint(&words)
                .command()
                .stdout(full)
                .output()
                .expect("the plugin was built");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
            for node in &nodes {
                let released = format!("Warning: node/{node} was released, because");
                assert!(stderr.contains(&released), "{words:?}: {stderr}");
                let holder = cluster.lease_of(node)["spec"]["holderIdentity"].clone();
                assert_eq!(holder.as_str().unwrap_or_default(), "", "{words:?}");
            }
        }
    });
}
