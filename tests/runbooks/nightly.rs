//! `nightly-snapshot.sh` and `nightly-update.sh`, which exclude each other.

use insta::assert_snapshot;

use crate::test_machine::{TestMachine, kill};

const SNAPSHOT: &str = "ssh sudo /usr/local/sbin/snapshot";
const UPDATE: &str = "ssh sudo apt-get";

#[test]
fn one_after_the_other_both_are_done() {
    let machine = TestMachine::new("night");
    machine.runbook("nightly-snapshot.sh").succeeds();
    assert_eq!(machine.status(), "Free Ready");
    machine.runbook("nightly-update.sh").succeeds();
    assert_eq!(machine.status(), "Free Ready");
    assert_snapshot!(machine.steps(), @"
    kubectl maint with NODE --wait --timeout 30m -E 75 -m nightly snapshot -- ssh -n -o BatchMode=yes NODE sudo /usr/local/sbin/snapshot
    ssh -n -o BatchMode=yes NODE sudo /usr/local/sbin/snapshot
    kubectl maint acquire NODE --duration 1h -m nightly update -o lock-id
    ssh -n -o BatchMode=yes NODE sudo apt-get --quiet --yes dist-upgrade
    kubectl maint release NODE --lock-id ID
    ");
}

#[test]
fn there_is_no_update_during_a_snapshot() {
    let machine = TestMachine::new("night-snapshot");
    let (running, ssh) = machine.runbook("nightly-snapshot.sh").stops_at(SNAPSHOT);
    let run = machine.runbook("nightly-update.sh").succeeds();
    assert!(run.stderr.contains("no update"), "{run:?}");
    assert!(!machine.did(UPDATE));

    kill(ssh.program);
    let run = running.ends();
    assert_eq!(run.code, Some(137), "the snapshot failed: {run:?}");
    machine.runbook("nightly-update.sh").succeeds();
    assert!(machine.did(UPDATE));
    machine.runbook("nightly-snapshot.sh").succeeds();
}

#[test]
fn there_is_no_snapshot_during_an_update_even_if_its_script_was_killed() {
    let machine = TestMachine::new("night-update");
    let (running, ssh) = machine.runbook("nightly-update.sh").stops_at(UPDATE);
    let snapshot = || machine.runbook("nightly-snapshot.sh").env("WAITING", "0");
    let skipped = || {
        let run = snapshot().succeeds();
        assert!(run.stderr.contains("no snapshot"), "{run:?}");
        assert!(!machine.did(SNAPSHOT));
    };
    machine.forget_steps();
    skipped();
    kill(running.pid());
    skipped();
    kill(ssh.program);
    assert_eq!(running.ends().code, None);

    machine.lease_runs_out();
    assert_eq!(machine.status(), "Expired Ready");
    machine.runbook("nightly-update.sh").succeeds();
    assert_eq!(machine.status(), "Free Ready");
    snapshot().succeeds();
}

#[test]
fn an_exit_code_of_the_node_is_a_failure_and_no_conflict() {
    for code in [3, 4] {
        let machine = TestMachine::new(&format!("night-code-{code}"));
        for runbook in ["nightly-snapshot.sh", "nightly-update.sh"] {
            let run = machine
                .runbook(runbook)
                .env("NODE_SAYS", &code.to_string())
                .run();
            assert_eq!(run.code, Some(code), "{runbook}: {run:?}");
            assert_eq!(machine.status(), "Free Ready");
        }
    }
}
