//! The return of a fenced node, and what `unfence` leaves unchanged.

use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{LABELLING, PatientHook, Stage, Treatment, eventually};

/// A lock that existed before is used for the fencing, and stays.
#[test]
fn an_existing_lock_is_left_unchanged() {
    let (stage, node) = Stage::with_unreachable_node("found");
    stage.maint(["acquire", &node]).succeeds();
    assert_snapshot!(stage.maint(["fence", &node, "--powered-off=dark"]).run(), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    node/worker-1 fenced by alice@bastion, powered off: dark
    -- stderr
    node/worker-1: nothing is left to evict or detach
    your lock on node/worker-1 ends by itself, and the fenced node is then unlocked; to keep it locked, run `kubectl maint hold worker-1 -m WHY`
    -- exit code 0
    ");
    assert_eq!(stage.record(&node).expect("a record")["hold"], json!(null));
    assert_eq!(stage.holder(&node).as_deref(), Some("alice@bastion"));
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    assert_eq!(stage.holder(&node).as_deref(), Some("alice@bastion"));
    stage.maint(["release", &node]).succeeds();
    stage.is_untouched(&node);
}

/// If a node is not fenced, `unfence` has nothing to undo, even if somebody else has locked the node.
#[test]
fn the_lock_of_somebody_else_does_not_matter_if_the_node_is_not_fenced() {
    let (stage, node) = Stage::with_unreachable_node("not-fenced");
    let acquire = stage.maint(["acquire", &node, "-m", "disk errors"]);
    acquire.holder("bob@laptop").succeeds();
    let run = stage.maint(["unfence", &node]).succeeds();
    assert_eq!(run.stdout, format!("node/{node} is not fenced\n"));
    assert_eq!(stage.holder(&node).as_deref(), Some("bob@laptop"));
}

/// After an isolation, the opposite hook replaces a restart. After a power-off, by a hook or by `--powered-off`, it
/// does not.
#[test]
fn the_opposite_hook_brings_back_what_was_cut_off() {
    let (stage, node) = Stage::with_unreachable_node("undo");
    stage
        .maint(["fence", &node, "--isolated", "--", "true"])
        .succeeds();
    stage.comes_back(&node, "boot-1");
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @r#"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: it is not known to have been restarted since alice@bastion fenced it ([time]), so earlier pods may still be running
    hint: reboot it, or undo its isolation with `kubectl maint unfence worker-1 -- HOOK`; to unfence it anyway, add --accept-risk=boot-id -m WHY
    -- exit code 6
    "#);
    let failing = stage.maint(["unfence", &node, "--", "false"]).run();
    assert_eq!(failing.code, 1, "{failing}");
    assert!(stage.is_tainted(&node));
    assert_snapshot!(stage.maint(["unfence", &node, "--", "echo", "port enabled"]).run(), @r#"
    $ kubectl maint unfence worker-1 -- echo "port enabled"
    node/worker-1 unfenced
    -- stderr
    port enabled
    node/worker-1: fencing hold ended
    -- exit code 0
    "#);
    stage.is_untouched(&node);

    let (stage, node) = Stage::with_unreachable_node("no-undo");
    stage.maint(["fence", &node, "--", "true"]).succeeds();
    assert_snapshot!(stage.maint(["unfence", &node, "--timeout=5s", "--", "true"]).run(), @"
    $ kubectl maint unfence worker-1 --timeout=5s -- true
    -- stderr
    node/worker-1: waiting up to 5s for it to come back
    error: the hook succeeded, but node/worker-1 is still unreachable after 5s: it stays fenced
    hint: when it is back, run `kubectl maint unfence worker-1`
    -- exit code 4
    ");
    // Without a boot ID, it is unknown whether it was restarted.
    for boot_id in ["", "boot-1"] {
        stage.comes_back(&node, boot_id);
        let hook = ["unfence", &node, "--timeout=0", "--", "true"];
        assert_eq!(stage.maint(hook).run().code, 6);
        assert!(stage.is_tainted(&node));
    }
    let insist = [
        "unfence",
        &node,
        "--accept-risk=boot-id",
        "-m",
        "it was in the BIOS",
    ];
    stage.maint(insist).succeeds();
    stage.is_untouched(&node);
}

/// A Node that was deleted and created again is not fenced. If it was created from a copy with the record and the
/// taint, its uid is new, but the machine may be the same. So the boot ID decides.
#[test]
fn a_new_node_with_the_same_name_is_not_fenced() {
    let (stage, node) = Stage::with_unreachable_node("anew");
    for is_copy in [false, true] {
        stage.fence(&node);
        let mut again = stage.node(&node);
        stage.kubectl(&["delete", "node", &node]);
        eventually("its lock goes with it", || stage.lease(&node).is_none());
        // Without this, `doctor` would find the label of a hold that no longer exists.
        let labels = again["metadata"]["labels"].as_object_mut();
        labels.expect("labels").remove("kubectl-maint.dev/held");
        if !is_copy {
            again["metadata"] = json!({"name": node, "labels": again["metadata"]["labels"]});
            again["spec"] = json!({});
        }
        // kubectl does not print managedFields.
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
        ] {
            again["metadata"][field] = json!(null);
        }
        stage.create(&[again]);
        if is_copy {
            let refusal = stage.maint(["unfence", &node]).run();
            assert_eq!(refusal.code, 6, "{refusal}");
            assert!(
                refusal.stderr.contains("it is still unreachable"),
                "{refusal}"
            );
            stage.comes_back(&node, "boot-1");
            let refusal = stage.maint(["unfence", &node]).run();
            assert_eq!(refusal.code, 6, "{refusal}");
            assert!(stage.is_tainted(&node));
            stage.comes_back(&node, "boot-2");
        }
        let run = stage.maint(["unfence", &node]).succeeds();
        let how = if is_copy { "unfenced" } else { "is not fenced" };
        assert_eq!(run.stdout, format!("node/{node} {how}\n"));
        stage.is_untouched(&node);
    }
}

/// To end the hold of another user's fencing, you confirm it.
#[test]
fn somebody_else_may_bring_it_back_after_a_confirmation() {
    let (stage, node) = Stage::with_unreachable_node("theirs");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let unfence = || stage.maint(["unfence", &node]).holder("bob@laptop");
    assert_snapshot!(unfence().run(), @"
    $ kubectl maint unfence worker-1
    -- stderr
    context [context], server [server], user [user]: 1 node
      node/worker-1 was fenced by alice@bastion at [time], powered off: dark
    error: not confirmed: there is no terminal for a prompt
    hint: add --yes to confirm
    -- exit code 6
    ");
    assert!(stage.is_tainted(&node));
    unfence().args(["--yes"]).succeeds();
    stage.is_untouched(&node);
    assert_snapshot!(unfence().run(), @"
    $ kubectl maint unfence worker-1
    node/worker-1 is not fenced
    -- exit code 0
    ");
}

/// What matters is who fenced the node, not who holds its lock now.
#[test]
fn a_fencing_without_its_hold_is_confirmed_too() {
    for (prefix, holder, code) in [
        ("no-hold-mine", "alice@bastion", 0),
        ("no-hold-theirs", "bob@laptop", 6),
    ] {
        let (stage, node) = Stage::with_unreachable_node(prefix);
        stage.fence(&node);
        stage.kubectl(&["delete", "lease", "-n", "kube-node-maintenance", &node]);
        stage.comes_back(&node, "boot-2");
        let unfence = || stage.maint(["unfence", &node]).holder(holder);
        let run = unfence().run();
        assert_eq!(run.code, code, "{run}");
        if code == 6 {
            let who = format!("node/{node} was fenced by alice@bastion ");
            assert!(run.stderr.contains(&who), "{run}");
            assert!(stage.is_tainted(&node));
            unfence().args(["--yes"]).succeeds();
        }
        // The held label stays for `doctor --fix`.
        assert_eq!(stage.holder(&node), None);
        assert_eq!(stage.record(&node), None);
        assert!(!stage.is_tainted(&node));
    }
}

/// If somebody took over the hold to work on the machine, `unfence` does not end it.
#[test]
fn the_hold_of_somebody_who_took_over_stays() {
    let (stage, node) = Stage::with_unreachable_node("board");
    stage.fence(&node);
    let take_over = ["hold", &node, "--take-over", "-m", "board", "--yes"];
    assert_snapshot!(stage.maint(take_over).holder("bob@laptop").run(), @"
    $ kubectl maint hold worker-1 --take-over -m board --yes
    node/worker-1 on hold by bob@laptop, taken over from alice@bastion
    -- stderr
    Warning: node/worker-1 is fenced: it is off or cut off, and stays out of service until you run `kubectl maint unfence worker-1`
    Warning: alice@bastion may still be working on node/worker-1: tell them that their lock has ended
    A hold does not expire, and `kubectl drain` still evicts pods. To end it, unfence first:
      kubectl maint unfence worker-1
      kubectl maint unhold worker-1
    -- exit code 0
    ");
    stage.comes_back(&node, "boot-2");
    let unfence = || stage.maint(["unfence", &node]).holder("bob@laptop");
    assert_eq!(unfence().run().code, 6);
    assert_snapshot!(unfence().args(["--yes"]).run(), @"
    $ kubectl maint unfence worker-1 --yes
    node/worker-1 unfenced
    -- stderr
    your hold on node/worker-1 stays; to end it, run `kubectl maint unhold worker-1`
    -- exit code 0
    ");
    assert_eq!(stage.holder(&node).as_deref(), Some("kubeadm:bob@laptop"));
    stage
        .maint(["unhold", &node])
        .holder("bob@laptop")
        .succeeds();
    stage.is_untouched(&node);
}

/// During the wait after the hook, somebody acquires the lock of the fenced node, or takes over its hold.
#[test]
fn a_node_that_somebody_locked_meanwhile_is_not_unfenced() {
    for (short, is_held, words, has) in [
        ("locked", false, &["acquire"][..], "locked"),
        ("taken", true, &["hold", "--take-over", "--yes"], "on hold"),
    ] {
        let (stage, node) = Stage::with_unreachable_node(&format!("{short}-meanwhile"));
        stage.fence(&node);
        if !is_held {
            stage.frees(&node);
        }
        let unfence = stage.maint(["unfence", &node, "--", "true"]);
        let running = unfence.until_it_says("waiting up to 5m for it to come back");
        let bob = stage.maint(words).args([&node, "-m", "new disk"]);
        bob.holder("bob@laptop").succeeds();
        stage.comes_back(&node, "boot-2");
        let run = running.ends();
        assert_eq!(run.code, 3, "{run}");
        let message =
            format!("cannot unfence node/{node}: {has} by bob@laptop: \"new disk\" (since ");
        assert!(run.stderr.contains(&message), "{run}");
        let stays =
            format!("the hook succeeded, but node/{node} stays fenced; when it is back, run ");
        assert!(run.stderr.contains(&stays), "{run}");
        assert!(stage.is_tainted(&node) && stage.record(&node).is_some());
    }
}

/// A hook that another run started is not ended, even if it began after this run had read the node.
#[test]
fn a_hook_that_began_meanwhile_keeps_the_node_fenced() {
    let (stage, node) = Stage::with_unreachable_node("hook-meanwhile");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(|method, path| {
        match *method == Method::PATCH && path.contains("/nodes/") && !path.contains(LABELLING) {
            true => Treatment::Keep,
            false => Treatment::Pass,
        }
    });
    let slow = stage
        .maint(["unfence", &node])
        .kubeconfig(&proxy.kubeconfig);
    let slow = slow.start();
    let kept = proxy.kept();
    let hook = stage.maint(["unfence", &node, "--", "sh", "-c", "echo begun; sleep 60"]);
    let hook = hook.until_it_says("begun");
    assert_eq!(kept.passes(), 409);
    let run = slow.ends();
    assert_eq!(run.code, 3, "{run}");
    let message = format!("a hook may still be running for node/{node}");
    assert!(run.stderr.contains(&message), "{run}");
    assert!(stage.is_tainted(&node) && stage.hook(&node).is_some());
    hook.is_sent(Signal::INT);
    hook.ends();
}

/// A person set this taint without a record on purpose, so a person has to remove it.
#[test]
fn a_taint_without_a_record_needs_an_accepted_risk() {
    let (stage, node) = Stage::with_unreachable_node("bare");
    let taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    stage.kubectl(&["taint", "node", &node, taint]);
    stage.comes_back(&node, "boot-2");
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: it has no readable record of a fencing, so earlier pods may still be running
    hint: if you know that it was restarted, add --accept-risk=boot-id -m WHY
    -- exit code 6
    ");
    let acquire = stage.maint(["acquire", &node]);
    acquire.holder("bob@laptop").succeeds();
    let insist = [
        "unfence",
        &node,
        "--accept-risk=boot-id",
        "-m",
        "I saw it restart",
    ];
    let run = stage.maint(insist).run();
    assert_eq!(run.code, 3, "{run}");
    stage
        .maint(["release", &node])
        .holder("bob@laptop")
        .succeeds();
    stage.maint(insist).succeeds();
    stage.is_untouched(&node);
}

/// Pods that tolerate the taint stay, and the output names them.
#[test]
fn pods_that_tolerate_the_taint_are_named() {
    let (stage, node) = Stage::with_unreachable_node("stay");
    let mut proxy = stage.pod("proxy", &node);
    proxy["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    stage.create(&[stage.namespace(), proxy]);
    assert_snapshot!(stage.maint(["fence", &node, "--powered-off=dark"]).run(), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    node/worker-1 fenced by alice@bastion, powered off: dark
    -- stderr
    node/worker-1: 1 pod will not be deleted (static, or tolerating the taint): stay/proxy
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    pods that stay on node/worker-1 (static, or tolerating the taint): stay/proxy
    node/worker-1: nothing is left to evict or detach
    -- exit code 0
    ");
    let run = stage
        .maint(["fence", &node, "--powered-off=dark", "-o", "json"])
        .succeeds();
    let outcome = run.item();
    assert_eq!(outcome["kind"], "Fencing");
    assert_eq!(outcome["fenced"], true);
    assert_eq!(outcome["tolerating"], json!(["stay/proxy"]));
    assert_eq!(outcome["fencingRecord"]["fencedBy"], "alice@bastion");
}

/// The hook reinstalls the machine, which registers a new Node. Nothing is recorded about that Node.
#[test]
fn a_node_that_its_hook_replaces_is_not_fenced_any_more() {
    let (stage, node) = Stage::with_unreachable_node("replaced");
    stage.fence(&node);
    let hook = PatientHook::new(&stage);
    let unfence = hook.begins(stage.maint(["unfence", &node]));
    stage.kubectl(&["delete", "node", &node]);
    stage.create(&[json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})]);
    stage.beats(&node);
    hook.may_end();
    let run = unfence.ends();
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.stdout, format!("node/{node} is not fenced\n"));
    eventually("the hold is gone", || stage.holder(&node).is_none());
    stage.is_untouched(&node);
}

/// A heartbeat far in the future does not show that the kubelet is alive now. It would look recent until that time.
#[test]
fn a_clock_that_is_ahead_brings_no_node_back() {
    let (stage, node) = Stage::with_unreachable_node("ahead");
    stage.fence(&node);
    let status = json!({"status": {"nodeInfo": {"bootID": "boot-2"}}});
    stage.patch_status(&node, &status);
    let renew = |minutes: i64| {
        let renewed = chrono::Utc::now() + chrono::TimeDelta::seconds(60 * minutes + 30);
        stage.beats_at(&node, renewed);
    };
    renew(70);
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @"
    $ kubectl maint unfence worker-1
    -- stderr
    node/worker-1: watching its heartbeat for up to 12s: its clock may be wrong
    error: cannot unfence node/worker-1: unknown whether its kubelet is alive: its heartbeat is 70m ahead of the clock
    hint: set the clock of node/worker-1, and check that its kubelet runs
    -- exit code 6
    ");
    assert!(stage.is_tainted(&node));
    // A heartbeat that still changes is a sign of life.
    let unfence = stage.maint(["unfence", &node]);
    let run = unfence.until_it_says("watching its heartbeat for up to 12s");
    renew(71);
    assert_eq!(run.ends().code, 0);
    assert!(!stage.is_tainted(&node));
}
