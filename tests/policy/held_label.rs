//! The held label, as locks and holds write it, with the node policy in deny mode.

use control_plane::{ControlPlane, NodeSpec};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, NODES, Person, STRATEGIC, USERS, admin, admitted, at, denying,
    person, refused_by, wait_until,
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
    assert_eq!(label, "label-alice");
    let expected = json!({
        "-by": "label-alice", "-user": "label-alice", "-reason": "bad DIMM", "-ticket": "OPS-7",
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
    assert_eq!(notes["-ticket"], "OPS-7");
    let unlabel = json!({"metadata": {"labels": {(KEY): null}}});
    admitted(alice.patch(&path, &unlabel), "by the holder");
    alice.succeeds(&["hold", name, "-m", "parts ordered"]);
    assert_eq!(record(&alice.get(&path)).0, "label-alice");

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
        // Without --cordon, the node stays cordoned.
        alice.succeeds(&["hold", name, "-m", "because"]);
        assert!(is_cordoned(&alice, &path));
        if !was_cordoned {
            let answer = carol.patch(&path, &spec(Value::Null));
            refused_by("maint-held-uncordon", &answer, "by another");
            let mut reset = alice.get(&path);
            reset["metadata"]["managedFields"] = json!([{}]);
            let answer = carol.send(http::Method::PUT, &path, "application/json", &reset);
            refused_by("maint-held-uncordon", &answer, "who owns it");
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

    // A hold that another client ended, without its label: the next hold replaces the label.
    alice.succeeds(&["hold", name, "-m", "why"]);
    let lease = format!("{LEASES}/{name}");
    let free =
        json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": at(0)}});
    admitted(alice.patch(&lease, &free), "a release by another client");
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-alice");
    // Nothing proves that alice's hold has ended, so a user who may not take over can't cordon in the same write.
    let run = bob.maint(&["hold", name, "-m", "mine", "--cordon"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("maint-held-cordon"), "{run:?}");
    bob.succeeds(&["hold", name, "-m", "mine"]);
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-bob");
    bob.succeeds(&["hold", name, "-m", "mine", "--cordon"]);
    assert!(is_cordoned(&bob, &path));

    // The takeover of a hold keeps its cordon. The end of the new hold removes it.
    ada.succeeds(&["hold", name, "-m", "burning smell", "--take-over", "--yes"]);
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-ada");
    assert!(is_cordoned(&bob, &path));
    ada.succeeds(&["unhold", name]);
    assert!(!is_cordoned(&bob, &path));
    assert_eq!(record(&admin(plane).get(&path)).0, Value::Null);
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
    assert_eq!(label, "label-alice");
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
    alice.succeeds(&["acquire", name, "--opt-outs=none", "--duration", "3s"]);
    refused_by("maint-held-cordon", &cordon(json!(true)), "before the end");
    wait_until("the cordon is admitted", || cordon(json!(true)).is_ok());
    // A deletion records no time, so the policy uses the time of the cordon.
    assert_eq!(record(&alice.get(&path)).0, "label-alice");
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
    alice.succeeds(&["acquire", name, "--opt-outs=auto", "--duration", "3s"]);
    wait_until("doctor removes the label", || {
        bob.maint(&["doctor", "--fix"]);
        record(&bob.get(&path)).0 == Value::Null
    });
    assert_eq!(record(&bob.get(&path)), (Value::Null, json!({})));
    // So does the next lock, which asks for no keys.
    alice.succeeds(&["acquire", name, "--opt-outs=auto", "--duration", "3s"]);
    wait_until("bob acquires it", || {
        bob.maint(&["acquire", name]).code == 0
    });
    assert_eq!(record(&bob.get(&path)), (Value::Null, json!({})));
    bob.succeeds(&["release", name]);
    // The cordon stays until the lock of the next holder ends.
    alice.succeeds(&["release", name]);
    alice.succeeds(&["acquire", name, "--cordon", "--duration", "3s"]);
    wait_until("bob acquires it", || {
        bob.maint(&["acquire", name, "--take-expired"]).code == 0
    });
    assert_eq!(record(&bob.get(&path)).0, "label-bob");
    assert!(is_cordoned(&bob, &path));
    bob.succeeds(&["release", name]);
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
    alice.succeeds(&["acquire", name, "--opt-outs=none"]);
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
    with_holder(&["acquire", name, "--opt-outs=none"]);
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
    let run = uma.succeeds(&["acquire", name, "--opt-outs=none"]);
    assert!(
        run.stderr.contains("is locked without the held label"),
        "{run:?}"
    );
    uma.succeeds(&["renew", name]);
    uma.succeeds(&["release", name]);
    let run = uma.succeeds(&["with", name, "--opt-outs=none", "--", "echo", "ran"]);
    assert_eq!(run.stdout, "ran\n", "{run:?}");
    assert_eq!(record(&uma.get(&path)).0, Value::Null);
    let run = uma.maint(&["acquire", name, "--cordon"]);
    assert_eq!(run.code, 1, "{run:?}");
}
