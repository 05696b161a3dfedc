//! The node policy and the held label: who may write it, change it and remove it.

use control_plane::{ControlPlane, NodeSpec, Rule};
use maintenance_lease::protocol::identity::SHARED_USERS;
use serde_json::{Value, json};

use crate::node_others::hold;
use crate::support::{
    ADMINISTRATORS, Answer, NODES, Person, admitted, denying, manifest, person, refused_by,
};

/// A user who may change Nodes and lock them.
fn keeper(plane: &ControlPlane, name: &str, groups: &[&str]) -> Person {
    let leases = Rule::new("coordination.k8s.io", &["leases"], &["patch"]);
    plane.grant(name, &[leases]).expect("rights");
    controller(plane, name, groups)
}

/// A user who may change Nodes but not lock them.
fn controller(plane: &ControlPlane, name: &str, groups: &[&str]) -> Person {
    let nodes = Rule::new("", &["nodes", "nodes/status"], &["get", "patch", "delete"]);
    plane.grant(name, &[nodes]).expect("rights");
    person(plane, name, groups)
}

fn node(plane: &ControlPlane, name: &str) -> String {
    plane
        .create_nodes(&[NodeSpec::ready(name)])
        .expect("a node");
    format!("{NODES}/{name}")
}

fn note(name: &str, value: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {(format!("kubectl-maint.dev/{name}")): value}}})
}

/// Cordons the node as the plugin does for a lock.
pub(crate) fn cordon_by_lock(by: &Person, path: &str) -> Answer {
    let cordon = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": by.get(path)["metadata"]["name"]},
        "spec": {"unschedulable": true},
    });
    let path = format!("{path}?fieldManager=kubectl-maint-node-keys&force=true");
    let kind = "application/apply-patch+yaml";
    by.send(http::Method::PATCH, &path, kind, &cordon)
}

fn unlabel() -> Value {
    json!({"metadata": {"labels": {"kubectl-maint.dev/held": null}}})
}

#[test]
fn a_hold_is_written_in_ones_own_name_with_its_lock_id() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-own");
    let alice = keeper(plane, "alice", &[]);
    let path = node(plane, "record-own");
    let status = format!("{path}/status");
    let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
    for (what, patch) in [
        ("no annotations", label),
        ("another's name", hold("u.1.n", "bob")),
        ("no lock id", hold("", "alice")),
    ] {
        for path in [&path, &status] {
            refused_by("maint-held-user", &alice.patch(path, &patch), what);
        }
    }
    admitted(alice.patch(&path, &hold("u.1.n", "alice")), "an own hold");
    let reason = note("held-reason", Some("new disk"));
    admitted(alice.patch(&path, &reason), "another reason");
    let other = note("held-user", Some("bob"));
    refused_by("maint-held-user", &alice.patch(&path, &other), "given away");
    admitted(alice.patch(&path, &unlabel()), "its end");
}

#[test]
fn nobody_else_changes_what_is_written() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-others");
    let alice = keeper(plane, "alice", &[]);
    // The right to take over does not help.
    for (name, groups) in [("bob", &[][..]), ("ada", &[ADMINISTRATORS][..])] {
        let bob = keeper(plane, name, groups);
        let path = node(plane, &format!("record-{name}"));
        admitted(alice.patch(&path, &hold("u.1.n", "alice")), "a hold");
        admitted(
            alice.patch(&path, &note("held-ticket", Some(""))),
            "no ticket",
        );
        for (what, patch) in [
            ("no label", unlabel()),
            (
                "another label",
                json!({"metadata": {"labels": {"kubectl-maint.dev/held": "no"}}}),
            ),
            ("no lock id", note("held-lock-id", None)),
            ("another reason", note("held-reason", Some("mine"))),
            ("a new annotation", note("held-until", Some("2027"))),
            ("another's name", note("held-user", Some(name))),
            ("an empty annotation", note("held-ticket", None)),
        ] {
            for path in [&path, &format!("{path}/status")] {
                refused_by("maint-held-record", &bob.patch(path, &patch), what);
            }
        }
        refused_by("maint-held-delete", &bob.delete(&path), "deleted");
        admitted(bob.patch(&path, &note("fenced", Some("x"))), "another key");
    }
}

/// The end of the record in `hold`, as a whole.
fn end() -> Value {
    let mut end = hold("u.1.n", "alice");
    let notes = end["metadata"]["annotations"].as_object_mut();
    notes
        .into_iter()
        .flatten()
        .for_each(|(_, note)| *note = Value::Null);
    end["metadata"]["labels"]["kubectl-maint.dev/held"] = Value::Null;
    end
}

#[test]
fn a_takeover_removes_the_record_as_a_whole() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-takeover");
    let alice = keeper(plane, "alice", &[]);
    let bob = keeper(plane, "bob", &[]);
    let ada = keeper(plane, "ada", &[ADMINISTRATORS]);
    let path = node(plane, "record-takeover");
    admitted(alice.patch(&path, &hold("u.1.n", "alice")), "a hold");
    let answer = bob.patch(&path, &end());
    refused_by("maint-held-record", &answer, "no right");
    let answer = ada.patch(&path, &unlabel());
    refused_by("maint-held-record", &answer, "the label alone");
    admitted(ada.patch(&path, &end()), "a takeover");
    let cordon = json!({"spec": {"unschedulable": true}});
    admitted(bob.patch(&path, &cordon), "free");
}

/// The server ignores a message with a line break.
#[test]
fn a_reason_of_two_lines_keeps_the_code() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-lines");
    let alice = keeper(plane, "alice", &[]);
    let bob = keeper(plane, "bob", &[]);
    let path = node(plane, "record-lines");
    admitted(alice.patch(&path, &hold("u.1.n", "alice")), "a hold");
    let reason = note("held-reason", Some("bad DIMM\nparts ordered"));
    admitted(alice.patch(&path, &reason), "a reason");
    let answer = bob.delete(&path);
    refused_by("maint-held-delete", &answer, "two lines");
    let message = answer.expect_err("refused").message;
    assert!(message.contains("(bad DIMM parts ordered)"), "{message}");
    // The server also ignores a message that is too long.
    let reason = note("held-reason", Some(&"x".repeat(6000)));
    admitted(alice.patch(&path, &reason), "a reason");
    refused_by("maint-held-delete", &bob.delete(&path), "too long");
}

#[test]
fn a_new_holder_replaces_the_label() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-new");
    let alice = keeper(plane, "alice", &[]);
    let bob = keeper(plane, "bob", &[]);
    let path = node(plane, "record-new");
    admitted(alice.patch(&path, &hold("u.1.n", "alice")), "a hold");
    let same = hold("u.1.n", "bob");
    refused_by(
        "maint-held-record",
        &bob.patch(&path, &same),
        "the same lock",
    );
    // Any user can invent a lock id. A write with a new record must not change anything else that
    // the old lock protects.
    let with_spec = |spec: Value| {
        let mut new = hold("u.2.m", "bob");
        new["spec"] = spec;
        new
    };
    let cordon = json!({"unschedulable": true});
    let answer = bob.patch(&path, &with_spec(cordon.clone()));
    refused_by("maint-held-cordon", &answer, "a new lock, with a cordon");
    let taints = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    let answer = bob.patch(&path, &with_spec(json!({ "taints": taints })));
    refused_by("maint-held-taint", &answer, "a new lock, with a taint");
    let cordoned = json!({ "spec": cordon });
    admitted(cordon_by_lock(&alice, &path), "the lock's cordon");
    let answer = bob.patch(&path, &with_spec(json!({"unschedulable": null})));
    refused_by(
        "maint-held-uncordon",
        &answer,
        "a new lock, with an uncordon",
    );
    let mut own = hold("u.2.n", "alice");
    own["spec"] = json!({"unschedulable": null});
    admitted(
        alice.patch(&path, &own),
        "the holder's new lock, with an uncordon",
    );
    admitted(bob.patch(&path, &hold("u.3.m", "bob")), "a new lock");
    admitted(bob.patch(&path, &cordoned), "the new holder's cordon");
    // It is not that of the lock.
    let uncordon = json!({"spec": {"unschedulable": null}});
    admitted(alice.patch(&path, &uncordon), "another's");
    admitted(cordon_by_lock(&bob, &path), "the new lock's cordon");
    refused_by(
        "maint-held-record",
        &alice.patch(&path, &unlabel()),
        "a late end",
    );
    refused_by(
        "maint-held-uncordon",
        &alice.patch(&path, &uncordon),
        "another's",
    );
    admitted(bob.patch(&path, &uncordon), "one's own");
}

/// With an invented lock id, they could otherwise make any change to a held node.
#[test]
fn users_who_may_not_lock_a_node_are_no_new_holders() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-unable");
    let alice = keeper(plane, "alice", &[]);
    let carl = controller(plane, "carl", &[]);
    let path = node(plane, "record-unable");
    let own = hold("u.1.n", "carl");
    let answer = carl.patch(&path, &own);
    refused_by("maint-held-user", &answer, "a free node");
    let message = answer.expect_err("refused").message;
    assert!(
        message.contains(r#"carl needs the right "patch" on leases"#),
        "{message}"
    );
    admitted(alice.patch(&path, &hold("u.2.n", "alice")), "a hold");
    for path in [&path, &format!("{path}/status")] {
        refused_by("maint-held-record", &carl.patch(path, &own), "a held node");
    }
    refused_by("maint-held-delete", &carl.delete(&path), "deleted");
    admitted(carl.patch(&path, &note("fenced", Some("x"))), "another key");
    admitted(alice.patch(&path, &unlabel()), "its end");
    // The right for this one node is enough.
    let lease = Rule::new("coordination.k8s.io", &["leases"], &["patch"]);
    let lease = lease.named(&["record-unable"]);
    plane.grant("carl", &[lease]).expect("rights");
    admitted(carl.patch(&path, &hold("u.3.n", "carl")), "a hold");
    let other = node(plane, "record-unable-too");
    refused_by("maint-held-user", &carl.patch(&other, &own), "another node");
}

/// The plugin does not use these names as holders either.
#[test]
fn the_shared_names_are_those_of_the_plugin() {
    let policy = std::fs::read_to_string(manifest("node-policy.yaml")).expect("a policy");
    let listed = policy.split("variables.user in").nth(1).expect("a list");
    let listed = listed.split(['[', ']']).nth(1).expect("a list");
    let listed: Vec<&str> = listed
        .split(',')
        .map(|name| name.trim().trim_matches('\''))
        .collect();
    assert_eq!(listed, SHARED_USERS);
}

#[test]
fn a_shared_name_is_nobodys_own() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-shared");
    let shared = person(plane, "kubernetes-admin", &["system:masters"]);
    let path = node(plane, "record-shared");
    admitted(
        shared.patch(&path, &hold("u.1.n", "kubernetes-admin")),
        "a hold",
    );
    refused_by(
        "maint-held-delete",
        &shared.delete(&path),
        "by a program, perhaps",
    );
    let cordon = json!({"spec": {"unschedulable": true}});
    refused_by("maint-held-cordon", &shared.patch(&path, &cordon), "cordon");
    admitted(shared.patch(&path, &end()), "an end");
    admitted(shared.delete(&path), "free");
}

#[test]
fn an_older_label_protects_nothing_and_blocks_nobody() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("record-old");
    let bob = keeper(plane, "bob", &[]);
    let admin = crate::support::admin(plane);
    let old = json!({"metadata": {
        "name": "record-old", "labels": {"kubectl-maint.dev/held": "true"},
    }});
    admitted(admin.post(NODES, &old), "a node with a label alone");
    let path = format!("{NODES}/record-old");
    admitted(
        bob.patch(&path, &json!({"spec": {"unschedulable": true}})),
        "a cordon",
    );
    admitted(bob.patch(&path, &unlabel()), "no label");
}
