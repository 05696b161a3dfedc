//! Commands and changes that come between the steps of `fence` and `unfence`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{PatientHook, Stage, eventually, hook_that_kills};

/// Only the heartbeat shows it: the Node itself has not changed.
#[test]
fn a_node_that_came_back_is_not_called_fenced() {
    let (stage, node) = Stage::with_unreachable_node("came-back");
    let hook = PatientHook::new(&stage);
    let running = hook.begins(stage.maint(["fence", &node]));
    stage.beats(&node);
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 6, "{run}");
    let message = format!("cannot fence node/{node}: its kubelet is alive (last heartbeat ");
    assert!(run.stderr.contains(&message), "{run}");
    stage.is_untouched(&node);
}

#[test]
fn of_two_fencers_one_sees_the_hook_of_the_other() {
    let (stage, node) = Stage::with_unreachable_node("two");
    let hook = PatientHook::new(&stage);
    let first = hook.begins(stage.maint(["fence", &node]));
    let second = stage.maint(["fence", &node, "--powered-off=dark"]);
    let run = second.holder("bob@laptop").run();
    assert_eq!(run.code, 3, "{run}");
    let message =
        format!("a hook may still be running for node/{node}: sh, started by alice@bastion at ");
    assert!(run.stderr.contains(&message), "{run}");
    hook.may_end();
    let run = first.ends();
    assert_eq!(run.code, 0, "{run}");
    let record = stage.record(&node).expect("a record");
    assert_eq!(record["who"], "alice@bastion");

    // From now on, the node counts as fenced for every user.
    let second = stage.maint(["fence", &node, "--powered-off=dark"]);
    let run = second.holder("bob@laptop").succeeds();
    assert!(
        run.stdout.contains("is already fenced by alice@bastion"),
        "{run}"
    );
    assert_eq!(stage.record(&node), Some(record));
}

/// Only the fencing that the user confirmed is undone, not a later one.
#[test]
fn a_node_that_is_fenced_anew_meanwhile_stays_fenced() {
    let (stage, node) = Stage::with_unreachable_node("anew-race");
    stage
        .maint(["fence", &node, "--isolated", "--", "true"])
        .succeeds();
    stage.comes_back(&node, "boot-1");
    let hook = PatientHook::new(&stage);
    let running = hook.begins(stage.maint(["unfence", &node]));
    let mut record = stage.record(&node).expect("a record");
    record["who"] = json!("bob@laptop");
    stage.annotate(&node, "kubectl-maint.dev/fenced", &record);
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 6, "{run}");
    assert!(
        run.stderr
            .contains("it was fenced again during this command"),
        "{run}"
    );
    assert!(stage.is_tainted(&node));
    assert_eq!(stage.record(&node), Some(record));
}

/// While the hook of `fence` runs, its hold stays for the same user and for others.
#[test]
fn unfencing_does_not_end_the_hold_of_a_running_fence() {
    let (stage, node) = Stage::with_unreachable_node("at-work");
    let hook = PatientHook::new(&stage);
    let fence = hook.begins(stage.maint(["fence", &node]));
    for person in ["alice@bastion", "bob@laptop"] {
        let unfence = stage.maint(["unfence", &node, "--yes"]);
        let run = unfence.holder(person).run();
        assert_eq!(run.code, 3, "{run}");
        let message = format!(
            "a hook may still be running for node/{node}: sh, started by alice@bastion at "
        );
        assert!(run.stderr.contains(&message), "{run}");
        let holder = stage.holder(&node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    }
    hook.may_end();
    let run = fence.ends();
    assert_eq!(run.code, 0, "{run}");
}

/// Two runs of the same user share the hold, but only one of them runs a hook at a time.
#[test]
fn of_two_runs_of_one_fencer_one_runs_its_hook() {
    let (stage, node) = Stage::with_unreachable_node("twice");
    let ran = stage.directory().join("ran");
    let hook = PatientHook::new(&stage).that(&format!("echo once >> '{}'", ran.display()));
    let first = hook.begins(stage.maint(["fence", &node]));
    let second = stage.maint(["fence", &node, "--", "true"]).run();
    assert_snapshot!(second, @"
    $ kubectl maint fence worker-1 -- true
    -- stderr
    error: a hook may still be running for node/worker-1: sh, started by alice@bastion at [time] (until [time] at the latest)
    hint: wait for it to end; if that run was interrupted, run the command again with --resume=[id] before `--`
    -- exit code 3
    ");
    let dry_run = ["fence", &node, "--dry-run", "--", "true"];
    assert_eq!(stage.maint(dry_run).run().code, 3);
    let unfence = stage.maint(["unfence", &node, "--yes"]).run();
    assert_eq!(unfence.code, 3, "{unfence}");
    hook.may_end();
    let run = first.ends();
    assert_eq!(run.code, 0, "{run}");
    let second = hook.of(stage.maint(["fence", &node])).succeeds();
    assert!(second.stdout.contains("is already fenced"), "{second}");
    assert_eq!(std::fs::read_to_string(ran).expect("it ran"), "once\n");
    assert!(stage.record(&node).expect("a record")["hold"].is_string());
    assert_eq!(stage.hook(&node), None);
}

/// The first run that continues an interrupted one replaces the hook annotation. The others are
/// refused.
#[test]
fn of_those_that_resume_an_interrupted_run_one_runs_its_hook() {
    let (stage, node) = Stage::with_unreachable_node("resumers");
    let killed = stage.maint(["fence", &node]).args(hook_that_kills());
    killed.start().ends_killed();
    let resume = stage.resume(&node);
    let ran = stage.directory().join("ran");
    let hook = PatientHook::new(&stage).that(&format!("echo once >> '{}'", ran.display()));
    let mut runs: Vec<_> = (0..8)
        .map(|_| hook.of(stage.maint(["fence", &node, &resume])).start())
        .collect();
    eventually("seven are refused", || {
        runs.iter_mut()
            .filter_map(|run| run.is_over().then_some(()))
            .count()
            == 7
    });
    hook.may_end();
    let mut codes: Vec<i32> = runs.into_iter().map(|run| run.ends().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 3, 3, 3, 3, 3, 3, 3]);
    assert_eq!(std::fs::read_to_string(ran).expect("it ran"), "once\n");
}

/// Of hooks that begin at the same time, the server accepts one annotation. The other runs are
/// refused and read again.
#[test]
fn of_hooks_that_begin_at_once_one_runs() {
    let (stage, node) = Stage::with_unreachable_node("at-once");
    // Under an existing lock of the same user, nothing else keeps the runs apart.
    stage.maint(["hold", &node, "-m", "dark"]).succeeds();
    let ran = stage.directory().join("ran");
    let hook = PatientHook::new(&stage).that(&format!("echo once >> '{}'", ran.display()));
    let mut runs: Vec<_> = (0..5)
        .map(|_| hook.of(stage.maint(["fence", &node])).start())
        .collect();
    eventually("four see the hook of the fifth", || {
        runs.iter_mut()
            .filter_map(|run| run.is_over().then_some(()))
            .count()
            == 4
    });
    hook.may_end();
    let mut codes: Vec<i32> = runs.into_iter().map(|run| run.ends().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 3, 3, 3, 3]);
    assert_eq!(std::fs::read_to_string(ran).expect("it ran"), "once\n");
}
