//! Another machine under the same name, or another boot of the same machine, than the one that was proved to be off.
//! The proof says nothing about what runs there now.

use serde_json::{Value, json};

use super::{is_recorded, keeps, unreachable};
use crate::support::{Cluster, LEASES, Run, holder_of, on_both, on_one};

/// A hook that prints that it has begun, and succeeds once the file `$GATE` exists.
const HOOK: [&str; 4] = [
    "--",
    "sh",
    "-c",
    "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done",
];

/// Runs `fence` for `node` with `options` and [`HOOK`], and calls `happens` while the hook runs.
fn fenced_while(cluster: &Cluster, node: &str, options: &[&str], happens: impl Fn()) -> Run {
    let proxy = cluster.directory().join(format!("{node}-proxy"));
    let fence = cluster.maint(["fence", node]).args(options).args(HOOK);
    let fence = fence.env("PATH", "/usr/bin:/bin").env("GATE", &proxy);
    let run = fence.until_it_says("begun");
    happens();
    std::fs::write(&proxy, "").expect("a file");
    run.ends()
}

/// Sets another boot ID, as after a reboot. The kubelet still sends no heartbeat.
fn is_booted(cluster: &Cluster, node: &str, boot_id: &str) {
    let booted = json!({"status": {"nodeInfo": {"bootID": boot_id}}});
    cluster.patch(&format!("/api/v1/nodes/{node}/status"), &booted);
}

/// Another machine registers under the same name, and has not sent a heartbeat yet.
fn is_replaced(cluster: &Cluster, node: &str) {
    cluster.delete(&format!("/api/v1/nodes/{node}"));
    cluster.create(
        "/api/v1/nodes",
        &json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node},
            "spec": {"providerID": "rack://8"},
        }),
    );
    is_booted(cluster, node, "boot-of-8");
}

/// Asserts that the command found another machine than the one that it was told about.
#[track_caller]
fn is_another_machine(run: &Run) {
    assert_eq!(run.code, 6, "{run}");
    let another = "it is another machine than the one that was proven to be off, or was restarted since (then: ";
    assert!(run.stderr.contains(another), "{run}");
}

/// Asserts that the node has no fencing record and no out-of-service taint.
#[track_caller]
fn is_not_fenced(cluster: &Cluster, node: &str) {
    assert!(!is_recorded(cluster, node));
    let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
    let taints = seen["spec"]["taints"].to_string();
    assert!(!taints.contains("out-of-service"), "{taints}");
}

#[test]
fn a_hook_proves_nothing_of_a_machine_that_was_started_since() {
    on_one("fence-rebooted", |cluster| {
        let node = unreachable(cluster);
        let run = fenced_while(cluster, &node, &[], || is_booted(cluster, &node, "boot-2"));
        is_another_machine(&run);
        is_not_fenced(cluster, &node);
        assert_eq!(holder_of(cluster, &node), None);
        // The next command is for the new machine.
        let hook = ["fence", &node, "--timeout=0", "--dry-run", "--", "true"];
        cluster.maint(hook).succeeds();
    });
}

/// The hold was deleted together with its Node, and the new Node gets none.
#[test]
fn a_hook_proves_nothing_of_a_machine_that_took_the_name() {
    on_both("fence-replaced", |cluster| {
        let node = unreachable(cluster);
        let lease = format!("{LEASES}/{node}");
        let run = fenced_while(cluster, &node, &["--isolated"], || {
            is_replaced(cluster, &node);
            // The garbage collector may have deleted it already.
            let _ = cluster.try_send("DELETE", &lease, None);
        });
        is_another_machine(&run);
        is_not_fenced(cluster, &node);
        assert!(cluster.try_send("GET", &lease, None).is_err());
    });
}

/// The result of the earlier run's hook is unknown, so the hold of that run stays.
#[test]
fn a_hook_that_is_run_again_proves_nothing_of_a_machine_that_was_started_since() {
    on_one("fence-resumed", |cluster| {
        let node = unreachable(cluster);
        let fence = ["fence", &node, "--", "sh", "-c"];
        let kills = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600";
        let first = cluster.maint(fence).args([kills]);
        first.env("PATH", "/usr/bin:/bin").start().ends_killed();
        let node_now = cluster.get(&format!("/api/v1/nodes/{node}"));
        let hook = &node_now["metadata"]["annotations"]["kubectl-maint.dev/hook"];
        let hook: Value = serde_json::from_str(hook.as_str().expect("a hook")).expect("JSON");
        let resume = format!("--resume={}", hook["id"].as_str().expect("an id"));
        let run = fenced_while(cluster, &node, &[&resume], || {
            is_booted(cluster, &node, "boot-2");
        });
        is_another_machine(&run);
        is_not_fenced(cluster, &node);
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}

/// The change comes between the last read and the write of the record. The record is valid only for the machine that
/// was read.
#[test]
fn powered_off_is_valid_only_for_the_machine_that_was_read() {
    on_one("fence-word", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(keeps);
        let fence = || {
            let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
            fence.kubeconfig(&proxy.kubeconfig).start()
        };
        let run = fence();
        let kept = proxy.kept();
        is_booted(cluster, &node, "boot-2");
        assert_eq!(kept.passes(), 409);
        is_another_machine(&run.ends());
        is_not_fenced(cluster, &node);
        assert_eq!(holder_of(cluster, &node), None);

        let run = fence();
        let kept = proxy.kept();
        is_replaced(cluster, &node);
        let _ = cluster.try_send("DELETE", &format!("{LEASES}/{node}"), None);
        assert_eq!(kept.passes(), 409);
        is_another_machine(&run.ends());
        is_not_fenced(cluster, &node);
        assert_eq!(holder_of(cluster, &node), None);
    });
}
