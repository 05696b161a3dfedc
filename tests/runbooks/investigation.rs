//! `investigate.sh`, which is interactive, and `collect.sh`, which is not.

use insta::assert_snapshot;
use rexpect::reader::Options;
use rexpect::session::spawn_with_options;

use crate::test_machine::{Runbook, TestMachine, kill};

fn investigate(machine: &TestMachine) -> Runbook {
    let runbook = machine.runbook("investigate.sh");
    runbook.arg("disk errors").arg("since noon")
}

fn collect(machine: &TestMachine) -> Runbook {
    let directory = machine.path("evidence").display().to_string();
    machine.runbook("collect.sh").arg(&directory)
}

#[test]
fn the_node_is_locked_while_the_shell_runs() {
    let machine = TestMachine::new("shell");
    let typed = "ssh $MAINT_NODE sudo dmesg\nkubectl maint status $MAINT_NODE -o json\nexit 7\n";
    let run = investigate(&machine).stdin(typed).run();
    assert_eq!(run.code, Some(7), "{run:?}");
    assert!(run.stdout.contains("said by the node"), "{run:?}");
    assert!(run.stdout.contains("disk errors since noon"), "{run:?}");
    assert_eq!(machine.status(), "Free Ready");
    assert_snapshot!(machine.steps(), @"
    kubectl maint with NODE -m disk errors since noon -- bash
    ssh NODE sudo dmesg
    kubectl maint status NODE -o json
    ");
}

#[test]
fn ctrl_c_ends_only_the_command_of_the_shell() {
    let machine = TestMachine::new("shell-terminal");
    let runbook = investigate(&machine).env("STOP_AT", "ssh sudo dmesg");
    let options = Options::new().timeout_ms(Some(60_000));
    let mut shell = spawn_with_options(runbook.command(), options).expect("a terminal");
    shell.process_mut().set_kill_timeout(Some(200));
    for (typed, shown) in [
        (
            "echo $MAINT_NODE is lo''cked",
            "node-shell-terminal is locked",
        ),
        ("ssh $MAINT_NODE sudo dmesg", "stopped: "),
    ] {
        shell.send_line(typed).expect("somebody reads");
        shell.exp_string(shown).expect("it is shown");
    }
    shell.send_control('c').expect("somebody reads");
    shell
        .send_line("echo it goes o''n")
        .expect("somebody reads");
    shell.exp_string("it goes on").expect("it is shown");
    assert_eq!(machine.status(), "Locked Ready");
    shell.send_line("exit").expect("somebody reads");
    shell.exp_string("released").expect("it is shown");
    shell.exp_eof().expect("all has ended");
    assert_eq!(machine.status(), "Free Ready");
}

#[test]
fn a_shell_that_is_killed_releases_the_node() {
    let machine = TestMachine::new("shell-killed");
    let typed = "ssh $MAINT_NODE sudo dmesg\n";
    let (running, ssh) = investigate(&machine)
        .stdin(typed)
        .stops_at("ssh sudo dmesg");
    assert_eq!(machine.status(), "Locked Ready");
    kill(ssh.caller);
    let run = running.ends();
    assert_eq!(run.code, Some(137), "{run:?}");
    assert_eq!(machine.status(), "Free Ready");
    investigate(&machine).stdin(typed).succeeds();
}

#[test]
fn an_investigation_needs_a_reason() {
    let machine = TestMachine::new("shell-why");
    let run = machine.runbook("investigate.sh").run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stderr.contains("usage: investigate.sh NODE WHY"),
        "{run:?}"
    );
    assert_eq!(machine.steps(), "");
}

#[test]
fn evidence_is_collected_on_hold() {
    let machine = TestMachine::new("collect");
    collect(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
    assert_eq!(machine.read("evidence/journal.txt"), "said by the node\n");
    assert!(machine.read("evidence/node.txt").contains("boot-1"));
    assert_snapshot!(machine.steps(), @"
    kubectl maint hold NODE -m evidence is being collected --expect-until 1h
    kubectl describe node NODE
    ssh -n -o BatchMode=yes -o ConnectTimeout=10 NODE sudo dmesg
    ssh -n -o BatchMode=yes -o ConnectTimeout=10 NODE sudo journalctl --no-pager --since -2h
    kubectl maint unhold NODE
    ");
}

#[test]
fn a_node_with_evidence_missing_stays_on_hold() {
    let machine = TestMachine::new("collect-killed");
    let (running, ssh) = collect(&machine).stops_at("ssh sudo journalctl");
    kill(ssh.program);
    let run = running.ends();
    assert_eq!(run.code, Some(137), "{run:?}");
    assert!(run.stderr.contains("stays on hold"), "{run:?}");
    assert_eq!(machine.status(), "OnHold Ready");

    // The hold also stays if the script itself is killed.
    let (running, ssh) = collect(&machine).stops_at("ssh sudo journalctl");
    kill(running.pid());
    kill(ssh.program);
    assert_eq!(running.ends().code, None);
    assert_eq!(machine.status(), "OnHold Ready");

    collect(&machine).succeeds();
    assert_eq!(machine.status(), "Free Ready");
}

#[test]
fn nothing_is_collected_while_somebody_holds_the_lock() {
    let machine = TestMachine::new("collect-held");
    let acquired = machine.maint("bob", &["acquire", &machine.node]);
    assert_eq!(acquired.code, Some(0), "{acquired:?}");
    let run = collect(&machine).run();
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(!machine.path("evidence").exists());
}
