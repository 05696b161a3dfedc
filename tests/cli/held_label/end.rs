//! The label at the end of its lock, if a write of the end is refused, changed or not answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{is_clean, is_label, is_lease_write, is_node_write, keys};
use crate::support::{Treatment, holder_of, in_memory, on_both, on_one};

/// The lock and its cordon end nevertheless.
#[test]
fn a_label_that_cannot_be_removed_does_not_keep_its_lock() {
    on_one("label-kept", |cluster| {
        let node = cluster.node("worker-1");
        let is_cordoned = || {
            let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
            seen["spec"]["unschedulable"] == json!(true)
        };
        let writes = Arc::new(AtomicUsize::new(0));
        let release = |treatment, edit: Value| {
            cluster.maint(["acquire", &node, "--cordon"]).succeeds();
            cluster.patch(&format!("/api/v1/nodes/{node}"), &edit);
            assert!(is_cordoned());
            let counted = Arc::clone(&writes);
            let proxy = cluster.proxy_for(treatment, move |method, path| {
                counted.fetch_add(usize::from(is_label(method, path)), Ordering::Relaxed);
                is_label(method, path)
            });
            let release = cluster.maint(["release", &node]);
            let run = release.kubeconfig(&proxy.kubeconfig).succeeds();
            assert!(!is_cordoned(), "{run}");
            assert_eq!(holder_of(cluster, &node), None, "{run}");
            run
        };
        let note = "/metadata/annotations/kubectl-maint.dev~1held-reason";
        assert_snapshot!(release(Treatment::With(note, "disk"), json!({})), @"
        $ kubectl maint release worker-1
        node/worker-1 released
        -- stderr
        Warning: node/worker-1 still has a label, an annotation or a cordon of the lock: the API server changed what was written (an admission webhook may have done this)
        hint: check `kubectl get mutatingwebhookconfigurations`; then, to remove what is left: `kubectl maint unhold worker-1`
        -- exit code 0
        ");
        assert_eq!(writes.swap(0, Ordering::Relaxed), 1);

        // A label that another field manager owns is removed by a separate write.
        let edit = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "edited"}}});
        let run = release(Treatment::Without("/metadata/labels"), edit);
        let stays = format!(
            "Warning: node/{node} still has a label, an annotation or a cordon of the lock: "
        );
        assert!(run.stderr.contains(&stays), "{run}");
        assert!(writes.load(Ordering::Relaxed) <= 2);
    });
}

/// The commands that begin a lock which labels and cordons its Node, and end it: by the holder and by somebody else.
const ENDS: [(&[&str], &[&str], &str); 5] = [
    (LOCK, &["release"], "alice@bastion"),
    (LOCK, &["release", "--force", "-y", "-m", "x"], "bob@laptop"),
    (HOLD, &["unhold"], "alice@bastion"),
    (HOLD, &["unhold", "-y"], "bob@laptop"),
    (HOLD, &["release"], "alice@bastion"),
];

const LOCK: &[&str] = &["acquire", "--cordon", "--opt-outs=cluster-autoscaler"];

const HOLD: &[&str] = &["hold", "--cordon", "-m", "disk"];

const BY_WEBHOOK: &str = r#"admission webhook "guard.example.com" denied the request: ask me"#;

const NO_WEBHOOK: &str = "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: \
                          Post \"https://10.0.0.1:443/\": dial tcp 10.0.0.1:443: connect: connection refused";

#[test]
fn a_lock_whose_end_is_refused_keeps_what_it_set() {
    on_both("label-end-refused", |cluster| {
        let node = cluster.node("worker-1");
        for refusal in [(403, "not you"), (400, BY_WEBHOOK)] {
            let (code, message) = refusal;
            let refuses = cluster.proxy_for(Treatment::Refuse(code, message), is_lease_write);
            for (lock, end, holder) in ENDS {
                cluster.maint(lock).arg(&node).succeeds();
                let before = cluster.lease_of(&node);
                let ending = cluster.maint(end).arg(&node).holder(holder);
                let run = ending.kubeconfig(&refuses.kubeconfig).run();
                assert_eq!((run.code, &run.stdout[..]), (1, ""), "{run}");
                assert!(run.stderr.contains(message), "{run}");
                assert!(!run.stderr.contains("uncordoned"), "{run}");
                assert_eq!(cluster.lease_of(&node), before, "{run}");
                assert_eq!(keys(cluster, &node), (true, true), "{run}");
                let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
                assert_eq!(seen["spec"]["unschedulable"], true, "{run}");
                let ended = &seen["metadata"]["annotations"]["kubectl-maint.dev/breaks"];
                let lock_id = &seen["metadata"]["annotations"]["kubectl-maint.dev/held-lock-id"];
                assert_ne!(ended, lock_id, "{run}");
                if (code, end[0]) == (403, "release") && end.len() > 1 {
                    assert_snapshot!(run, @"
                    $ kubectl maint release --force -y -m x worker-1
                    -- stderr
                    Error from server (Forbidden): not you
                    hint: ask an administrator for permission to patch leases.coordination.k8s.io in namespace kube-node-maintenance; `kubectl maint install` creates the roles (deploy/rbac.yaml)
                    -- exit code 1
                    ");
                }
                let run = cluster.maint(end).arg(&node).holder(holder).succeeds();
                assert!(is_clean(cluster, &node), "{run}");
            }
        }
    });
}

/// A dry run never takes effect, so nothing is unknown.
#[test]
fn a_lock_whose_end_gets_no_answer_keeps_what_it_set() {
    in_memory("label-end-unanswered", |cluster| {
        let node = cluster.node("worker-1");
        let refuses = cluster.proxy_for(Treatment::Refuse(500, NO_WEBHOOK), is_lease_write);
        cluster.maint(LOCK).arg(&node).succeeds();
        let release = cluster.maint(["release", &node, "--request-timeout=1s"]);
        let run = release.kubeconfig(&refuses.kubeconfig).run();
        assert_snapshot!(run, @r#"
        $ kubectl maint release worker-1 --request-timeout=1s
        -- stderr
        Error from server (InternalServerError): Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://10.0.0.1:443/": dial tcp 10.0.0.1:443: connect: connection refused
        -- exit code 1
        "#);
        assert!(holder_of(cluster, &node).is_some());
        assert_eq!(keys(cluster, &node), (true, true));
    });
}

#[test]
fn a_webhook_without_dry_runs_does_not_keep_a_lock() {
    on_one("label-end-unchecked", |cluster| {
        let node = cluster.node("worker-1");
        let message = r#"admission webhook "guard.example.com" does not support dry run"#;
        let refuses = cluster.proxy_for(Treatment::Refuse(400, message), |method, path| {
            is_lease_write(method, path) && path.contains("dryRun=All")
        });
        for (lock, end, holder) in ENDS {
            cluster.maint(lock).arg(&node).succeeds();
            let ending = cluster.maint(end).arg(&node).holder(holder);
            let run = ending.kubeconfig(&refuses.kubeconfig).succeeds();
            assert!(is_clean(cluster, &node), "{run}");
            assert_eq!(holder_of(cluster, &node), None, "{run}");
        }
    });
}

#[test]
fn a_lock_ends_if_the_write_to_its_node_is_refused() {
    on_both("label-node-refused", |cluster| {
        let node = cluster.node("worker-1");
        let by_policy = "ValidatingAdmissionPolicy 'quiet-hours' with binding 'quiet-hours' denied request: not at night";
        for (code, message) in [
            (422, by_policy),
            (400, BY_WEBHOOK),
            (409, BY_WEBHOOK),
            (500, NO_WEBHOOK),
        ] {
            let refuses = cluster.proxy_for(Treatment::Refuse(code, message), is_node_write);
            for (lock, end, holder) in ENDS {
                cluster.maint(lock).arg(&node).succeeds();
                let ending = cluster.maint(end).arg(&node).holder(holder);
                let run = ending.kubeconfig(&refuses.kubeconfig).succeeds();
                let warning = "Warning: could not remove the held label, the opt-outs and the cordon from node/worker-1, if the \
                               lock set them: ";
                let hint = "\nhint: to remove what is left: `kubectl maint unhold worker-1`\n";
                let text = run.to_string();
                assert!(text.contains(warning) && text.contains(hint), "{run}");
                assert_eq!(holder_of(cluster, &node), None, "{run}");
                assert_eq!(keys(cluster, &node), (true, true), "{run}");
                if (code, end[0]) == (422, "release") && end.len() > 1 {
                    assert_snapshot!(run, @"
                    $ kubectl maint release --force -y -m x worker-1
                    node/worker-1 released (was locked by alice@bastion)
                    -- stderr
                    Warning: could not remove the held label, the opt-outs and the cordon from node/worker-1, if the lock set them: Error from server (UnprocessableEntity): ValidatingAdmissionPolicy 'quiet-hours' with binding 'quiet-hours' denied request: not at night
                    hint: to remove what is left: `kubectl maint unhold worker-1`
                    Warning: alice@bastion may still act on node/worker-1 until [time] at the latest
                    -- exit code 0
                    ");
                }
                cluster.maint(["unhold", &node]).succeeds();
                assert!(is_clean(cluster, &node));
            }
        }
    });
}

/// The same command can then remove everything.
#[test]
fn a_lock_stays_if_the_write_to_its_node_may_succeed_later() {
    on_one("label-node-unanswered", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(LOCK).arg(&node).succeeds();
        for treatment in [
            Treatment::Answer(503, None),
            Treatment::Refuse(409, "the Node has changed"),
        ] {
            let fails = cluster.proxy_for(treatment, is_node_write);
            let release = cluster.maint(["release", &node]);
            let run = release.kubeconfig(&fails.kubeconfig).run();
            assert_eq!(run.code, 1, "{run}");
            assert!(holder_of(cluster, &node).is_some(), "{run}");
            assert_eq!(keys(cluster, &node), (true, true), "{run}");
        }
        cluster.maint(["release", &node]).succeeds();
        assert!(is_clean(cluster, &node));
    });
}

#[test]
fn a_command_does_not_run_if_its_node_is_not_cordoned() {
    on_one("label-with-cordon", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for(Treatment::Answer(403, None), is_node_write);
        let with = ["with", &node, "--cordon", "--", "echo", "ran"];
        let run = cluster.maint(with).kubeconfig(&proxy.kubeconfig).run();
        assert_eq!((run.code, &run.stdout[..]), (125, ""), "{run}");
        let said = run.to_string();
        let begins = "error: node/worker-1 is locked without the held label and not cordoned: ";
        let ends = "\nthe command was not run\n";
        assert!(said.contains(begins) && said.contains(ends), "{run}");
        assert_eq!(holder_of(cluster, &node), None);
    });
}
