//! What a lock sets on its Node: the held label, opt-outs and the cordon.

mod end;
mod killed;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Cluster, LEASES, Run, Treatment, ago, holder_of, in_memory, on_both, on_one, on_real, requests,
};

const SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// Whether the Node has the held label, and whether it has an opt-out.
fn keys(cluster: &Cluster, node: &str) -> (bool, bool) {
    let metadata = cluster.get(&format!("/api/v1/nodes/{node}"))["metadata"].clone();
    let has = |map: &str, key: &str| metadata[map][key] != Value::Null;
    (
        has("labels", "kubectl-maint.dev/held"),
        has("annotations", SCALE_DOWN),
    )
}

/// Whether this is a write to a Node.
fn is_node_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("/nodes/")
}

/// Whether this is a write to the Lease of a lock.
fn is_lease_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("/kube-node-maintenance/leases/")
}

#[test]
fn an_unhold_removes_the_label_of_a_hold_whose_lease_is_lost() {
    on_both("label-lease-lost", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        cluster.delete(&format!("{LEASES}/{node}"));
        let run = cluster.maint(["unhold", &node]).succeeds();
        assert!(run.stdout.contains("already free"), "{run}");
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

/// Somebody may have set it by hand.
#[test]
fn a_label_without_a_lock_id_stays_and_is_reported() {
    on_both("label-without-id", |cluster| {
        let node = cluster.node("worker-1");
        let path = format!("/api/v1/nodes/{node}");
        let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
        cluster.patch(&path, &label);
        assert_snapshot!(cluster.maint(["unhold", &node]).run(), @"
        $ kubectl maint unhold worker-1
        node/worker-1 already free
        -- stderr
        Warning: kept the held label of node/worker-1: the node has no lock id, so it is unknown who set the label
        hint: to remove it: `kubectl label node worker-1 kubectl-maint.dev/held-`
        -- exit code 0
        ");
        assert!(keys(cluster, &node).0);
    });
}

/// The server may not answer requests for Events. The node must be protected nevertheless, even if the user does not
/// wait for it.
#[test]
fn the_label_comes_before_the_events() {
    on_both("label-events", |cluster| {
        for format in ["name", "json"] {
            let node = cluster.node(&format!("worker-{format}"));
            let is_event =
                |method: &Method, sent: &str| *method == Method::POST && sent.contains("/events");
            let proxy = cluster.proxy_for(Treatment::Keep, is_event);
            let hold = ["hold", &node, "-m", "disk", "-o", format];
            let running = cluster.maint(hold).kubeconfig(&proxy.kubeconfig).start();
            let kept = proxy.kept();
            assert_eq!(keys(cluster, &node), (true, true));
            running.is_sent(Signal::KILL);
            running.ends_killed();
            drop(kept);
        }
    });
}

#[test]
fn data_says_whether_the_node_is_labeled() {
    on_one("label-data", |cluster| {
        let node = cluster.node("worker-1");
        let labeled = |words: &[&str]| -> Value {
            let run = cluster.maint(words).succeeds();
            let data: Value = serde_json::from_str(&run.stdout).expect("JSON");
            data["items"][0]["labeled"].clone()
        };
        let hold = ["hold", &node, "-m", "disk", "-o", "json"];
        assert_eq!(labeled(&hold), true);
        assert_eq!(labeled(&["status", &node, "-o", "json"]), Value::Null);
        assert_eq!(labeled(&["unhold", &node, "-o", "json"]), Value::Null);
        assert_eq!(labeled(&["acquire", &node, "-o", "json"]), Value::Null);
    });
}

#[test]
fn doctor_removes_the_keys_of_ended_locks_and_no_others() {
    in_memory("label-doctor", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        let [ended, held, by_hand] = &nodes;
        for node in [ended, held] {
            cluster.maint(["hold", node, "-m", "disk"]).succeeds();
        }
        let free = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        cluster.patch(&format!("{LEASES}/{ended}"), &free);
        let found = cluster.maint(["doctor"]).run().to_string();
        let stale = "held labels    these nodes still have the held label, opt-outs or a cordon of a lock that has ended or expired: worker-1\n";
        let hint = "to remove them: `kubectl maint doctor --fix`";
        assert!(found.contains(stale) && found.contains(hint), "{found}");
        assert_eq!(keys(cluster, ended), (true, true));

        let fixed = cluster.maint(["doctor", "--fix"]).run().to_string();
        assert!(
            fixed.contains("ok       held labels    removed the held label, opt-outs and cordons of locks that have ended or expired from: worker-1\n"),
            "{fixed}"
        );
        assert_eq!(keys(cluster, ended), (false, false));
        assert_eq!(keys(cluster, held), (true, true));
        let found = cluster.maint(["doctor", "--fix"]).run().to_string();
        assert!(
            found.contains("held labels    1 node with the held label\n"),
            "{found}"
        );

        // If a label has no lock id, doctor can't tell whether its lock has ended.
        let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
        cluster.patch(&format!("/api/v1/nodes/{by_hand}"), &label);
        let left = cluster.maint(["doctor", "--fix"]).run().to_string();
        assert!(
            left.contains("but not the id of the lock that set it: worker-3\n"),
            "{left}"
        );
        assert_eq!(keys(cluster, by_hand), (true, false));
    });
}

/// Returns the end of the lock that the Node's annotation shows.
fn shown_end(cluster: &Cluster, node: &str) -> Option<DateTime<Utc>> {
    let node = cluster.get(&format!("/api/v1/nodes/{node}"));
    let until = node["metadata"]["annotations"]["kubectl-maint.dev/held-until"].as_str()?;
    Some(until.parse().expect("a time"))
}

/// Returns the end of the lock by its Lease, in whole seconds.
fn end(cluster: &Cluster, node: &str) -> Option<DateTime<Utc>> {
    let spec = &cluster.lease_of(node)["spec"];
    let renewed: DateTime<Utc> = spec["renewTime"].as_str()?.parse().expect("a time");
    let duration = TimeDelta::seconds(spec["leaseDurationSeconds"].as_i64()?);
    let up = match renewed.timestamp_subsec_nanos() {
        0 => TimeDelta::zero(),
        _ => TimeDelta::seconds(1),
    };
    Some(renewed.trunc_subsecs(0) + duration + up)
}

/// Moves the times of the lock one hour into the past.
fn expire(cluster: &Cluster, node: &str) {
    let times = json!({"spec": {"acquireTime": ago(3600), "renewTime": ago(3600), "leaseDurationSeconds": 60}});
    cluster.patch(&format!("{LEASES}/{node}"), &times);
}

#[test]
fn of_a_protected_lock_shows_its_end_and_goes_with_it() {
    on_one("label-lock", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let acquire = ["acquire", &node, "--protect", "--opt-outs=auto"];
        cluster.maint(acquire).succeeds();
        assert_eq!(keys(cluster, &node), (true, true));
        let first = shown_end(cluster, &node);
        assert!(first.is_some() && first == end(cluster, &node));

        cluster
            .maint(["renew", &node, "--duration", "1h", "-m", "more"])
            .succeeds();
        assert_eq!(keys(cluster, &node), (true, true));
        assert_eq!(shown_end(cluster, &node), end(cluster, &node));
        assert!(shown_end(cluster, &node) > first);
        // The keys also stay if the lock is acquired again by --reentry without these flags.
        cluster.maint(["acquire", &node, "--reentry"]).succeeds();
        assert_eq!(keys(cluster, &node), (true, true));

        cluster.maint(["release", &node]).succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
        assert_eq!(shown_end(cluster, &node), None);
    });
}

#[test]
fn describe_shows_what_a_lock_set_on_its_node() {
    on_one("label-describe", |cluster| {
        let node = cluster.node("worker-1");
        let acquire = ["acquire", &node, "--cordon", "--opt-outs=auto"];
        cluster.maint(acquire).succeeds();
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        let (_, set) = page.split_once("Set by locks:").expect("an entry");
        let set: Vec<&str> = set.lines().map(str::trim).take(4).collect();
        let held = "kubectl-maint.dev/held=true";
        let medik8s = "remediation.medik8s.io/exclude-from-remediation=true";
        let autoscaler = format!("{SCALE_DOWN}=true");
        assert_eq!(set, [held, medik8s, &autoscaler, "cordon"]);

        cluster.maint(["release", &node]).succeeds();
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        assert!(!page.contains("Set by locks"), "{page}");
    });
}

#[test]
fn json_has_what_a_lock_set_on_its_node() {
    on_one("label-json", |cluster| {
        let node = cluster.node("worker-1");
        let set_by_locks = || {
            // With `--all`, the Node is read in full only because it has a lock.
            let run = cluster.maint(["status", "--all", "-o", "json"]).succeeds();
            let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
            let mut items = list["items"].as_array().expect("items").iter();
            let item = items.find(|item| item["node"] == *node);
            item.expect("the node")["setByLocks"].clone()
        };
        let acquire = ["acquire", &node, "--opt-outs=cluster-autoscaler"];
        cluster.maint(acquire).succeeds();
        let labels = json!({"kubectl-maint.dev/held": "true"});
        let annotations = json!({SCALE_DOWN: "true"});
        assert_eq!(
            set_by_locks(),
            json!({"labels": labels, "annotations": annotations})
        );
        cluster.maint(["release", &node]).succeeds();
        assert_eq!(set_by_locks(), Value::Null);

        cluster
            .maint(["hold", &node, "-m", "disk", "--cordon", "--opt-outs=none"])
            .succeeds();
        assert_eq!(set_by_locks(), json!({"labels": labels, "cordoned": true}));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(set_by_locks(), Value::Null);
    });
}

#[test]
fn of_a_lock_is_written_only_if_that_is_wanted() {
    on_real("label-wanted", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let plain = cluster.maint(["acquire", "-v6", &node]).succeeds();
        assert_eq!(requests(&plain), ["GET", "GET", "PATCH"], "{plain}");
        assert_eq!(keys(cluster, &node), (false, false));
        let plain = cluster.maint(["release", "-v6", &node]).succeeds();
        assert_eq!(requests(&plain), ["GET", "PATCH"], "{plain}");

        let protected = cluster
            .maint(["acquire", "-v6", &node, "--protect"])
            .succeeds();
        assert_eq!(requests(&protected).len(), 6, "{protected}");
        let said = format!("node/{node} labeled until the lock ends\n");
        assert!(protected.stderr.contains(&said), "{protected}");
        assert_eq!(keys(cluster, &node), (true, false));
        let protected = cluster.maint(["release", "-v6", &node]).succeeds();
        let sent = ["GET", "GET", "PATCH", "PATCH", "PATCH"];
        assert_eq!(requests(&protected), sent, "{protected}");

        // With --reentry, an existing lock gets the label and the cordon too.
        cluster.maint(["acquire", &node]).succeeds();
        let enter = ["acquire", &node, "--reentry", "--cordon"];
        let run = cluster.maint(enter).succeeds();
        let said = "worker-1 labeled and cordoned until the lock ends; `kubectl drain` still evicts its pods";
        assert!(run.stderr.contains(said), "{run}");
        assert_eq!(keys(cluster, &node), (true, false));
        let run = cluster.maint(["release", &node]).succeeds();
        assert!(run.stderr.contains("worker-1 uncordoned"), "{run}");
        assert_eq!(keys(cluster, &node), (false, false));
        let spec = &cluster.get(&format!("/api/v1/nodes/{node}"))["spec"];
        assert_eq!(spec["unschedulable"], Value::Null);
    });
}

#[test]
fn of_a_lock_that_expired_goes_with_the_next_holder() {
    on_both("label-expired", |cluster| {
        let node = cluster.node("worker-1");
        let lock_id = || {
            let node = cluster.get(&format!("/api/v1/nodes/{node}"));
            node["metadata"]["annotations"]["kubectl-maint.dev/held-lock-id"].clone()
        };
        let bob = || {
            let acquire = ["acquire", &node, "--protect", "--opt-outs=auto"];
            let run = cluster.maint(acquire).holder("bob@laptop").succeeds();
            let said = "worker-1 labeled and opted out of cluster-autoscaler, node-healthcheck until the lock ends";
            assert!(run.stderr.contains(said), "{run}");
            expire(cluster, &node);
            lock_id()
        };
        bob();
        let run = cluster.maint(["acquire", &node]).succeeds();
        let removed = "worker-1: removed what an earlier lock had set: kubectl-maint.dev/held=true, \
                       remediation.medik8s.io/exclude-from-remediation=true, \
                       cluster-autoscaler.kubernetes.io/scale-down-disabled=true\n";
        assert!(run.stderr.contains(removed), "{run}");
        assert_eq!(keys(cluster, &node), (false, false));
        cluster.maint(["release", &node]).succeeds();

        let first = bob();
        cluster.maint(["acquire", &node, "--protect"]).succeeds();
        assert_eq!(keys(cluster, &node), (true, false));
        assert_ne!(lock_id(), first);
        cluster.maint(["release", &node]).succeeds();

        // The label is removed if somebody else ends the lock, and also when a hold that replaced the lock ends.
        bob();
        cluster
            .maint(["release", &node, "--force", "--yes"])
            .succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
        bob();
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_eq!(shown_end(cluster, &node), None);
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

#[test]
fn doctor_removes_the_keys_of_an_expired_lock() {
    in_memory("label-expired-doctor", |cluster| {
        let node = cluster.node("worker-1");
        let acquire = ["acquire", &node, "--protect", "--opt-outs=auto"];
        cluster.maint(acquire).holder("bob@laptop").succeeds();
        assert_eq!(keys(cluster, &node), (true, true));
        expire(cluster, &node);
        let found = cluster.maint(["doctor"]).run().to_string();
        assert!(
            found.contains("a lock that has ended or expired: worker-1\n"),
            "{found}"
        );
        cluster.maint(["doctor", "--fix"]).run();
        assert_eq!(keys(cluster, &node), (false, false));
    });
}

/// Whether the Node has no cordon, no label and no opt-out of a lock.
fn is_clean(cluster: &Cluster, node: &str) -> bool {
    let spec = &cluster.get(&format!("/api/v1/nodes/{node}"))["spec"];
    spec["unschedulable"] != true && keys(cluster, node) == (false, false)
}

#[test]
fn what_a_failed_end_left_goes_with_the_next_lock() {
    on_both("label-failed-end", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let protected = ["--cordon", "--opt-outs=cluster-autoscaler"];
        let forbidden = cluster.proxy_for(Treatment::Answer(403, None), is_node_write);
        let acquired = || {
            let acquire = cluster.maint(["acquire", &node]).args(protected);
            acquire.succeeds();
        };
        let is_left = || {
            assert_eq!(holder_of(cluster, &node), None);
            assert!(!is_clean(cluster, &node));
        };
        let goes = |run: &Run| {
            let removed = "worker-1: removed what an earlier lock had set: kubectl-maint.dev/held=true, \
                           cluster-autoscaler.kubernetes.io/scale-down-disabled=true, cordon; this uncordons the node\n";
            assert!(run.stderr.contains(removed), "{run}");
            assert!(is_clean(cluster, &node), "{run}");
        };
        let says_what_is_left = |run: &Run| {
            let warning = "Warning: could not remove the held label, the opt-outs and the cordon from node/worker-1, \
                           if the lock set them: ";
            let hint = "hint: to remove what is left: `kubectl maint unhold worker-1`; this needs permission to patch nodes: \
                        `kubectl maint install` creates the roles (deploy/rbac.yaml)";
            let text = run.to_string();
            assert!(text.contains(warning) && text.contains(hint), "{run}");
        };

        // The Nodes can't be patched: a release by the holder, and one with --force.
        for force in [&[][..], &["--force", "--yes"]] {
            acquired();
            let release = cluster.maint(["release", &node]).args(force);
            let release = match force {
                [] => release,
                _ => release.holder("bob@laptop"),
            };
            let run = release.kubeconfig(&forbidden.kubeconfig).succeeds();
            says_what_is_left(&run);
            is_left();
            goes(&cluster.maint(["acquire", &node]).succeeds());
            cluster.maint(["release", &node]).succeeds();
        }
        // `with` ends while the Nodes can't be patched.
        let fails = Arc::new(AtomicBool::new(false));
        let does_fail = Arc::clone(&fails);
        let proxy = cluster.proxy_for(Treatment::Answer(403, None), move |method, path| {
            is_node_write(method, path) && does_fail.load(Ordering::Relaxed)
        });
        let flag = cluster.directory().join(format!("{node}-done"));
        let script = format!("until [ -e {} ]; do sleep 0.1; done", flag.display());
        let with = cluster.maint(["with", &node]).args(protected);
        let with = with.args(["--", "sh", "-c", &script]);
        let mut running = with.kubeconfig(&proxy.kubeconfig).start();
        running.says("running on this machine");
        assert!(!is_clean(cluster, &node));
        fails.store(true, Ordering::Relaxed);
        std::fs::write(&flag, "").expect("a file");
        let run = running.ends();
        says_what_is_left(&run);
        is_left();
        goes(&cluster.maint(["with", &node, "--", "true"]).succeeds());

        // `unhold` removes what is left at once.
        acquired();
        let release = cluster.maint(["release", &node]);
        release.kubeconfig(&forbidden.kubeconfig).succeeds();
        is_left();
        cluster.maint(["unhold", &node]).succeeds();
        assert!(is_clean(cluster, &node));
    });
}

#[test]
fn what_a_lock_set_goes_when_its_lease_is_deleted() {
    on_both("label-deleted", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node, "--cordon"]).succeeds();
        cluster.delete(&format!("{LEASES}/{node}"));
        cluster.maint(["acquire", &node]).succeeds();
        assert!(is_clean(cluster, &node));
        cluster.maint(["release", &node]).succeeds();

        let with = ["with", &node, "--cordon", "--grace=1s", "--"];
        let with = cluster.maint(with).args(["sleep", "60"]);
        let mut running = with.start();
        running.says("running on this machine");
        assert!(!is_clean(cluster, &node));
        cluster.delete(&format!("{LEASES}/{node}"));
        let run = running.ends();
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stderr.contains("worker-1 uncordoned\n"), "{run}");
        assert!(is_clean(cluster, &node));
    });
}

#[test]
fn of_an_existing_lock_is_updated_by_with_reentry() {
    on_both("label-reentry", |cluster| {
        let node = cluster.node("worker-1");
        let flag = cluster.directory().join(format!("{node}-done"));
        let script = format!("until [ -e {} ]; do sleep 0.1; done", flag.display());
        let acquire = ["acquire", &node, "--protect", "--duration=15s"];
        cluster.maint(acquire).succeeds();
        let times = ["--lease-duration=30s", "--grace=1s", "--request-timeout=5s"];
        let with = cluster.maint(["with", &node, "--reentry"]).args(times);
        let mut running = with.args(["--", "sh", "-c", &script]).start();
        running.says("running on this machine");
        let first = shown_end(cluster, &node).expect("an end");
        assert_eq!(Some(first), end(cluster, &node));
        while shown_end(cluster, &node) <= Some(first) {
            assert!(!running.is_over());
            assert!(end(cluster, &node) < Some(first + TimeDelta::seconds(25)));
            sleep(Duration::from_millis(50));
        }
        std::fs::write(&flag, "").expect("a file");
        let run = running.ends();
        assert_eq!(run.code, 0, "{run}");
        // The lock existed before, so it stays, and so does its label.
        assert_eq!(keys(cluster, &node), (true, false));
        assert!(holder_of(cluster, &node).is_some());
    });
}

#[test]
fn a_user_who_uncordons_a_locked_node_is_not_overruled() {
    on_both("label-uncordon", |cluster| {
        let node = cluster.node("worker-1");
        let path = format!("/api/v1/nodes/{node}");
        let is_cordoned = || cluster.get(&path)["spec"]["unschedulable"] == true;
        for (lock, again, end) in [
            (
                &["acquire", "--cordon"][..],
                &["renew", "--duration=1h"][..],
                "release",
            ),
            (
                &["hold", "-m", "disk", "--cordon"],
                &["hold", "-m", "fan"],
                "unhold",
            ),
        ] {
            cluster.maint(lock).arg(&node).succeeds();
            assert!(is_cordoned());
            cluster.patch(&path, &json!({"spec": {"unschedulable": null}}));
            cluster.maint(again).arg(&node).succeeds();
            assert!(!is_cordoned(), "{again:?}");
            // A cordon that the user set stays.
            cluster.patch(&path, &json!({"spec": {"unschedulable": true}}));
            cluster.maint([end, &node]).succeeds();
            assert!(is_cordoned(), "{end}");
            // So does one from before the lock.
            let run = cluster.maint(lock).arg(&node).succeeds();
            let said = "it was already cordoned, so it stays cordoned after that\n";
            assert!(run.stderr.contains(said), "{run}");
            cluster.maint([end, &node]).succeeds();
            assert!(is_cordoned(), "{end}");
            cluster.patch(&path, &json!({"spec": {"unschedulable": null}}));
        }
    });
}

#[test]
fn is_removed_only_by_the_release_that_ends_the_lock() {
    on_one("label-lock-other", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node, "--protect"]).succeeds();
        let other = "0f8fad5b-d9cb-469f-a165-70867728950e.1.n";
        let others = [
            cluster.maint(["release", &node]).holder("bob@laptop"),
            cluster.maint(["release", &node, "--lock-id", other]),
            cluster.maint(["release", &node, "--dry-run"]),
        ];
        for release in others {
            let run = release.run();
            assert_eq!(keys(cluster, &node), (true, false), "{run}");
        }
    });
}

#[test]
fn of_a_protected_command_moves_with_the_renewals_and_goes_with_it() {
    on_both("label-with", |cluster| {
        let node = cluster.node("worker-1");
        let flag = cluster.directory().join(format!("{node}-done"));
        let script = format!("until [ -e {} ]; do sleep 0.1; done", flag.display());
        let with = [
            "with",
            &node,
            "--protect",
            "--opt-outs=cluster-autoscaler",
            "--lease-duration=15s",
            "--grace=1s",
            "--request-timeout=5s",
            "--",
            "sh",
            "-c",
            &script,
        ];
        let mut running = cluster.maint(with).start();
        running.says("running on this machine");
        assert_eq!(keys(cluster, &node), (true, true));
        let first = shown_end(cluster, &node).expect("an end");
        while shown_end(cluster, &node) <= Some(first) {
            assert!(!running.is_over());
            sleep(Duration::from_millis(50));
        }
        assert_eq!(keys(cluster, &node), (true, true));
        std::fs::write(&flag, "").expect("a file");
        let run = running.ends();
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(keys(cluster, &node), (false, false));
        assert_eq!(holder_of(cluster, &node), None);
    });
}

/// A caller waits for the exit code before it works under the lock.
#[test]
fn a_lock_is_reported_while_a_third_of_it_is_left() {
    on_one("label-slow", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for(Treatment::Keep, is_node_write);
        let acquire = [
            "acquire",
            &node,
            "--cordon",
            "--duration=9s",
            "-o",
            "lock-id",
        ];
        let maint = |arguments: &[&str]| {
            let run = cluster.maint(arguments);
            run.kubeconfig(&proxy.kubeconfig).run()
        };
        let run = maint(&acquire);
        let said = "error: node/worker-1 is locked without the held label and not cordoned: the API server did not answer in ";
        let hint = "hint: to end the lock: `kubectl maint release worker-1`\n";
        let text = run.to_string();
        assert!(
            run.code == 1 && text.contains(said) && text.contains(hint),
            "{run}"
        );
        let verify = ["verify", &node, "--lock-id", run.stdout.trim()];
        assert_eq!(maint(&verify).code, 0, "{run}");
    });
}

/// Whether this is a write of the keys that a lock sets on its Node.
fn is_label(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("fieldManager=kubectl-maint-node-keys")
}

/// An admission webhook may do this.
#[test]
fn a_label_or_a_cordon_that_is_removed_is_not_reported_as_set() {
    on_one("label-altered", |cluster| {
        for removed in ["/spec", "/metadata/labels"] {
            let node = cluster.node("worker-1");
            let proxy = cluster.proxy_for(Treatment::Without(removed), is_label);
            let maint = |words: &[&str]| {
                let run = cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
                assert!(!run.stderr.contains("labeled and cordoned"), "{run}");
                run
            };
            assert_snapshot!(maint(&["acquire", &node, "--cordon"]), @"
            $ kubectl maint acquire worker-1 --cordon
            node/worker-1 acquired by alice@bastion until [time] (30m)
            -- stderr
            lease/worker-1 created
            Expires [time] (in 30m). To release, extend or hold:
              kubectl maint release worker-1
              kubectl maint renew worker-1
              kubectl maint hold worker-1 -m WHY
            error: node/worker-1 is locked, but its held label or its cordon is missing: the API server changed what was written (an admission webhook may have done this)
            hint: to end the lock: `kubectl maint release worker-1`
            -- exit code 1
            ");
            maint(&["release", &node]);
            assert!(is_clean(cluster, &node));
            let with = maint(&["with", &node, "--cordon", "--", "echo", "ran"]);
            assert_eq!((with.code, &with.stdout[..]), (125, ""), "{with}");
            assert_eq!(holder_of(cluster, &node), None);
            cluster.delete(&format!("/api/v1/nodes/{node}"));
            cluster.delete(&format!("{LEASES}/{node}"));
        }
    });
}
