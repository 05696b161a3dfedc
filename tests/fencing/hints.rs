//! The commands that other commands name while a node is fenced work when they are pasted.

use serde_json::json;

use crate::support::{Stage, hook_that_kills};

/// The command in this line of `describe`, without its hook.
fn next(stage: &Stage, node: &str, what: &str) -> Vec<String> {
    let run = stage.maint(["describe", node]).succeeds();
    let mut lines = run.stdout.lines();
    let line = lines.find_map(|line| line.trim_start().strip_prefix(what));
    let line = line.unwrap_or_else(|| panic!("nothing for {what}: {run}"));
    let (_, command) = line.split_once("kubectl maint ").expect("a command");
    let command = command.strip_suffix(" -- HOOK").unwrap_or(command);
    command.split(' ').map(ToOwned::to_owned).collect()
}

#[test]
fn describe_continues_or_undoes_a_fencing_that_was_killed_in_its_hook() {
    let (stage, node) = Stage::with_unreachable_node("next-fence");
    for (what, hook, holder) in [
        ("undo it:", &["--yes"][..], None),
        ("finish it:", &["--", "true"], Some("kubeadm:alice@bastion")),
    ] {
        let fence = stage.maint(["fence", &node]).args(hook_that_kills());
        fence.start().ends_killed();
        let next = next(&stage, &node, &format!("If `fence` no longer runs, {what}"));
        stage.maint(next).args(hook).succeeds();
        assert_eq!(stage.holder(&node).as_deref(), holder);
        assert_eq!(stage.hook(&node), None);
    }
    assert!(stage.is_tainted(&node));
}

#[test]
fn describe_continues_an_unfencing_that_was_killed_in_its_hook() {
    let (stage, node) = Stage::with_unreachable_node("next-unfence");
    stage.fence(&node);
    let unfence = stage.maint(["unfence", &node]).args(hook_that_kills());
    unfence.start().ends_killed();
    for boot_id in ["boot-1", "boot-2"] {
        stage.comes_back(&node, boot_id);
        let next = next(&stage, &node, "If `unfence` no longer runs, finish it:");
        let run = stage.maint(next).run();
        let code = if boot_id == "boot-1" { 6 } else { 0 };
        assert_eq!(run.code, code, "{run}");
    }
    stage.is_untouched(&node);
}

#[test]
fn an_annotation_that_cannot_be_read_is_a_hook_too() {
    let (stage, node) = Stage::with_unreachable_node("next-unread");
    let annotation = json!({"version": 2});
    stage.annotate(&node, "kubectl-maint.dev/hook", &annotation);
    let next = next(&stage, &node, "If `fence` no longer runs, finish it:");
    assert_eq!(next, ["fence", &node, "--resume=unreadable"]);
    stage.maint(next).args(["--", "true"]).succeeds();
    assert!(stage.is_tainted(&node));
}

/// Somebody removed record and taint by hand. The Lease still says that the node is fenced, so its lock can't be ended.
#[test]
fn a_lease_that_still_says_fenced_is_corrected_by_the_hint() {
    for (prefix, lock, end) in [
        ("stale-lock", &["acquire"][..], "release"),
        ("stale-hold", &["hold", "--cordon", "-m", "disk"], "unhold"),
        ("stale-protected", &["acquire", "--cordon"], "release"),
        ("stale-fencing", &[], "unhold"),
    ] {
        let (stage, node) = Stage::with_unreachable_node(prefix);
        if !lock.is_empty() {
            stage.maint(lock).arg(&node).succeeds();
        }
        stage.fence(&node);
        stage.patch_node(
            &node,
            &json!({
                "metadata": {"annotations": {"kubectl-maint.dev/fenced": null}},
                "spec": {"taints": null},
            }),
        );
        let is_cordoned = || stage.node(&node)["spec"]["unschedulable"] == true;
        let was_cordoned = is_cordoned();
        assert_eq!(was_cordoned, lock.contains(&"--cordon"));
        let refused = stage.maint([end, &node]).run();
        assert_eq!(refused.code, 6, "{refused}");
        let hint = refused.next_command();
        assert_eq!(hint, ["unfence", &node], "{refused}");
        let is_of_fencing = lock.is_empty();
        let run = stage
            .maint(hint)
            .args(is_of_fencing.then_some("--yes"))
            .run();
        assert_eq!(
            (run.code, &*run.stdout),
            (0, &*format!("node/{node} is not fenced\n")),
            "{run}"
        );
        if !is_of_fencing {
            // Only the mark is gone: the lock is not that of the fencing.
            assert!(stage.holder(&node).is_some(), "{run}");
            assert_eq!(is_cordoned(), was_cordoned, "{run}");
            assert!(
                !stage
                    .maint([end, &node])
                    .succeeds()
                    .stderr
                    .contains("fenced")
            );
        }
        stage.is_untouched(&node);
        assert!(!is_cordoned());
        let lease = stage.lease(&node).expect("a Lease");
        assert_eq!(
            lease["metadata"]["annotations"]["kubectl-maint.dev/fenced"],
            json!(null)
        );
    }
}
