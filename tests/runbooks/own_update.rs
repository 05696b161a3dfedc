//! `own-update.sh`: a service that updates and reboots the machine that it runs on.

use insta::assert_snapshot;

use crate::test_machine::{Runbook, TestMachine, kill};

fn own_update(machine: &TestMachine) -> Runbook {
    let text = |name| machine.path(name).display().to_string();
    machine
        .script("own-update.sh")
        .env("STATE", &text("state"))
        .env("BOOT_ID", &text("boot-id"))
}

/// The service, as it is started at boot.
fn resume(machine: &TestMachine) -> Runbook {
    own_update(machine).arg("resume")
}

/// Whether it has saved that an update must be finished.
fn remembers(machine: &TestMachine) -> bool {
    let mut files = std::fs::read_dir(machine.path("state")).expect("a directory");
    files.next().is_some()
}

#[test]
fn the_lock_is_kept_over_the_reboot() {
    let machine = TestMachine::new("own");
    own_update(&machine).succeeds();
    assert_eq!(machine.status(), "Locked NotReady,SchedulingDisabled");
    machine.becomes_ready();
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
    assert!(!remembers(&machine));
    assert_snapshot!(machine.steps(), @"
    kubectl maint acquire NODE --reentry --duration 1h -m updates itself -o lock-id
    kubectl maint renew NODE --lock-id ID --duration 1h
    kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --timeout=15m
    apt-get --quiet --yes dist-upgrade
    kubectl maint renew NODE --lock-id ID --duration 1h
    systemctl reboot
    kubectl maint renew NODE --lock-id ID --duration 1h
    kubectl wait --for=condition=Ready node/NODE --timeout=15m
    kubectl uncordon NODE
    kubectl maint release NODE --lock-id ID
    ");

    // At every later boot, there is nothing to do.
    machine.forget_steps();
    resume(&machine).succeeds();
    assert_eq!(machine.steps(), "");
}

#[test]
fn killed_before_the_reboot_it_starts_again_under_the_same_lock() {
    let machine = TestMachine::new("own-drain");
    let (running, drain) = own_update(&machine).stops_at("kubectl drain");
    kill(drain.caller);
    kill(drain.program);
    assert_eq!(running.ends().code, None);
    assert_eq!(machine.status(), "Locked Ready");

    own_update(&machine).succeeds();
    machine.becomes_ready();
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
    assert_eq!(machine.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn a_cordon_that_could_not_be_seen_is_left_alone() {
    let machine = TestMachine::new("own-cordon");
    machine.kubectl(&["cordon", &machine.node]);
    let unknown = "kubectl -o jsonpath={.spec.unschedulable}";
    let run = own_update(&machine).env("FAIL_ONCE_AT", unknown).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("it fails this once"), "{run:?}");
    let run = own_update(&machine).run();
    assert!(run.stderr.contains("cordoned by somebody else"), "{run:?}");
    assert_eq!(machine.steps(), "");
    assert_eq!(machine.status(), "Free Ready,SchedulingDisabled");
}

#[test]
fn killed_after_the_reboot_it_finishes_at_the_next_start() {
    let machine = TestMachine::new("own-boot");
    own_update(&machine).succeeds();
    machine.becomes_ready();
    for step in ["kubectl uncordon", "kubectl maint release"] {
        let (running, stopped) = resume(&machine).stops_at(step);
        kill(stopped.caller);
        kill(stopped.program);
        assert_eq!(running.ends().code, None);
        assert!(machine.status().starts_with("Locked "), "{step}");
    }
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
    assert!(!remembers(&machine));
    assert_eq!(machine.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn finished_work_is_kept_if_somebody_acquired_before_the_release() {
    let machine = TestMachine::new("own-over");
    own_update(&machine).succeeds();
    machine.becomes_ready();
    let (running, release) = resume(&machine).stops_at("kubectl maint release");
    kill(release.caller);
    kill(release.program);
    assert_eq!(running.ends().code, None);

    machine.lease_runs_out();
    let acquired = machine.maint("bob", &["acquire", &machine.node]);
    assert_eq!(acquired.code, Some(0), "{acquired:?}");
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Locked Ready");
    assert!(!remembers(&machine));
}

#[test]
fn a_lock_whose_lock_id_was_not_saved_is_still_its_own() {
    let machine = TestMachine::new("own-lock-id");
    let acquired = machine.maint(
        &format!("own-update@{}", machine.node),
        &["acquire", &machine.node],
    );
    assert_eq!(acquired.code, Some(0), "{acquired:?}");
    own_update(&machine).succeeds();
    machine.becomes_ready();
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
}

#[test]
fn after_its_lock_expired_and_was_taken_it_changes_nothing() {
    let machine = TestMachine::new("own-late");
    own_update(&machine).succeeds();
    machine.becomes_ready();
    machine.lease_runs_out();
    let acquired = machine.maint("bob", &["acquire", &machine.node, "--take-expired"]);
    assert_eq!(acquired.code, Some(0), "{acquired:?}");

    let run = resume(&machine).run();
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("not ours any more"), "{run:?}");
    assert_eq!(machine.status(), "Locked Ready,SchedulingDisabled");
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Locked Ready,SchedulingDisabled");
}

#[test]
fn after_its_lock_expired_it_continues_if_nobody_has_taken_it() {
    let machine = TestMachine::new("own-alone");
    own_update(&machine).succeeds();
    machine.becomes_ready();
    machine.lease_runs_out();
    assert_eq!(machine.status(), "Expired Ready,SchedulingDisabled");
    resume(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
}
