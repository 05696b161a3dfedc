//! `nightly-snapshot.sh` and `nightly-update.sh`, which exclude each other.

use insta::assert_snapshot;

use crate::stage::{Stage, kill};

const SNAPSHOT: &str = "ssh sudo /usr/local/sbin/snapshot";
const UPDATE: &str = "ssh sudo apt-get";

#[test]
fn one_after_the_other_both_are_done() {
    let stage = Stage::new("night");
    stage.runbook("nightly-snapshot.sh").succeeds();
    assert_eq!(stage.status(), "Free Ready");
    stage.runbook("nightly-update.sh").succeeds();
    assert_eq!(stage.status(), "Free Ready");
    assert_snapshot!(stage.steps(), @"
    kubectl maint with NODE --wait --timeout 30m -E 75 -m nightly snapshot -- ssh -n -o BatchMode=yes NODE sudo /usr/local/sbin/snapshot
    ssh -n -o BatchMode=yes NODE sudo /usr/local/sbin/snapshot
    kubectl maint acquire NODE --duration 1h -m nightly update -o lock-id
    ssh -n -o BatchMode=yes NODE sudo apt-get --quiet --yes dist-upgrade
    kubectl maint release NODE --lock-id ID
    ");
}

#[test]
fn there_is_no_update_during_a_snapshot() {
    let stage = Stage::new("night-snapshot");
    let (running, ssh) = stage.runbook("nightly-snapshot.sh").stops_at(SNAPSHOT);
    let run = stage.runbook("nightly-update.sh").succeeds();
    assert!(run.stderr.contains("no update"), "{run:?}");
    assert!(!stage.did(UPDATE));

    kill(ssh.program);
    let run = running.ends();
    assert_eq!(run.code, Some(137), "the snapshot failed: {run:?}");
    stage.runbook("nightly-update.sh").succeeds();
    assert!(stage.did(UPDATE));
    stage.runbook("nightly-snapshot.sh").succeeds();
}

#[test]
fn there_is_no_snapshot_during_an_update_also_where_its_script_was_killed() {
    let stage = Stage::new("night-update");
    let (running, ssh) = stage.runbook("nightly-update.sh").stops_at(UPDATE);
    let snapshot = || stage.runbook("nightly-snapshot.sh").env("WAITING", "0");
    let skipped = || {
        let run = snapshot().succeeds();
        assert!(run.stderr.contains("no snapshot"), "{run:?}");
        assert!(!stage.did(SNAPSHOT));
    };
    stage.forget_steps();
    skipped();
    kill(running.pid());
    skipped();
    kill(ssh.program);
    assert_eq!(running.ends().code, None);

    stage.lease_runs_out();
    assert_eq!(stage.status(), "Expired Ready");
    stage.runbook("nightly-update.sh").succeeds();
    assert_eq!(stage.status(), "Free Ready");
    snapshot().succeeds();
}

#[test]
fn a_code_of_the_nodes_own_is_a_failure_and_no_other_holder() {
    for code in [3, 4] {
        let stage = Stage::new(&format!("night-code-{code}"));
        for runbook in ["nightly-snapshot.sh", "nightly-update.sh"] {
            let run = stage
                .runbook(runbook)
                .env("NODE_SAYS", &code.to_string())
                .run();
            assert_eq!(run.code, Some(code), "{runbook}: {run:?}");
            assert_eq!(stage.status(), "Free Ready");
        }
    }
}
