//! The held label as `hold` and `unhold` write it, with the node policy in deny mode.

use control_plane::{ControlPlane, NodeSpec};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, NODES, Person, USERS, admin, admitted, at, denying, person,
    refused_by,
};

const KEY: &str = "kubectl-maint.dev/held";

fn node(plane: &ControlPlane, name: &str) -> String {
    let created = plane.create_nodes(&[NodeSpec::ready(name)]);
    created.expect("a node");
    format!("{NODES}/{name}")
}

/// The label, and the annotations of the hold.
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
fn says_what_the_hold_says_and_goes_with_it() {
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

    // The same command again writes the new reason. Without the label, it repairs it.
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
        // Without the flag, the cordon stays.
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
    // The right to hold, and none on Nodes but to read them.
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
    let run = uma.maint(&["hold", name, "-m", "why", "--cordon"]);
    assert_eq!(run.code, 1, "{run:?}");
    uma.succeeds(&["unhold", name]);
    let lease = uma.get(&format!("{LEASES}/{name}"));
    assert_eq!(lease["spec"]["holderIdentity"], "");
    // The label of somebody else stays, and is reported.
    let alice = holder(plane, "label-alice");
    alice.succeeds(&["hold", name, "-m", "why"]);
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
        run.stderr.contains("if it has a held label, that stays"),
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

    // A hold that ended without its label: the next one replaces it, with a cordon.
    alice.succeeds(&["hold", name, "-m", "why"]);
    let lease = format!("{LEASES}/{name}");
    let free =
        json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": at(0)}});
    admitted(alice.patch(&lease, &free), "a release by another client");
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-alice");
    bob.succeeds(&["hold", name, "-m", "mine", "--cordon"]);
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-bob");
    assert!(is_cordoned(&bob, &path));

    // The takeover of a hold keeps its cordon, until its own end.
    ada.succeeds(&["hold", name, "-m", "burning smell", "--take-over", "--yes"]);
    assert_eq!(record(&bob.get(&path)).1["-user"], "label-ada");
    assert!(is_cordoned(&bob, &path));
    ada.succeeds(&["unhold", name]);
    assert!(!is_cordoned(&bob, &path));
    assert_eq!(record(&admin(plane).get(&path)).0, Value::Null);
}

/// Also under a name that many people share: the policy lets it only take over, once for each lock id.
#[test]
fn a_hold_behind_a_killed_unhold_is_labelled_again() {
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
