//! What a lock asks of its Node: the held label, opt-outs and the cordon.

use std::thread::sleep;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Cluster, LEASES, Treatment, ago, holder_of, in_memory, on_both, on_one, on_real, requests,
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

fn is_cordoned(cluster: &Cluster, node: &str) -> bool {
    cluster.get(&format!("/api/v1/nodes/{node}"))["spec"]["unschedulable"] == true
}

/// Whether the Node has no cordon, no label and no opt-out of a lock.
fn is_clean(cluster: &Cluster, node: &str) -> bool {
    !is_cordoned(cluster, node) && keys(cluster, node) == (false, false)
}

/// Whether this is a write to a Node.
fn is_node_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("/nodes/")
}

/// Whether this is a write to the Lease of a lock.
fn is_lease_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("/kube-node-maintenance/leases/")
}

/// Kills this command when it sends a write to its Node. The write never reaches the server.
fn killed_before_the_node(cluster: &Cluster, arguments: &[&str]) {
    let proxy = cluster.proxy_for(Treatment::Keep, is_node_write);
    drop(proxy.kills(cluster.maint(arguments)));
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

/// A command is killed between the Lease and the Node, at either end.
#[test]
fn what_a_killed_command_leaves_is_shown_and_mended_by_doctor() {
    in_memory("label-killed", |cluster| {
        let node = cluster.node("worker-1");
        let doctor = |fix: &[&str]| cluster.maint(["doctor"]).args(fix).run().to_string();
        let page = || cluster.maint(["describe", &node]).succeeds().stdout;
        let wide = || {
            cluster
                .maint(["status", &node, "-o", "wide"])
                .succeeds()
                .stdout
        };
        let hint = "their holders can set them: `kubectl maint doctor --fix`";

        killed_before_the_node(cluster, &["hold", &node, "-m", "disk", "--cordon"]);
        assert!(holder_of(cluster, &node).is_some() && is_clean(cluster, &node));
        let missing =
            "the held label, opt-outs or cordon of its lock are missing: run `doctor --fix`";
        assert!(page().contains(missing) && wide().contains(missing));
        let found = doctor(&[]);
        let lacks = "held labels    locked without the held label, opt-outs or cordon that the lock asks for: worker-1\n";
        assert!(found.contains(lacks) && found.contains(hint), "{found}");
        let fixed = doctor(&["--fix"]);
        let set = "set the held label, opt-outs and cordons that the locks ask for on: worker-1\n";
        assert!(fixed.contains(set), "{fixed}");
        assert_eq!(keys(cluster, &node), (true, true));
        let found = doctor(&["--fix"]);
        assert!(
            found.contains("held labels    1 node with the held label\n"),
            "{found}"
        );

        killed_before_the_node(cluster, &["unhold", &node]);
        assert_eq!(holder_of(cluster, &node), None);
        assert!(is_cordoned(cluster, &node));
        let left = "a lock that has ended or expired left a label, opt-outs or a cordon: run `doctor --fix`";
        assert!(page().contains(left) && wide().contains(left));
        let found = doctor(&[]);
        let stale = "still have the held label, opt-outs or a cordon of a lock that has ended or expired: worker-1\n";
        assert!(found.contains(stale), "{found}");
        let fixed = doctor(&["--fix"]);
        let removed = "removed the held label, opt-outs and cordons of locks that have ended or expired from: worker-1\n";
        assert!(fixed.contains(removed), "{fixed}");
        assert!(is_clean(cluster, &node));

        // So are the keys of an expired lock, and a label that somebody set by hand.
        let acquire = ["acquire", &node, "--opt-outs=auto"];
        cluster.maint(acquire).succeeds();
        expire(cluster, &node);
        assert!(doctor(&["--fix"]).contains(removed));
        assert!(is_clean(cluster, &node));
        let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
        cluster.patch(&format!("/api/v1/nodes/{node}"), &label);
        assert!(doctor(&["--fix"]).contains(removed));
        assert!(is_clean(cluster, &node));

        // The cordon of a lock that was replaced stays until the next one ends.
        let acquire = cluster.maint(["acquire", &node, "--cordon"]);
        acquire.holder("bob@laptop").succeeds();
        expire(cluster, &node);
        killed_before_the_node(cluster, &["acquire", &node, "--take-expired"]);
        let fixed = doctor(&["--fix"]);
        assert!(is_cordoned(cluster, &node), "{fixed}");
        cluster.maint(["release", &node]).succeeds();
        assert!(is_clean(cluster, &node), "{fixed}");
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
fn of_a_lock_shows_its_end_and_goes_with_it() {
    on_one("label-lock", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let acquire = ["acquire", &node, "--opt-outs=auto"];
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

        // Only the release that ends the lock removes them.
        let other = "0f8fad5b-d9cb-469f-a165-70867728950e.1.n";
        for release in [
            cluster.maint(["release", &node]).holder("bob@laptop"),
            cluster.maint(["release", &node, "--lock-id", other]),
            cluster.maint(["release", &node, "--dry-run"]),
        ] {
            let run = release.run();
            assert_eq!(keys(cluster, &node), (true, true), "{run}");
        }
        cluster.maint(["release", &node]).succeeds();
        assert_eq!(keys(cluster, &node), (false, false));
        assert_eq!(shown_end(cluster, &node), None);
    });
}

#[test]
fn describe_and_json_have_what_a_lock_set_on_its_node() {
    on_one("label-shown", |cluster| {
        let node = cluster.node("worker-1");
        let set_by_locks = || {
            // With `--all`, the Node is read in full only because it has a lock.
            let run = cluster.maint(["status", "--all", "-o", "json"]).succeeds();
            let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
            let mut items = list["items"].as_array().expect("items").iter();
            let item = items.find(|item| item["node"] == *node);
            item.expect("the node")["setByLocks"].clone()
        };
        let opt_outs = "--opt-outs=cluster-autoscaler";
        cluster
            .maint(["acquire", &node, "--cordon", opt_outs])
            .succeeds();
        let expected = json!({
            "labels": {"kubectl-maint.dev/held": "alice-bastion"},
            "annotations": {SCALE_DOWN: "true"},
            "cordoned": true,
        });
        assert_eq!(set_by_locks(), expected);
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        let (_, set) = page.split_once("Set by locks:").expect("an entry");
        let set: Vec<&str> = set.lines().map(str::trim).take(3).collect();
        let held = "kubectl-maint.dev/held=alice-bastion";
        assert_eq!(set, [held, &format!("{SCALE_DOWN}=true"), "cordon"]);

        cluster.maint(["release", &node]).succeeds();
        assert_eq!(set_by_locks(), Value::Null);
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        assert!(!page.contains("Set by locks"), "{page}");
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

        let label = ["acquire", "-v6", &node, "--opt-outs=none"];
        let labeled = cluster.maint(label).succeeds();
        let sent = ["GET", "GET", "GET", "GET", "PATCH", "PATCH"];
        assert_eq!(requests(&labeled), sent, "{labeled}");
        let said = format!("node/{node} labeled until the lock ends\n");
        assert!(labeled.stderr.contains(&said), "{labeled}");
        assert_eq!(keys(cluster, &node), (true, false));
        let ended = cluster.maint(["release", "-v6", &node]).succeeds();
        let sent = ["GET", "GET", "PATCH", "PATCH"];
        assert_eq!(requests(&ended), sent, "{ended}");

        // With --reentry, an existing lock gets the label and the cordon too.
        cluster.maint(["acquire", &node]).succeeds();
        let enter = ["acquire", &node, "--reentry", "--cordon"];
        let run = cluster.maint(enter).succeeds();
        let said = "worker-1 labeled and cordoned until the lock ends; `kubectl drain` still evicts its pods";
        assert!(run.stderr.contains(said), "{run}");
        assert_eq!(keys(cluster, &node), (true, false));
        let run = cluster.maint(["release", &node]).succeeds();
        assert!(run.stderr.contains("worker-1 uncordoned"), "{run}");
        assert!(is_clean(cluster, &node));
    });
}

#[test]
fn of_a_lock_that_was_replaced_goes_and_its_cordon_stays_until_the_last_lock_ends() {
    on_both("label-replaced", |cluster| {
        let node = cluster.node("worker-1");
        let bob = |flags: &[&str]| {
            let acquire = cluster.maint(["acquire", &node]).args(flags);
            acquire.holder("bob@laptop").succeeds();
            assert_eq!(keys(cluster, &node), (true, true));
        };
        // The next lock asks for nothing, and the earlier one did not cordon.
        bob(&["--opt-outs=auto"]);
        expire(cluster, &node);
        cluster.maint(["acquire", &node]).succeeds();
        assert!(is_clean(cluster, &node));
        cluster.maint(["release", &node]).succeeds();

        for (next, end) in [
            (&["acquire", "--take-expired"][..], "release"),
            (
                &["hold", "-m", "disk", "--opt-outs=none", "--take-expired"],
                "unhold",
            ),
        ] {
            bob(&["--opt-outs=auto", "--cordon"]);
            expire(cluster, &node);
            let run = cluster.maint(next).arg(&node).succeeds();
            assert!(is_cordoned(cluster, &node), "{run}");
            assert_eq!(keys(cluster, &node), (true, false), "{run}");
            let run = cluster.maint([end, &node]).succeeds();
            assert!(run.stderr.contains("worker-1 uncordoned\n"), "{run}");
            assert!(is_clean(cluster, &node), "{run}");
        }

        // Somebody else ends the lock.
        bob(&["--opt-outs=auto", "--cordon"]);
        cluster
            .maint(["release", &node, "--force", "--yes"])
            .succeeds();
        assert!(is_clean(cluster, &node));
    });
}

#[test]
fn a_user_who_uncordons_a_locked_node_is_not_overruled() {
    on_both("label-uncordon", |cluster| {
        let node = cluster.node("worker-1");
        let path = format!("/api/v1/nodes/{node}");
        let is_cordoned = || is_cordoned(cluster, &node);
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
fn of_a_command_moves_with_the_renewals_and_goes_with_it() {
    on_both("label-with", |cluster| {
        let node = cluster.node("worker-1");
        let flag = cluster.directory().join(format!("{node}-done"));
        let script = format!("until [ -e {} ]; do sleep 0.1; done", flag.display());
        let with = [
            "with",
            &node,
            "--cordon",
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
        // A duration ahead, so the Node is not written at each renewal.
        assert!(shown_end(cluster, &node) >= Some(first + TimeDelta::seconds(15)));
        assert_eq!(keys(cluster, &node), (true, true));
        std::fs::write(&flag, "").expect("a file");
        let run = running.ends();
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stderr.contains("worker-1 uncordoned\n"), "{run}");
        assert!(is_clean(cluster, &node));
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

/// An admission webhook may do this.
#[test]
fn a_label_or_a_cordon_that_is_removed_is_not_reported_as_set() {
    on_one("label-altered", |cluster| {
        for removed in ["/spec", "/metadata/labels"] {
            let node = cluster.node("worker-1");
            let proxy = cluster.proxy_for(Treatment::Without(removed), is_node_write);
            let maint = |words: &[&str]| {
                let run = cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
                assert!(!run.stderr.contains("labeled and cordoned"), "{run}");
                run
            };
            let acquired = maint(&["acquire", &node, "--cordon"]);
            assert_eq!(acquired.code, 1, "{acquired}");
            let missing = " is locked, but its held label or its cordon is missing: ";
            assert!(acquired.stderr.contains(missing), "{acquired}");
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

#[test]
fn a_lock_whose_end_is_refused_keeps_what_it_set() {
    on_one("label-end-refused", |cluster| {
        let node = cluster.node("worker-1");
        let refuses = cluster.proxy_for(Treatment::Refuse(403, "not you"), is_lease_write);
        for (lock, end, holder) in ENDS {
            cluster.maint(lock).arg(&node).succeeds();
            let ending = cluster.maint(end).arg(&node).holder(holder);
            let run = ending.kubeconfig(&refuses.kubeconfig).run();
            assert_eq!((run.code, &run.stdout[..]), (1, ""), "{run}");
            assert!(run.stderr.contains("not you"), "{run}");
            assert_eq!(keys(cluster, &node), (true, true), "{run}");
            assert!(is_cordoned(cluster, &node), "{run}");
            let run = cluster.maint(end).arg(&node).holder(holder).succeeds();
            assert!(is_clean(cluster, &node), "{run}");
        }
    });
}

#[test]
fn a_lock_ends_if_the_write_to_its_node_fails() {
    on_one("label-node-refused", |cluster| {
        let node = cluster.node("worker-1");
        let by_policy = "ValidatingAdmissionPolicy 'quiet-hours' with binding 'quiet-hours' denied request: not at night";
        let by_webhook = r#"admission webhook "guard.example.com" denied the request: ask me"#;
        for treatment in [
            Treatment::Refuse(422, by_policy),
            Treatment::Refuse(409, by_webhook),
            Treatment::Refuse(409, "the Node has changed"),
            Treatment::Answer(503, None),
        ] {
            let fails = cluster.proxy_for(treatment, is_node_write);
            for (lock, end, holder) in ENDS {
                cluster.maint(lock).arg(&node).succeeds();
                let ending = cluster.maint(end).arg(&node).holder(holder);
                let run = ending.kubeconfig(&fails.kubeconfig).succeeds();
                let warning = "Warning: could not remove the held label, the opt-outs and the cordon from node/worker-1, if the \
                               lock set them: ";
                let hint = "\nhint: to remove what is left: `kubectl maint doctor --fix`\n";
                let text = run.to_string();
                assert!(text.contains(warning) && text.contains(hint), "{run}");
                assert_eq!(holder_of(cluster, &node), None, "{run}");
                assert_eq!(keys(cluster, &node), (true, true), "{run}");
                cluster.maint(["doctor", "--fix"]).run();
                assert!(is_clean(cluster, &node));
            }
        }
    });
}
