//! The held label, as locks and holds write it, with the node policy in deny mode.

use control_plane::{ControlPlane, NodeSpec, Rule};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, BINDINGS, HOLDERS, LEASES, NODES, Person, STRATEGIC, USERS, admin, admitted,
    at, denying, person, policy_of_somebody_else, refused_by, wait_until,
};

const KEY: &str = "kubectl-maint.dev/held";

fn node(plane: &ControlPlane, name: &str) -> String {
    let created = plane.create_nodes(&[NodeSpec::ready(name)]);
    created.expect("a node");
    format!("{NODES}/{name}")
}

/// The label, and the annotations that explain it, without the lock id.
fn record(seen: &Value) -> (Value, Value) {
    let notes = seen["metadata"]["annotations"].as_object();
    let notes = notes.into_iter().flatten();
    let notes = notes.filter(|(key, _)| key.starts_with(KEY) && !key.ends_with("lock-id"));
    let notes = notes.map(|(key, value)| (key[KEY.len()..].to_owned(), value.clone()));
    (
        seen["metadata"]["labels"][KEY].clone(),
        Value::Object(notes.collect()),
    )
}

fn is_cordoned(by: &Person, path: &str) -> bool {
    by.get(path)["spec"]["unschedulable"] == json!(true)
}

fn holder(plane: &ControlPlane, name: &str) -> Person {
    person(plane, name, &[USERS, HOLDERS])
}

#[test]
fn matches_the_hold_and_is_removed_with_it() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-hold");
    let alice = holder(plane, "label-alice");
    let carol = person(plane, "label-carol", &["system:masters"]);
    let name = "label-hold";
    let path = node(plane, name);
    let run = alice.succeeds(&["hold", name, "-m", "bad DIMM", "--ticket", "OPS-7"]);
    assert!(!run.stderr.contains("without the held label"), "{run:?}");
    let (label, notes) = record(&alice.get(&path));
    assert_eq!(label, "true");
    let expected = json!({
        "-by": "label-alice", "-user": "label-alice", "-reason": "bad DIMM", "-ticket": "OPS-7",
        "-schedulable": "true",
        "-set": "remediation.medik8s.io/exclude-from-remediation,cluster-autoscaler.kubernetes.io/scale-down-disabled",
    });
    assert_eq!(notes, expected);
    let lock_id =
        alice.get(&path)["metadata"]["annotations"]["kubectl-maint.dev/held-lock-id"].clone();
    let lease = alice.get(&format!("{LEASES}/{name}"));
    let uid = lease["metadata"]["uid"].as_str().expect("a uid");
    assert!(
        lock_id.as_str().is_some_and(|id| id.starts_with(uid)),
        "{lock_id}"
    );
    refused_by("maint-held-delete", &carol.delete(&path), "by another");

    // The same command updates the reason. It also writes the label again if it is missing.
    alice.succeeds(&["hold", name, "-m", "parts ordered"]);
    let (_, notes) = record(&alice.get(&path));
    assert_eq!(notes["-reason"], "parts ordered");
    assert_eq!(notes["-ticket"], Value::Null);
    let unlabel = json!({"metadata": {"labels": {(KEY): null}}});
    admitted(alice.patch(&path, &unlabel), "by the holder");
    alice.succeeds(&["hold", name, "-m", "parts ordered"]);
    assert_eq!(record(&alice.get(&path)).0, "true");

    alice.succeeds(&["unhold", name]);
    assert_eq!(record(&alice.get(&path)), (Value::Null, json!({})));
    admitted(carol.delete(&path), "free");
}

#[test]
fn a_cordon_of_the_hold_ends_with_it_and_no_other() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-cordon");
    let alice = holder(plane, "label-alice");
    let carol = person(plane, "label-carol", &["system:masters"]);
    for was_cordoned in [false, true] {
        let name = &format!("label-cordon-{was_cordoned}");
        let path = node(plane, name);
        let spec = |cordon: Value| json!({"spec": {"unschedulable": cordon}});
        if was_cordoned {
            admitted(carol.patch(&path, &spec(json!(true))), "a cordon");
        }
        let run = alice.succeeds(&["hold", name, "-m", "why", "--cordon"]);
        assert!(
            run.stderr.contains("`kubectl drain` still evicts"),
            "{run:?}"
        );
        assert!(is_cordoned(&alice, &path));
        let schedulable = (!was_cordoned).to_string();
        assert_eq!(record(&alice.get(&path)).1["-schedulable"], schedulable);
        // Without --cordon, the node stays cordoned.
        alice.succeeds(&["hold", name, "-m", "because"]);
        assert!(is_cordoned(&alice, &path));
        assert_eq!(record(&alice.get(&path)).1["-schedulable"], schedulable);
        if !was_cordoned {
            let answer = carol.patch(&path, &spec(Value::Null));
            refused_by("maint-held-uncordon", &answer, "by another");
        }
        alice.succeeds(&["release", name]);
        assert_eq!(is_cordoned(&alice, &path), was_cordoned);
        assert_eq!(record(&alice.get(&path)).0, Value::Null);
    }
}

#[test]
fn without_the_right_to_patch_nodes_a_hold_works() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-rights");
    // The user may hold, but may only read Nodes.
    let rights = [control_plane::Rule::new(
        "coordination.k8s.io",
        &["leases"],
        &["hold"],
    )];
    plane.grant("label-uma", &rights).expect("rights");
    let uma = person(plane, "label-uma", &[USERS]);
    let name = "label-rights";
    let path = node(plane, name);
    let run = uma.succeeds(&["hold", name, "-m", "why"]);
    assert!(
        run.stderr.contains("is on hold without the held label"),
        "{run:?}"
    );
    assert_eq!(record(&uma.get(&path)).0, Value::Null);
    let run = uma.succeeds(&[
        "hold",
        name,
        "-m",
        "why",
        "-o",
        "jsonpath={.items[0].labeled}",
    ]);
    assert_eq!(run.stdout, "false\n");
    let run = uma.maint(&["hold", name, "-m", "why", "--cordon"]);
    assert_eq!(run.code, 1, "{run:?}");
    uma.succeeds(&["unhold", name]);
    let lease = uma.get(&format!("{LEASES}/{name}"));
    assert_eq!(lease["spec"]["holderIdentity"], "");
    let alice = holder(plane, "label-alice");
    alice.succeeds(&["hold", name, "-m", "why"]);
    // `unhold` has nothing to remove if the hold itself can't be ended.
    let eve = person(plane, "label-eve", &[USERS]);
    let run = eve.maint(&["unhold", name, "--yes"]);
    assert!(run.stderr.contains("maint-unhold-right"), "{run:?}");
    assert!(!run.stderr.contains("could not remove"), "{run:?}");
    // A label of another holder stays, and is reported.
    plane
        .grant(
            "label-uma",
            &[control_plane::Rule::new(
                "coordination.k8s.io",
                &["leases"],
                &["hold", "takeover"],
            )],
        )
        .expect("rights");
    let run = uma.maint(&["unhold", name, "--yes"]);
    assert!(
        run.stderr.contains("could not remove the held label"),
        "{run:?}"
    );
}

#[test]
fn a_takeover_and_a_new_hold_replace_what_is_left() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-left");
    let alice = holder(plane, "label-alice");
    let bob = holder(plane, "label-bob");
    let nodes = control_plane::Rule::new("", &["nodes"], &["get", "patch"]);
    plane.grant("label-ada", &[nodes]).expect("rights");
    let ada = person(plane, "label-ada", &[USERS, ADMINISTRATORS]);
    let name = "label-left";
    let path = node(plane, name);
    alice.succeeds(&["hold", name, "-m", "why"]);
    ada.succeeds(&["unhold", name, "--yes"]);
    assert_eq!(record(&ada.get(&path)).0, Value::Null);

    // A hold that another client ended, without its label: the next hold replaces the label, with a cordon.
    alice.succeeds(&["hold", name, "-m", "why"]);
    let lease = format!("{LEASES}/{name}");
    let free =
        json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": at(0)}});
    admitted(alice.patch(&lease, &free), "a release by another client");
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-alice");
    let hold = ["hold", name, "-m", "mine", "--cordon"];
    bob.succeeds(&[&hold[..], &["--dry-run"]].concat());
    bob.succeeds(&hold);
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-bob");
    assert!(is_cordoned(&bob, &path));

    // The takeover of a hold keeps its cordon. The end of the new hold removes it.
    ada.succeeds(&["hold", name, "-m", "burning smell", "--take-over", "--yes"]);
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-ada");
    assert!(is_cordoned(&bob, &path));
    ada.succeeds(&["unhold", name]);
    assert!(!is_cordoned(&bob, &path));
    assert_eq!(record(&admin(plane).get(&path)).0, Value::Null);
}

/// After the edit, the annotation belongs to another field manager. The policy admits the lock id of the ended lock in
/// only one write.
#[test]
fn a_hold_whose_reason_was_edited_ends_with_all_that_it_set() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-edited");
    let alice = holder(plane, "label-alice");
    let nodes = control_plane::Rule::new("", &["nodes"], &["get", "patch"]);
    plane.grant("label-ada", &[nodes]).expect("rights");
    let ada = person(plane, "label-ada", &[USERS, ADMINISTRATORS]);
    let by = &alice;
    for (name, ends) in [("label-edited-1", &ada), ("label-edited-2", &alice)] {
        let path = node(plane, name);
        by.succeeds(&["hold", name, "-m", "why", "--cordon"]);
        let edited =
            json!({"metadata": {"annotations": {"kubectl-maint.dev/held-reason": "fire"}}});
        admitted(by.patch(&path, &edited), "by the holder");
        let run = ends.succeeds(&["unhold", name, "--yes"]);
        assert!(!run.stderr.contains("stays"), "{run:?}");
        let seen = by.get(&path);
        assert_eq!(record(&seen), (Value::Null, json!({})));
        assert!(!is_cordoned(by, &path));
        assert!(!seen.to_string().contains("scale-down-disabled"), "{seen}");
    }
}

/// This also works for a shared user name, which the policy only allows to take over. The policy admits that once for
/// each lock id.
#[test]
fn a_hold_after_a_killed_unhold_is_labeled_again() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-again");
    for (name, by) in [
        ("label-again-1", holder(plane, "label-alice")),
        ("label-again-2", admin(plane)),
    ] {
        let path = node(plane, name);
        by.succeeds(&["hold", name, "-m", "why"]);
        let seen = by.get(&path);
        let notes = seen["metadata"]["annotations"].as_object().expect("notes");
        let held = notes.keys().filter(|key| key.starts_with(KEY));
        let mut patch = json!({"metadata": {"labels": {(KEY): null}, "annotations": {}}});
        for key in held {
            patch["metadata"]["annotations"][key] = Value::Null;
        }
        let lock_id = &notes["kubectl-maint.dev/held-lock-id"];
        patch["metadata"]["annotations"]["kubectl-maint.dev/breaks"] = lock_id.clone();
        admitted(by.patch(&path, &patch), "what a killed unhold has written");
        for _ in 0..2 {
            let run = by.succeeds(&["hold", name, "-m", "why"]);
            assert!(!run.stderr.contains("without the held label"), "{run:?}");
            assert_eq!(record(&by.get(&path)).0, "true");
        }
        by.succeeds(&["unhold", name]);
        assert_eq!(record(&by.get(&path)), (Value::Null, json!({})));
    }
}

/// The keys of the copy belong to another field manager, and to a hold of the other Node.
#[test]
fn a_copy_of_a_node_on_hold_is_held_and_released() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-copy");
    let alice = holder(plane, "label-alice");
    let bob = holder(plane, "label-bob");
    let path = node(plane, "label-original");
    alice.succeeds(&["hold", "label-original", "-m", "why", "--cordon"]);
    let mut copy = alice.get(&path);
    let metadata = copy["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| ["labels", "annotations"].contains(&&**key));
    metadata.insert("name".to_owned(), json!("label-copy"));
    admitted(admin(plane).post(NODES, &copy), "a copy");
    let run = bob.succeeds(&["hold", "label-copy", "-m", "mine"]);
    assert!(!run.stderr.contains("without the held label"), "{run:?}");
    let path = format!("{NODES}/label-copy");
    let (label, notes) = record(&bob.get(&path));
    assert_eq!(
        (label, &notes["-user"]),
        (json!("true"), &json!("label-bob"))
    );
    bob.succeeds(&["unhold", "label-copy"]);
    let seen = bob.get(&path);
    assert_eq!(record(&seen), (Value::Null, json!({})));
    assert!(!is_cordoned(&bob, &path));
    assert!(!seen.to_string().contains("scale-down-disabled"), "{seen}");
}

/// Writes a condition as the kubelet does. This sets a time in the Node's managedFields.
fn heartbeat(plane: &ControlPlane, path: &str) {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": at(0),
    });
    let status = json!({"status": {"conditions": [condition]}});
    let path = format!("{path}/status");
    let written = admin(plane).send(http::Method::PATCH, &path, STRATEGIC, &status);
    admitted(written, "a heartbeat");
}

#[test]
fn a_lock_protects_its_node_until_it_expires() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-lock");
    let alice = holder(plane, "label-alice");
    let carol = person(plane, "label-carol", &["system:masters"]);
    let name = "label-lock";
    let path = node(plane, name);
    let cordon = |is: Value| carol.patch(&path, &json!({"spec": {"unschedulable": is}}));
    let lock = [
        "acquire",
        name,
        "-m",
        "new kernel",
        "--cordon",
        "--duration",
        "1h",
    ];
    alice.succeeds(&lock);
    let (label, notes) = record(&alice.get(&path));
    assert_eq!(label, "true");
    let until = notes["-until"].as_str().expect("an end").to_owned();
    heartbeat(plane, &path);
    let answer = carol.delete(&path);
    refused_by("maint-held-delete", &answer, "by another");
    let message = answer.expect_err("refused").message;
    let says =
        format!("the node is locked by label-alice (new kernel) until {until}; end the lock");
    assert!(message.contains(&says), "{message}");
    refused_by("maint-held-uncordon", &cordon(Value::Null), "by another");
    let later = json!({"metadata": {"annotations": {"kubectl-maint.dev/held-until": "2027"}}});
    refused_by("maint-held-record", &carol.patch(&path, &later), "its end");
    alice.succeeds(&["renew", name]);
    alice.succeeds(&["release", name]);
    assert_eq!(record(&alice.get(&path)), (Value::Null, json!({})));
    assert!(!is_cordoned(&alice, &path));

    // The lock expires. A write that sets a field records a time in managedFields.
    alice.succeeds(&["acquire", name, "--protect", "--duration", "3s"]);
    refused_by("maint-held-cordon", &cordon(json!(true)), "before the end");
    wait_until("the cordon is admitted", || cordon(json!(true)).is_ok());
    // A deletion records no time, so the policy uses the time of the cordon.
    assert_eq!(record(&alice.get(&path)).0, "true");
    admitted(carol.delete(&path), "expired");
}

#[test]
fn without_later_writes_an_expired_lock_is_cleaned_up_by_doctor() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-lapsed");
    let alice = holder(plane, "label-alice");
    let bob = holder(plane, "label-bob");
    let name = "label-lapsed";
    let path = node(plane, name);
    alice.succeeds(&[
        "acquire",
        name,
        "--protect",
        "--opt-outs=auto",
        "--duration",
        "3s",
    ]);
    wait_until("doctor removes the label", || {
        bob.maint(&["doctor", "--fix"]);
        record(&bob.get(&path)).0 == Value::Null
    });
    assert_eq!(record(&bob.get(&path)), (Value::Null, json!({})));
    // The next holder also uncordons the node.
    alice.succeeds(&["release", name]);
    alice.succeeds(&["acquire", name, "--protect", "--cordon", "--duration", "3s"]);
    wait_until("bob acquires it", || {
        bob.maint(&["acquire", name, "--take-expired"]).code == 0
    });
    assert_eq!(record(&bob.get(&path)), (Value::Null, json!({})));
    assert!(!is_cordoned(&bob, &path));
}

#[test]
fn an_end_that_is_no_time_is_no_error() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-end");
    let alice = holder(plane, "label-alice");
    let carol = person(plane, "label-carol", &["system:masters"]);
    let name = "label-end";
    let path = node(plane, name);
    alice.succeeds(&["acquire", name, "--protect"]);
    for end in ["never", "2026-99-99T99:99:99Z", "\u{1F600}"] {
        let end = json!({"metadata": {"annotations": {"kubectl-maint.dev/held-until": end}}});
        admitted(alice.patch(&path, &end), "by the holder");
        heartbeat(plane, &path);
        carol.delete(&path).expect_err("it may never expire");
    }
    alice.succeeds(&["release", name]);
}

#[test]
fn under_a_shared_name_a_renewal_moves_the_end() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-shared");
    let shared = person(plane, "kubernetes-admin", &["system:masters"]);
    let name = "label-shared";
    let path = node(plane, name);
    let with_holder = |verb: &[&str]| {
        let arguments = [verb, &["--holder", "label-uma"]].concat();
        let run = shared.succeeds(&arguments);
        assert!(!run.stderr.contains("held label"), "{run:?}");
    };
    with_holder(&["acquire", name, "--protect"]);
    let first = record(&shared.get(&path)).1["-until"].clone();
    with_holder(&["renew", name, "--duration", "1h"]);
    assert_ne!(record(&shared.get(&path)).1["-until"], first);
    with_holder(&["release", name]);
    assert_eq!(record(&shared.get(&path)).0, Value::Null);
}

#[test]
fn without_the_right_to_patch_nodes_a_lock_works() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-lock-rights");
    let uma = person(plane, "label-lock-uma", &[USERS]);
    let name = "label-lock-rights";
    let path = node(plane, name);
    let run = uma.succeeds(&["acquire", name, "--protect"]);
    assert!(
        run.stderr.contains("is locked without the held label"),
        "{run:?}"
    );
    uma.succeeds(&["renew", name]);
    uma.succeeds(&["release", name]);
    let run = uma.succeeds(&["with", name, "--protect", "--", "echo", "ran"]);
    assert_eq!(run.stdout, "ran\n", "{run:?}");
    assert_eq!(record(&uma.get(&path)).0, Value::Null);
    let run = uma.maint(&["acquire", name, "--cordon"]);
    assert_eq!(run.code, 1, "{run:?}");
}

#[test]
fn another_policy_may_refuse_the_cordon() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-no-cordon");
    let name = "label-no-cordon";
    let path = node(plane, name);
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"],
        "operations": ["UPDATE"], "resourceNames": [name],
    });
    let validation = json!({
        "expression": "!object.spec.?unschedulable.orValue(false)", "message": "not at night",
    });
    let admin = admin(plane);
    policy_of_somebody_else(&admin, name, &rule, &validation);
    let cordon = json!({"spec": {"unschedulable": true}});
    let dry_run = format!("{path}?dryRun=All");
    wait_until("it refuses", || admin.patch(&dry_run, &cordon).is_err());
    let bob = person(plane, "label-no-cordon-bob", &[USERS, HOLDERS]);
    let run = bob.maint(&["acquire", name, "--cordon"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("not at night"), "{run:?}");
}

#[test]
fn a_lock_whose_end_is_refused_keeps_what_it_set() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-end-refused");
    let alice = holder(plane, "label-end-alice");
    // Both may end locks of others on the Node, but not like this on the Lease.
    let nodes = || Rule::new("", &["nodes"], &["get", "patch"]);
    let leases = &["get", "list", "watch", "takeover"];
    let leases = Rule::new("coordination.k8s.io", &["leases"], leases);
    let rights = [nodes(), leases];
    plane.grant("label-end-nora", &rights).expect("rights");
    plane.grant("label-end-ada", &[nodes()]).expect("rights");
    let nora = person(plane, "label-end-nora", &[]);
    let ada = person(plane, "label-end-ada", &[USERS, ADMINISTRATORS]);
    let name = "label-end-refused";
    let path = node(plane, name);
    let lease = format!("{LEASES}/{name}");
    let lock = ["acquire", name, "--cordon"];
    let hold = ["hold", name, "--cordon", "-m", "disk"];
    let force = ["release", name, "--force", "--yes", "-m", "x"];
    for (lock, end, ends) in [
        (&lock[..], "release", &["release", name][..]),
        (&lock, "release", &force),
        (&hold, "unhold", &["unhold", name, "--yes"]),
    ] {
        alice.succeeds(&[lock, &["--holder", "ops"]].concat());
        let (set, before) = (record(&alice.get(&path)), alice.get(&lease));
        for (by, holder, why) in [
            (&nora, "ops", "patch leases.coordination.k8s.io"),
            (&nora, "nora", ""),
            (&ada, "ops", "maint-live-lock"),
        ] {
            let run = by.maint(&[ends, &["--holder", holder]].concat());
            assert_ne!(run.code, 0, "{run:?}");
            assert!(run.stderr.contains(why), "{run:?}");
            assert!(!run.stderr.contains("uncordoned"), "{run:?}");
            assert_eq!(record(&alice.get(&path)), set, "{run:?}");
            assert!(is_cordoned(&alice, &path), "{run:?}");
            assert_eq!(alice.get(&lease), before, "{run:?}");
        }
        alice.succeeds(&[end, name, "--holder", "ops"]);
        assert!(!is_cordoned(&alice, &path));
    }
}

/// A policy of somebody else, or a webhook that is down.
#[test]
fn a_lock_ends_if_the_write_to_its_node_is_refused() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("label-node-refused");
    let (admin, name) = (admin(plane), "label-node-refused");
    let alice = holder(plane, "label-node-alice");
    let path = node(plane, name);
    let guarded = json!({"metadata": {"labels": {"example.com/guarded": name}}});
    admitted(admin.patch(&path, &guarded), "a label");
    let policy = || {
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"],
            "operations": ["UPDATE"], "resourceNames": [name],
        });
        let validation = json!({
            "expression": "object.spec.?unschedulable.orValue(false) == true", "message": "not at night",
        });
        policy_of_somebody_else(&admin, name, &rule, &validation);
        format!("{BINDINGS}/{name}")
    };
    let webhook = || {
        let webhook = json!({
            "name": "guard.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "objectSelector": {"matchLabels": {"example.com/guarded": name}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"],
                "operations": ["UPDATE"],
            }],
        });
        let webhooks = json!({"metadata": {"name": name}, "webhooks": [webhook]});
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        admitted(admin.post(path, &webhooks), "a webhook");
        format!("{path}/{name}")
    };
    let change = json!({"spec": {"unschedulable": null}});
    let is_refused = || alice.patch(&format!("{path}?dryRun=All"), &change).is_err();
    let guards: [(&dyn Fn() -> String, &str); 2] = [
        (&policy, "not at night"),
        (&webhook, "failed calling webhook"),
    ];
    for (guard, why) in guards {
        alice.succeeds(&["acquire", name, "--cordon"]);
        let guard = guard();
        wait_until("it refuses", is_refused);
        let run = alice.succeeds(&["release", name]);
        assert!(run.stderr.contains(why), "{run:?}");
        let hint = format!("hint: to remove what is left: `kubectl maint unhold {name}`\n");
        assert!(run.stderr.ends_with(&hint), "{run:?}");
        let lease = alice.get(&format!("{LEASES}/{name}"));
        assert_eq!(lease["spec"]["holderIdentity"], "", "{run:?}");
        assert!(is_cordoned(&alice, &path));
        admitted(admin.delete(&guard), "its end");
        wait_until("it is gone", || !is_refused());
        alice.succeeds(&["unhold", name]);
        assert_eq!(record(&alice.get(&path)), (Value::Null, json!({})));
        assert!(!is_cordoned(&alice, &path));
    }
}
