//! `own-update.sh`: a service that updates and reboots the machine that it runs on.

use insta::assert_snapshot;

use crate::stage::{Runbook, Stage, kill};

fn own_update(stage: &Stage) -> Runbook {
    let text = |name| stage.path(name).display().to_string();
    stage
        .script("own-update.sh")
        .env("STATE", &text("state"))
        .env("BOOT_ID", &text("boot-id"))
}

/// As the service is started at boot.
fn resume(stage: &Stage) -> Runbook {
    own_update(stage).arg("resume")
}

/// Whether it remembers that there is something to finish.
fn remembers(stage: &Stage) -> bool {
    let mut files = std::fs::read_dir(stage.path("state")).expect("a directory");
    files.next().is_some()
}

#[test]
fn the_lock_is_kept_over_the_reboot() {
    let stage = Stage::new("own");
    own_update(&stage).succeeds();
    assert_eq!(stage.status(), "Locked NotReady,SchedulingDisabled");
    stage.becomes_ready();
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Free Ready");
    assert!(!remembers(&stage));
    assert_snapshot!(stage.steps(), @"
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

    // At every later boot there is nothing to do.
    stage.forget_steps();
    resume(&stage).succeeds();
    assert_eq!(stage.steps(), "");
}

#[test]
fn killed_before_the_reboot_it_begins_anew_under_the_same_lock() {
    let stage = Stage::new("own-drain");
    let (running, drain) = own_update(&stage).stops_at("kubectl drain");
    kill(drain.caller);
    kill(drain.program);
    assert_eq!(running.ends().code, None);
    assert_eq!(stage.status(), "Locked Ready");

    own_update(&stage).succeeds();
    stage.becomes_ready();
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Free Ready");
    assert_eq!(stage.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn a_cordon_that_could_not_be_seen_is_left_alone() {
    let stage = Stage::new("own-cordon");
    stage.kubectl(&["cordon", &stage.node]);
    let unknown = "kubectl -o jsonpath={.spec.unschedulable}";
    let run = own_update(&stage).env("FAIL_ONCE_AT", unknown).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("it fails this once"), "{run:?}");
    let run = own_update(&stage).run();
    assert!(run.stderr.contains("cordoned by somebody else"), "{run:?}");
    assert_eq!(stage.steps(), "");
    assert_eq!(stage.status(), "Free Ready,SchedulingDisabled");
}

#[test]
fn killed_after_the_reboot_it_finishes_at_the_next_start() {
    let stage = Stage::new("own-boot");
    own_update(&stage).succeeds();
    stage.becomes_ready();
    for step in ["kubectl uncordon", "kubectl maint release"] {
        let (running, stopped) = resume(&stage).stops_at(step);
        kill(stopped.caller);
        kill(stopped.program);
        assert_eq!(running.ends().code, None);
        assert!(stage.status().starts_with("Locked "), "{step}");
    }
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Free Ready");
    assert!(!remembers(&stage));
    assert_eq!(stage.read("boots"), "boot-1\nboot-2\n");
}

#[test]
fn what_is_finished_stays_so_where_somebody_came_before_the_release() {
    let stage = Stage::new("own-over");
    own_update(&stage).succeeds();
    stage.becomes_ready();
    let (running, release) = resume(&stage).stops_at("kubectl maint release");
    kill(release.caller);
    kill(release.program);
    assert_eq!(running.ends().code, None);

    stage.lease_runs_out();
    let acquired = stage.maint("bob", &["acquire", &stage.node]);
    assert_eq!(acquired.code, Some(0), "{acquired:?}");
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Locked Ready");
    assert!(!remembers(&stage));
}

#[test]
fn a_lock_whose_lock_id_was_never_kept_is_its_own_still() {
    let stage = Stage::new("own-lock-id");
    let acquired = stage.maint(
        &format!("own-update@{}", stage.node),
        &["acquire", &stage.node],
    );
    assert_eq!(acquired.code, Some(0), "{acquired:?}");
    own_update(&stage).succeeds();
    stage.becomes_ready();
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Free Ready");
}

#[test]
fn away_for_too_long_it_keeps_its_hands_off() {
    let stage = Stage::new("own-late");
    own_update(&stage).succeeds();
    stage.becomes_ready();
    stage.lease_runs_out();
    let acquired = stage.maint("bob", &["acquire", &stage.node, "--take-expired"]);
    assert_eq!(acquired.code, Some(0), "{acquired:?}");

    let run = resume(&stage).run();
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("not ours any more"), "{run:?}");
    assert_eq!(stage.status(), "Locked Ready,SchedulingDisabled");
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Locked Ready,SchedulingDisabled");
}

#[test]
fn away_for_too_long_with_nobody_there_it_goes_on() {
    let stage = Stage::new("own-alone");
    own_update(&stage).succeeds();
    stage.becomes_ready();
    stage.lease_runs_out();
    assert_eq!(stage.status(), "Expired Ready,SchedulingDisabled");
    resume(&stage).succeeds();
    assert_eq!(stage.status(), "Free Ready");
}
