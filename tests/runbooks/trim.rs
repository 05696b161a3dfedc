//! `trim.sh`: a release in a trap, for a lock that is already free.

use insta::assert_snapshot;

use crate::test_machine::{TestMachine, kill};

#[test]
fn the_release_in_the_trap_finds_the_node_free() {
    let machine = TestMachine::new("trim");
    let run = machine.runbook("trim.sh").succeeds();
    assert!(!run.stderr.contains("error"), "{run:?}");
    assert_eq!(machine.status(), "Free Ready");
    assert_snapshot!(machine.steps(), @"
    kubectl maint acquire NODE --duration 20m -m disks are trimmed -o lock-id
    ssh -n -o BatchMode=yes NODE sudo fstrim --all --verbose
    kubectl maint release NODE --lock-id ID
    logger --tag trim NODE: said by the node
    kubectl maint release NODE --lock-id ID
    ");
}

#[test]
fn the_trap_releases_the_node_if_a_step_was_killed() {
    let machine = TestMachine::new("trim-ssh");
    let (running, ssh) = machine.runbook("trim.sh").stops_at("ssh sudo fstrim");
    assert_eq!(machine.status(), "Locked Ready");
    kill(ssh.program);
    let run = running.ends();
    assert_eq!(run.code, Some(137), "{run:?}");
    assert_eq!(machine.status(), "Free Ready");
    machine.runbook("trim.sh").succeeds();
}

#[test]
fn the_trap_does_not_release_the_lock_of_a_new_holder() {
    let machine = TestMachine::new("trim-taken");
    let (running, logger) = machine.runbook("trim.sh").stops_at("logger --tag");
    // The holder has the same identity, so only the lock id differs.
    let who = format!("alice@{}", gethostname::gethostname().to_string_lossy());
    let acquired = machine.maint(&who, &["acquire", &machine.node]);
    assert_eq!(acquired.code, Some(0), "it is free already: {acquired:?}");
    kill(logger.program);
    let run = running.ends();
    assert_eq!(
        run.code,
        Some(137),
        "its own code, not the release's: {run:?}"
    );
    assert_eq!(machine.status(), "Locked Ready");
}

#[test]
fn if_no_trap_can_run_the_lease_shows_the_holder() {
    let machine = TestMachine::new("trim-killed");
    let (running, ssh) = machine.runbook("trim.sh").stops_at("ssh sudo fstrim");
    kill(running.pid());
    let refused = machine.maint("bob", &["acquire", &machine.node]);
    assert_eq!(
        refused.code,
        Some(3),
        "what it started may still run: {refused:?}"
    );
    kill(ssh.program);
    assert_eq!(running.ends().code, None);

    machine.lease_runs_out();
    assert_eq!(machine.status(), "Expired Ready");
    let run = machine.runbook("trim.sh").succeeds();
    assert!(run.stderr.contains("expired"), "{run:?}");
    assert_eq!(machine.status(), "Free Ready");
}
