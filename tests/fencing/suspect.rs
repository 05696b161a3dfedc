//! Nodes that are fenced on suspicion (`--suspect`): they still report, and nothing is recorded before they have
//! stopped.

use http::Method;
use insta::assert_snapshot;
use nix::sys::wait::WaitStatus;
use rexpect::session::spawn_command;
use serde_json::json;

use crate::support::{LABELLING, Maint, PatientHook, Stage, Treatment};

/// How long a test waits for a prompt or for the end of a run, in milliseconds.
const LIMIT: u64 = 60_000;

/// A healthy node whose heartbeat is valid for 3 s.
fn reporting(prefix: &str) -> (Stage, String) {
    let (stage, _) = Stage::with_unreachable_node(prefix);
    let node = stage.name("worker-2");
    heartbeat_lasts(&stage, &node, 3);
    (stage, node)
}

/// Sets how long the heartbeat of the node is valid, in seconds.
fn heartbeat_lasts(stage: &Stage, node: &str, seconds: u32) {
    stage.patch_heartbeat(node, &json!({"leaseDurationSeconds": seconds}));
}

/// If the node were recorded earlier, its kubelet and the control plane would disagree about its pods.
#[test]
fn a_suspect_is_recorded_and_tainted_only_after_it_has_stopped_reporting() {
    let (stage, node) = reporting("suspect");
    let suspect = || stage.maint(["fence", &node, "--suspect", "--yes"]);
    let alive = stage.maint(["fence", &node, "--", "true"]).run();
    assert_eq!(alive.code, 6, "{alive}");
    assert!(
        alive
            .stderr
            .contains("if it hangs although it reports, fence it with `kubectl maint fence "),
        "{alive}"
    );
    let hook = PatientHook::new(&stage);
    let mut running = hook.begins(suspect());
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    hook.may_end();
    running.says("waiting up to 5m for it to stop reporting");
    assert_eq!((stage.record(&node), stage.taint(&node)), (None, None));
    stage.stops_heartbeats(&node);
    let run = running.ends();
    assert_snapshot!(run.stderr, @"
    lease/suspect-worker-2 created
    node/suspect-worker-2 on hold until it is unfenced
    node/suspect-worker-2 labeled and cordoned until the hold ends
    begun
    node/suspect-worker-2: waiting up to 5m for it to stop reporting; it is fenced only after that
    node/suspect-worker-2: nothing is left to evict or detach
    ");
    assert_eq!(run.code, 0, "{run}");
    assert!(stage.is_tainted(&node));
    let record = stage.record(&node).expect("a record");
    assert_eq!(record["how"]["hook"]["program"], "sh");
    assert_eq!(stage.hook(&node), None);
}

/// The hook succeeded, but the node is still on.
#[test]
fn a_suspect_that_goes_on_reporting_is_never_tainted() {
    let (stage, node) = reporting("suspect-beats");
    let suspect = [
        "fence",
        &node,
        "--suspect",
        "--yes",
        "--timeout=10s",
        "--",
        "true",
    ];
    assert_snapshot!(stage.maint(suspect).run(), @"
    $ kubectl maint fence worker-2 --suspect --yes --timeout=10s -- true
    -- stderr
    lease/worker-2 created
    node/worker-2 on hold until it is unfenced
    node/worker-2 labeled and cordoned until the hold ends
    node/worker-2: waiting up to 10s for it to stop reporting; it is fenced only after that
    error: node/worker-2 was not fenced: after 10s, nothing shows that it has stopped reporting, so it may not be off
    hint: it stays on hold; check the machine, then run the command again with a --timeout of more than a minute; or end the hold with `kubectl maint unfence worker-2`
    -- exit code 4
    ");
    assert_eq!((stage.record(&node), stage.taint(&node)), (None, None));
    assert_eq!(stage.hook(&node), None);
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    stage.maint(["unfence", &node, "--yes"]).succeeds();
    stage.is_untouched(&node);
    // `--powered-off` is no proof for a node that still reports.
    let word = ["fence", &node, "--suspect", "--yes", "--powered-off=dark"];
    let run = stage.maint(word).run();
    assert_eq!(run.code, 2, "{run}");
    assert_eq!((stage.record(&node), stage.taint(&node)), (None, None));
}

/// Its heartbeat is old, and Kubernetes reports it unreachable. A running kubelet with a wrong clock looks the same, so
/// the command has to watch the heartbeat for some time.
#[test]
fn a_suspect_that_looks_unreachable_is_watched_for_one_lease_duration() {
    let (stage, node) = Stage::with_unreachable_node("suspect-still");
    let suspect = |limit| {
        let suspect = ["fence", &node, "--suspect", "--yes", limit, "--", "true"];
        stage.maint(suspect).run()
    };
    heartbeat_lasts(&stage, &node, 60);
    let run = suspect("--timeout=5s");
    assert_eq!(run.code, 4, "{run}");
    assert_eq!((stage.record(&node), stage.taint(&node)), (None, None));
    heartbeat_lasts(&stage, &node, 2);
    let run = suspect("--timeout=1m");
    assert_eq!(run.code, 0, "{run}");
    assert!(stage.is_tainted(&node));
}

/// The node was Ready when the hook began, so pods may still be bound to it.
#[test]
fn a_pod_that_nothing_recreates_and_that_comes_during_the_hook_is_not_lost_silently() {
    let (stage, node) = reporting("suspect-late-pod");
    stage.create(&[stage.namespace()]);
    let hook = PatientHook::new(&stage);
    let running = hook.begins(stage.maint(["fence", &node, "--suspect", "--yes"]));
    assert_eq!(stage.node(&node)["spec"]["unschedulable"], true);
    stage.create(&[stage.pod("tool", &node)]);
    stage.stops_heartbeats(&node);
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 6, "{run}");
    let pod = format!("{}/tool", stage.own());
    let told = format!(
        "node/{node}: 1 pod will be deleted and not recreated: {pod}\n\
         Warning: the hook succeeded, but node/{node} is not fenced: it stays on hold; to end the hold, run `kubectl maint unfence {node}`\n\
         Warning: the hook succeeded, but this was not recorded: node/{node} should be off now\n\
         error: cannot fence node/{node}: nothing recreates 1 pod ({pod})\n\
         hint: to fence it anyway, add --accept-risk=no-owner -m WHY before `--`\n"
    );
    assert!(run.stderr.ends_with(&told), "{run}");
    assert_eq!((stage.record(&node), stage.taint(&node)), (None, None));
    assert_eq!(stage.hook(&node), None);
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    let accepted = [
        "--suspect",
        "--yes",
        "--accept-risk=no-owner",
        "-m",
        "it can go",
    ];
    stage
        .maint(["fence", &node])
        .args(accepted)
        .args(["--", "true"])
        .succeeds();
    assert!(stage.find_pod("tool").is_none());
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    assert!(stage.node(&node)["spec"]["unschedulable"].is_null());
}

/// New pods would be scheduled to it while it is powered off.
#[test]
fn a_suspect_that_cannot_be_cordoned_is_not_powered_off() {
    let (stage, node) = reporting("suspect-schedulable");
    let proxy =
        stage.proxy(
            |method, path| match *method == Method::PATCH && path.contains(LABELLING) {
                true => Treatment::Answer(403, None),
                false => Treatment::Pass,
            },
        );
    let ran = stage.directory().join("ran");
    let suspect = stage.maint(["fence", &node, "--suspect", "--yes", "--", "touch"]);
    let suspect = suspect.arg(ran.to_str().expect("a path"));
    let run = suspect.kubeconfig(&proxy.kubeconfig).run();
    assert_eq!(run.code, 1, "{run}");
    assert_snapshot!(run.stderr, @"
    lease/suspect-schedulable-worker-2 created
    node/suspect-schedulable-worker-2 on hold until it is unfenced
    error: node/suspect-schedulable-worker-2 is on hold without the held label and not cordoned: Error from server (Forbidden): the proxy says so
    node/suspect-schedulable-worker-2: fencing hold ended
    error: node/suspect-schedulable-worker-2 was not fenced: it could not be cordoned, so the hook was not run
    hint: solve the problem above, then run the command again
    ");
    assert!(!ran.exists(), "{run}");
    stage.is_untouched(&node);
}

#[test]
fn a_suspect_is_left_alone_unless_it_is_confirmed() {
    let (stage, node) = reporting("suspect-asked");
    let ran = stage.directory().join("ran");
    let hook = ["--", "touch", ran.to_str().expect("a path")];
    let suspect = || {
        stage
            .maint(["fence", &node, "--suspect", "--timeout=0"])
            .args(hook)
    };
    let run = suspect().run();
    assert_eq!(run.code, 6, "{run}");
    let fact = format!("  node/{node} still reports to Kubernetes: its pods may still be running");
    let next = "  It will be put on hold and cordoned, and then touch will run on this machine.";
    for words in [
        &*fact,
        next,
        "error: not confirmed",
        "hint: add --yes before `--` to confirm",
    ] {
        assert!(run.stderr.contains(words), "{run}");
    }
    stage.is_untouched(&node);
    for (answer, code) in [("yes", 6), (&*node, 4)] {
        let said = answers(suspect(), answer, code);
        assert_eq!(ran.exists(), code == 4, "{said}");
    }
}

/// Runs `fence` on a terminal and answers its question for the name of the node. Returns the output, and expects this
/// exit code.
#[track_caller]
fn answers(fence: Maint, answer: &str, code: i32) -> String {
    let command = fence.env("TERM", "xterm").command();
    let mut terminal = spawn_command(command, Some(LIMIT)).expect("a terminal");
    terminal.exp_string("type its name").expect("a question");
    terminal.send(&format!("{answer}\r")).expect("it listens");
    terminal.flush().expect("it listens");
    let said = terminal.exp_eof().expect("it ends");
    let ended = terminal.process().wait().expect("it ended");
    assert!(
        matches!(ended, WaitStatus::Exited(_, it) if it == code),
        "{ended:?}: {said}"
    );
    said
}
