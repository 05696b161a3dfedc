//! `reboot.sh`: it drains and reboots the node, waits until the node is back, and uncordons it, all under the lock.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::json;

use crate::test_machine::{Running, TestMachine, kill};

/// The status of a node that is back in service.
const BACK: &str = "Free Ready";

/// Creates a pod with an owner on the node. Without a kubelet, the pod is gone as soon as it is evicted.
fn pod(machine: &TestMachine) {
    let node = &machine.node;
    let owner = machine.kubectl(&[
        "create",
        "configmap",
        node,
        "--output=jsonpath={.metadata.uid}",
    ]);
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": node,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": node, "uid": owner, "controller": true,
            }],
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "registry.example/main"}],
        },
    });
    let mut create = machine
        .kubectl_command()
        .args(["create", "--filename=-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("kubectl is there");
    let mut stdin = create.stdin.take().expect("a pipe");
    stdin.write_all(pod.to_string().as_bytes()).expect("a pipe");
    drop(stdin);
    assert!(create.wait().expect("it ends").success());
}

/// Reports the node as Ready after its reboot, and waits for the end of the run.
#[track_caller]
fn comes_back(machine: &TestMachine, mut running: Running) {
    running.hears("rebooted");
    machine.becomes_ready();
    let run = running.ends();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(machine.status(), BACK);
}

#[test]
fn a_node_is_drained_rebooted_and_back() {
    let machine = TestMachine::new("reboot");
    pod(&machine);
    let mut running = machine.runbook("reboot.sh").start();
    running.hears("rebooted");
    assert_eq!(machine.status(), "Locked NotReady,SchedulingDisabled");
    let pods = machine.kubectl(&[
        "get",
        "pod",
        "--output=name",
        "--field-selector=spec.nodeName=node-reboot",
    ]);
    assert_eq!(pods, "", "it was drained before");
    machine.becomes_ready();
    let run = running.ends();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(machine.status(), BACK);
    assert_snapshot!(machine.steps(), @"
    kubectl maint with NODE --take-expired --wait --timeout 1h -m reboot -- bash docs/runbooks/reboot.sh NODE
    kubectl maint verify --quiet NODE
    kubectl annotate --overwrite node NODE reboot.example.com/from-boot=boot-1
    ssh -n -o BatchMode=yes -o ConnectTimeout=10 NODE true
    kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --timeout=15m
    kubectl maint verify --quiet NODE
    ssh -n -o BatchMode=yes -o ConnectTimeout=10 NODE sudo systemctl reboot
    kubectl wait --for=condition=Ready node/NODE --timeout=900s
    kubectl maint verify --quiet NODE
    kubectl uncordon NODE
    kubectl annotate node NODE reboot.example.com/from-boot-
    ");
}

#[test]
fn a_reboot_that_was_killed_is_done_by_the_next_run() {
    let machine = TestMachine::new("reboot-ssh");
    let (running, ssh) = machine
        .runbook("reboot.sh")
        .stops_at("ssh systemctl reboot");
    kill(ssh.program);
    let run = running.ends();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(machine.status(), "Free Ready,SchedulingDisabled");

    comes_back(&machine, machine.runbook("reboot.sh").start());
    assert_eq!(machine.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn a_run_killed_after_the_reboot_is_finished_without_another_one() {
    let machine = TestMachine::new("reboot-script");
    let (running, waiting) = machine.runbook("reboot.sh").stops_at("kubectl wait");
    kill(waiting.caller);
    let run = running.ends();
    assert_eq!(run.code, Some(137), "{run:?}");
    assert_eq!(machine.status(), "Free NotReady,SchedulingDisabled");

    machine.becomes_ready();
    machine.forget_steps();
    machine.runbook("reboot.sh").env("BOOTING", "30").succeeds();
    assert_eq!(machine.status(), BACK);
    assert_snapshot!(machine.steps(), @"
    kubectl maint with NODE --take-expired --wait --timeout 1h -m reboot -- bash docs/runbooks/reboot.sh NODE
    kubectl maint verify --quiet NODE
    kubectl wait --for=condition=Ready node/NODE --timeout=30s
    kubectl maint verify --quiet NODE
    kubectl uncordon NODE
    kubectl annotate node NODE reboot.example.com/from-boot-
    ");
    assert_eq!(machine.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn an_unknown_boot_id_is_no_other_boot() {
    let machine = TestMachine::new("reboot-unknown");
    let (running, drain) = machine.runbook("reboot.sh").stops_at("kubectl drain");
    kill(drain.program);
    assert_eq!(running.ends().code, Some(137));

    // The cordon that the first run would have set.
    machine.kubectl(&["cordon", &machine.node]);
    let unknown = "kubectl -o jsonpath={.status.nodeInfo.bootID}";
    let next = machine.runbook("reboot.sh").env("FAIL_ONCE_AT", unknown);
    let run = next.run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("boot ID of node/"), "{run:?}");
    assert!(!machine.did("kubectl uncordon"), "{}", machine.steps());
    assert_eq!(machine.status(), "Free Ready,SchedulingDisabled");
    comes_back(&machine, machine.runbook("reboot.sh").start());
    assert_eq!(machine.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn the_run_ends_if_the_keeper_of_the_lock_is_killed() {
    let machine = TestMachine::new("reboot-with");
    let (running, _) = machine.runbook("reboot.sh").stops_at("kubectl drain");
    kill(running.pid());
    assert_eq!(running.ends().code, None);
    assert_eq!(
        machine.status(),
        "Locked Ready",
        "nobody was there to release it"
    );

    machine.lease_runs_out();
    assert_eq!(machine.status(), "Expired Ready");
    comes_back(&machine, machine.runbook("reboot.sh").start());
}

#[test]
fn a_lock_that_is_broken_ends_the_run_before_the_reboot() {
    let machine = TestMachine::new("reboot-broken");
    let (running, _) = machine.runbook("reboot.sh").stops_at("kubectl drain");
    let force = ["release", &machine.node, "--force", "--yes", "-m", "fire"];
    let broken = machine.maint("carol", &force);
    assert_eq!(broken.code, Some(0), "{broken:?}");
    let run = running.ends();
    assert_eq!(run.code, Some(5), "{run:?}");
    assert_eq!(machine.read("boots"), "boot-1\n");
    comes_back(&machine, machine.runbook("reboot.sh").start());
}

#[test]
fn a_node_that_somebody_has_locked_is_left_alone() {
    let machine = TestMachine::new("reboot-held");
    let acquired = machine.maint("bob", &["acquire", &machine.node]);
    assert_eq!(acquired.code, Some(0), "{acquired:?}");
    let run = machine.runbook("reboot.sh").env("WAITING", "0").run();
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!(machine.status(), "Locked Ready");
}

#[test]
fn a_node_that_somebody_has_cordoned_is_left_alone() {
    let machine = TestMachine::new("reboot-cordoned");
    machine.kubectl(&["cordon", &machine.node]);
    let run = machine.runbook("reboot.sh").run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("cordoned by somebody else"), "{run:?}");
    assert_eq!(machine.status(), "Free Ready,SchedulingDisabled");
    assert_eq!(machine.read("boots"), "boot-1\n");
}
