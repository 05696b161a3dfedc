//! `fence` and `unfence` are killed after each of their steps, and run again.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{KILLS, Stage, hook_that_kills};

/// After a crash, the hook of the killed run may still be running. The next run is refused until the hook's time limit
/// has passed, unless `--resume` says that the hook has ended.
#[test]
fn after_a_crash_in_the_hook_resume_continues_under_the_same_hold() {
    let (stage, node) = Stage::with_unreachable_node("held-crash");
    let fence = || stage.maint(["fence", &node]);
    fence().args(hook_that_kills()).start().ends_killed();
    assert_eq!(stage.record(&node), None);
    assert!(!stage.is_tainted(&node));
    let holder = || stage.holder(&node);
    assert_eq!(holder().as_deref(), Some("kubeadm:alice@bastion"));
    assert!(stage.hook(&node).is_some());

    let run = fence().args(["--", "echo", "off"]).run();
    assert_eq!(run.code, 3, "{run}");
    assert_eq!(holder().as_deref(), Some("kubeadm:alice@bastion"));
    let resume = stage.resume(&node);
    assert_snapshot!(fence().args([&resume, "--", "sh", "-c", "exit 7"]).run(), @r#"
    $ kubectl maint fence worker-1 --resume=[id] -- sh -c "exit 7"
    -- stderr
    Warning: node/worker-1 stays on hold: an earlier `fence` command was interrupted, and the result of its hook is unknown; when the node is healthy, run `kubectl maint unfence worker-1`
    error: node/worker-1 was not fenced: the hook failed with exit code 7
    hint: check the machine of node/worker-1: the hook may have changed it; it printed nothing
    -- exit code 1
    "#);
    assert_eq!(holder().as_deref(), Some("kubeadm:alice@bastion"));
    assert_eq!(stage.hook(&node), None);

    fence().args(hook_that_kills()).start().ends_killed();
    // Another hook has been recorded since, so this id is outdated.
    let outdated = fence().args([&resume, "--", "echo", "off"]).run();
    assert_eq!(outdated.code, 3, "{outdated}");
    let resume = stage.resume(&node);
    assert_snapshot!(fence().args([&resume, "--", "echo", "off"]).run(), @"
    $ kubectl maint fence worker-1 --resume=[id] -- echo off
    node/worker-1 fenced by alice@bastion, with echo
    -- stderr
    off
    node/worker-1: nothing is left to evict or detach
    -- exit code 0
    ");
    assert!(stage.is_tainted(&node));
    assert_eq!(stage.hook(&node), None);
    stage.comes_back(&node, "boot-2");
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @"
    $ kubectl maint unfence worker-1
    node/worker-1 unfenced
    -- stderr
    node/worker-1: fencing hold ended
    -- exit code 0
    ");
    stage.is_untouched(&node);
}

/// To unfence a node that was not fenced yet, you confirm that the hook has ended and that the hold may end.
#[test]
fn after_a_crash_in_the_hook_somebody_else_ends_the_hold_after_a_confirmation() {
    let (stage, node) = Stage::with_unreachable_node("given-up");
    let fence = stage.maint(["fence", &node]).args(hook_that_kills());
    fence.start().ends_killed();
    let unfence = |more: &[&str]| {
        let unfence = stage.maint(["unfence", &node]).args(more);
        unfence.holder("bob@laptop").run()
    };
    assert_eq!(unfence(&["--yes"]).code, 3);
    let resume = stage.resume(&node);
    let undo = "If `fence` no longer runs, undo it:    kubectl maint unfence";
    let next = format!("{undo} {node} {resume}\n");
    for holder in ["alice@bastion", "bob@laptop"] {
        let run = stage.maint(["describe", &node]).holder(holder).succeeds();
        assert!(run.stdout.contains(&next), "{run}");
        assert!(!run.stdout.contains(" unhold "), "{run}");
    }
    assert_snapshot!(unfence(&[&resume]), @r#"
    $ kubectl maint unfence worker-1 --resume=[id]
    -- stderr
    context [context], server [server], user [user]: 1 node
      node/worker-1 is not fenced, but on hold by alice@bastion: "fencing: with sh" (since [time]); a `fence` command is running or was interrupted
      Answer yes only if no `fence` command is running for this node.
    error: not confirmed: there is no terminal for a prompt
    hint: add --yes to confirm
    -- exit code 6
    "#);
    assert!(stage.holder(&node).is_some() && stage.hook(&node).is_some());
    assert_snapshot!(unfence(&[&resume, "--yes"]), @"
    $ kubectl maint unfence worker-1 --resume=[id] --yes
    node/worker-1 is not fenced
    -- stderr
    node/worker-1: fencing hold ended
    -- exit code 0
    ");
    stage.is_untouched(&node);
}

#[test]
fn after_a_crash_in_the_hook_it_continues_after_the_time_limit() {
    let (stage, node) = Stage::with_unreachable_node("late-crash");
    let fence = || stage.maint(["fence", &node]);
    fence().args(hook_that_kills()).start().ends_killed();
    let mut hook = stage.hook(&node).expect("it was announced");
    assert_eq!(hook["who"], "alice@bastion");
    assert_eq!(hook["program"], "sh");
    let time = |name: &str| {
        let time = hook[name].as_str().expect("a time");
        chrono::DateTime::parse_from_rfc3339(time).expect("a time")
    };
    let length = time("until") - time("since");
    // The time limit of the hook, its grace period, and the allowed difference between clocks.
    assert_eq!(length.num_seconds(), 300 + 10 + 4);
    let run = fence().args(["--", "echo", "off"]).run();
    assert_eq!(run.code, 3, "{run}");
    hook["until"] = hook["since"].clone();
    stage.annotate(&node, "kubectl-maint.dev/hook", &hook);
    fence().args(["--", "echo", "off"]).succeeds();
    assert!(stage.is_tainted(&node));
    assert_eq!(stage.hook(&node), None);
}

/// The hook succeeded, but the command was killed before it recorded that. The next run repeats the hook.
#[test]
fn after_a_crash_between_hook_and_record_the_hook_is_run_again() {
    let (stage, node) = Stage::with_unreachable_node("unrecorded");
    let ran = stage.directory().join("ran");
    let powers_off = format!("echo off >> '{}'", ran.display());
    let script = format!("{powers_off}; {KILLS}");
    let fence = || stage.maint(["fence", &node]);
    let killed = fence().args(["--", "sh", "-c", &script]).start();
    killed.ends_killed();
    assert_eq!(stage.record(&node), None);
    let again = [&*stage.resume(&node), "--", "sh", "-c", &powers_off];
    fence().args(again).succeeds();
    assert!(stage.record(&node).is_some() && stage.is_tainted(&node));
    assert_eq!(std::fs::read_to_string(&ran).expect("it ran"), "off\noff\n");
    fence().args(again).succeeds();
    assert_eq!(std::fs::read_to_string(&ran).expect("it ran"), "off\noff\n");
}

#[test]
fn after_a_crash_after_the_record_it_continues_without_a_hook() {
    let (stage, node) = Stage::with_unreachable_node("message-crash");
    stage.create_pod_that_stays(&node);
    let running = stage
        .maint(["fence", &node, "--powered-off=dark"])
        .args(["--accept-risk=no-owner", "-m", "it can go"])
        .until_it_says("waiting for 1 pod");
    running.is_sent(Signal::KILL);
    running.ends_killed();
    let record = stage.record(&node);
    assert!(record.is_some() && stage.is_tainted(&node));

    let ran = stage.directory().join("ran");
    let hook = ["--", "touch", ran.to_str().expect("a path")];
    let again = || stage.maint(["fence", &node, "--timeout=0"]);
    let run = again().args(hook).run();
    assert_eq!(run.code, 4, "{run}");
    assert!(
        run.stdout.contains("is already fenced by alice@bastion"),
        "{run}"
    );
    assert!(
        run.stderr
            .contains("but not empty: 1 pod (message-crash/stays)"),
        "{run}"
    );
    let hint = format!(
        "hint: to wait, run the command again without --timeout=0 (the hook does not run again); see what is left with `kubectl maint status --pods {node}`\n"
    );
    assert!(run.stderr.ends_with(&hint), "{run}");
    let run = again().args(["-o", "json"]).args(hook).run();
    assert_eq!(run.code, 4, "{run}");
    let outcome = run.item();
    assert_eq!(outcome["fenced"], true);
    assert_eq!(outcome["error"]["code"], "TimedOut");
    let left =
        json!({"pods": ["message-crash/stays"], "heldByFinalizers": ["message-crash/stays"]});
    assert_eq!(outcome["left"], left);
    assert!(!ran.exists());
    assert_eq!(stage.record(&node), record);

    let none = json!({"metadata": {"finalizers": null}}).to_string();
    let pod = [
        "patch",
        "pod",
        "stays",
        "-n",
        stage.own(),
        "--type=merge",
        "-p",
        &none,
    ];
    stage.kubectl(&pod);
    stage
        .maint(["fence", &node, "--powered-off=dark"])
        .succeeds();
}

#[test]
fn an_unfencing_goes_on_after_a_crash_in_its_hook_and_before_the_end_of_the_hold() {
    let (stage, node) = Stage::with_unreachable_node("back-crash");
    stage.maint(["fence", &node, "--", "true"]).succeeds();
    let unfence = stage.maint(["unfence", &node]).args(hook_that_kills());
    unfence.start().ends_killed();
    assert!(stage.record(&node).is_some() && stage.is_tainted(&node));
    assert!(stage.holder(&node).is_some());

    let run = stage.maint(["unfence", &node, "--", "true"]).run();
    assert_eq!(run.code, 3, "{run}");
    assert!(stage.record(&node).is_some() && stage.is_tainted(&node));

    // The state that a run leaves if it ends between its two writes.
    stage.patch_node(
        &node,
        &json!({
            "metadata": {"annotations": {
                "kubectl-maint.dev/fenced": null, "kubectl-maint.dev/hook": null,
            }},
            "spec": {"taints": null},
        }),
    );
    assert_eq!(stage.maint(["unfence", &node]).run().code, 6);
    assert_snapshot!(stage.maint(["unfence", &node, "--yes"]).run(), @"
    $ kubectl maint unfence worker-1 --yes
    node/worker-1 is not fenced
    -- stderr
    node/worker-1: fencing hold ended
    -- exit code 0
    ");
    stage.is_untouched(&node);
}
