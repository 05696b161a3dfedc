//! How the lease policy checks times: they must be close to the time of the write, which managedFields record and which
//! nobody can forge.

use control_plane::NodeSpec;
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, Audited, HOLDERS, LEASES, Mode, Person, USERS, admitted, at, denying, person,
    refused_by,
};

fn free(by: &Person, name: &str) -> String {
    let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": ""}});
    admitted(by.post(LEASES, &lease), "a free lease");
    format!("{LEASES}/{name}")
}

/// The acquisition with this value of `leaseTransitions`.
fn lock(by: &Person, count: i64, renewed: &str) -> Value {
    let spec = json!({
        "holderIdentity": "alice", "acquireTime": renewed, "renewTime": renewed,
        "leaseDurationSeconds": 600, "leaseTransitions": count,
    });
    by.signed(count, &spec)
}

#[test]
fn times_are_those_of_the_write() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("clock");
    let uma = person(plane, "uma", &[USERS]);
    let path = free(&uma, "clock");
    for seconds in [-3600, -7, 10, 3600, 1_000_000_000] {
        let answer = uma.patch(&path, &lock(&uma, 1, &at(seconds)));
        refused_by("maint-clock", &answer, &seconds.to_string());
    }
    let year_9999 = lock(&uma, 1, "9999-12-31T23:59:59.999999Z");
    refused_by("maint-clock", &uma.patch(&path, &year_9999), "year 9999");
    let created =
        json!({"metadata": {"name": "clock-made"}, "spec": lock(&uma, 1, &at(3600))["spec"]});
    refused_by("maint-clock", &uma.post(LEASES, &created), "a new lease");
    admitted(uma.patch(&path, &lock(&uma, 1, &at(-1))), "a slow client");
    let path = free(&uma, "clock-ahead");
    admitted(
        uma.patch(&path, &lock(&uma, 1, &at(5))),
        "a client that is ahead",
    );
    let renewal = json!({"spec": {"renewTime": at(30)}});
    refused_by("maint-clock", &uma.patch(&path, &renewal), "a renewal");
    // The times of a hold are not checked.
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let path = free(&hugo, "clock-hold");
    let spec = json!({"holderIdentity": "kubeadm:hugo", "renewTime": at(-3600)});
    let hold = hugo.signed(0, &spec);
    admitted(hugo.patch(&path, &hold), "a hold");
    admitted(
        hugo.patch(&path, &json!({"spec": {"holderIdentity": ""}})),
        "its end",
    );
}

/// The server stores a time in the year 1 as null.
#[test]
fn times_that_are_null_are_no_times() {
    let Some(audited) = Audited::in_turn() else {
        return;
    };
    let plane = &audited.plane;
    let _logs = plane.keep_logs_on_panic("null-times");
    let uma = person(plane, "uma", &[USERS]);
    let zero = "0001-01-01T00:00:00.000000Z";
    for (name, renewed, acquired) in [
        ("null-both", zero, Some(zero)),
        ("null-renewed", zero, None),
        ("null-acquired", "2020-01-01T00:00:00.000000Z", Some(zero)),
        ("null-older", zero, Some("2020-01-01T00:00:00.000000Z")),
    ] {
        audited.set_mode(Mode::Audit);
        plane
            .create_nodes(&[NodeSpec::ready(name)])
            .expect("a node");
        let spec = json!({
            "holderIdentity": "bob", "renewTime": renewed, "acquireTime": acquired,
            "leaseDurationSeconds": 600, "leaseTransitions": 1,
        });
        let lease = json!({"metadata": {"name": name}, "spec": spec});
        let lease = admitted(audited.admin.post(LEASES, &lease), name);
        let spec = lease["spec"].as_object().expect("a spec");
        assert!(spec.values().any(Value::is_null), "{lease}");
        audited.set_mode(Mode::Deny);
        uma.succeeds(&["acquire", name, "--take-expired"]);
        // A lock without times counts as expired, so removing them would end the lock early.
        let times = json!({"spec": {"renewTime": zero, "acquireTime": zero}});
        let path = format!("{LEASES}/{name}");
        refused_by("maint-live-lock", &uma.patch(&path, &times), name);
        uma.succeeds(&["release", name]);
    }
}

#[test]
fn many_writes_within_a_second_each_have_its_time() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("same-second");
    let uma = person(plane, "uma", &[USERS]);
    let path = free(&uma, "same-second");
    for query in ["", "?fieldManager=kubectl-maint", "?fieldManager=other"] {
        for _ in 0..10 {
            let path = format!("{path}{query}");
            admitted(uma.patch(&path, &lock(&uma, 1, &at(0))), query);
        }
    }
    // More field managers than the server keeps as separate entries.
    for number in 0..15 {
        let path = format!("{path}?fieldManager=manager-{number}");
        admitted(
            uma.patch(&path, &lock(&uma, 1, &at(0))),
            &number.to_string(),
        );
    }
}

/// The Lease with other managedFields.
fn with_fields(by: &Person, path: &str, fields: Value) -> Value {
    let mut lease = by.get(path);
    lease["metadata"]["managedFields"] = fields;
    lease
}

fn entry(manager: &str, time: &str) -> Value {
    json!({
        "manager": manager, "operation": "Update", "apiVersion": "coordination.k8s.io/v1",
        "time": time, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}},
    })
}

#[test]
fn forged_managed_fields_move_no_clock() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("forged");
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let ed = crate::support::admin(plane);
    let path = free(&ada, "forged");
    admitted(ada.patch(&path, &lock(&ada, 1, &at(0))), "a lock");

    let future = "2099-01-01T00:00:00Z";
    let forged = |manager: &str, renewed: &str| {
        let mut lease = ed.get(&path);
        let mut fields = lease["metadata"]["managedFields"].clone();
        let list = fields.as_array_mut().expect("a list");
        list.push(entry(manager, future));
        lease["metadata"]["managedFields"] = fields;
        lease["spec"]["renewTime"] = json!(renewed);
        lease
    };
    // The server itself sets the time of the writer's own entry. If that is the forged entry, the time is known, and
    // the renewal does not match it.
    for (manager, own, other) in [
        ("forger", "maint-clock", "maint-untracked"),
        ("ancient-changes", "maint-untracked", "maint-clock"),
        ("before-first-apply", "maint-clock", "maint-clock"),
    ] {
        let lease = forged(manager, "2099-01-01T00:00:00.000000Z");
        let answer = ed.put(&format!("{path}?fieldManager={manager}"), &lease);
        refused_by(own, &answer, manager);
        let answer = ed.put(&format!("{path}?fieldManager=someone"), &lease);
        refused_by(other, &answer, manager);
    }
    // A forged entry in a write that changed no times must not block later writes.
    let mut lease = ed.get(&path);
    lease["metadata"]["labels"] = json!({"a": "b"});
    let mut fields = lease["metadata"]["managedFields"].clone();
    fields
        .as_array_mut()
        .expect("a list")
        .push(entry("forger", future));
    lease["metadata"]["managedFields"] = fields;
    admitted(
        ed.put(&format!("{path}?fieldManager=someone"), &lease),
        "a label",
    );
    let stored = ed.get(&path)["metadata"]["managedFields"].to_string();
    assert!(stored.contains("2099"), "{stored}");
    for _ in 0..2 {
        admitted(ada.patch(&path, &lock(&ada, 1, &at(0))), "a renewal");
    }
    let answer = ada.patch(&path, &lock(&ada, 1, "2099-01-01T00:00:00.000000Z"));
    refused_by("maint-clock", &answer, "the forged time");
}

/// The repair that docs/policies.md describes.
fn repair(by: &Person, name: &str) {
    let applied = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "annotations": {"kubectl-maint.dev/repaired": "true"}},
    });
    let apply = by.send(
        http::Method::PATCH,
        &format!("{LEASES}/{name}?fieldManager=repair"),
        "application/apply-patch+yaml",
        &applied,
    );
    admitted(apply, "an apply");
}

#[test]
fn without_managed_fields_a_lock_is_renewed_but_not_taken() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("untracked");
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let ed = crate::support::admin(plane);
    let path = free(&ada, "untracked");
    let now = at(0);
    let mut short = lock(&ada, 1, &now);
    short["spec"]["leaseDurationSeconds"] = json!(1);
    admitted(ada.patch(&path, &short), "a lock");

    // A write that resets managedFields and changes a time is refused.
    let mut reset = with_fields(&ed, &path, json!([{}]));
    reset["spec"]["renewTime"] = json!("2099-01-01T00:00:00.000000Z");
    refused_by(
        "maint-untracked",
        &ed.put(&path, &reset),
        "a reset with a time",
    );
    let reset = with_fields(&ed, &path, json!([{}]));
    admitted(ed.put(&path, &reset), "a reset");
    let fields = &ed.get(&path)["metadata"]["managedFields"];
    assert!(fields.is_null(), "{fields}");

    admitted(
        ada.patch(&path, &json!({"spec": {"renewTime": at(0)}})),
        "a renewal",
    );
    let other = person(plane, "uma", &[USERS]);
    for seconds in [0, 1_000_000_000] {
        let renewal = json!({"spec": {"renewTime": at(seconds)}});
        let answer = other.patch(&path, &renewal);
        refused_by("maint-untracked", &answer, "another user's renewal");
    }
    // Without the time of the write, the policy can't tell whether the lock has expired.
    let take = ada.signed(2, &json!({"holderIdentity": "bob", "leaseTransitions": 2}));
    refused_by("maint-untracked", &ada.patch(&path, &take), "a takeover");
    // An apply that owns a field makes the server record times again.
    repair(&ed, "untracked");
    crate::support::wait_until("it can be taken", || ada.patch(&path, &take).is_ok());
}

#[test]
fn nobody_acquires_a_lease_without_managed_fields() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("untracked-free");
    let uma = person(plane, "uma", &[USERS]);
    let path = free(&uma, "untracked-free");
    let reset = with_fields(&uma, &path, json!([{}]));
    admitted(uma.patch(&path, &reset), "a reset");
    let acquire = |seconds: i64| uma.patch(&path, &lock(&uma, 1, &at(seconds)));
    refused_by("maint-untracked", &acquire(1_000_000_000), "far ahead");
    refused_by("maint-untracked", &acquire(0), "now");
    // Two steps are refused as well: first a time, and then a holder.
    let ahead = json!({"spec": {"renewTime": at(1_000_000_000)}});
    admitted(uma.patch(&path, &ahead), "the time of a free lease");
    let spec =
        json!({"holderIdentity": "alice", "leaseDurationSeconds": 600, "leaseTransitions": 1});
    let holder = uma.signed(1, &spec);
    let answer = uma.patch(&path, &holder);
    refused_by("maint-untracked", &answer, "the holder alone");
    repair(&uma, "untracked-free");
    refused_by("maint-clock", &uma.patch(&path, &holder), "the old time");
    admitted(acquire(0), "after the repair");
}

/// The times of a hold are not checked, so the next lock must not use them.
#[test]
fn times_of_a_hold_are_not_those_of_the_next_lock() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("hold-times");
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let uma = person(plane, "uma", &[USERS]);
    let path = free(&hugo, "hold-times");
    let spec = json!({"holderIdentity": "kubeadm:hugo", "renewTime": at(1_000_000_000)});
    admitted(hugo.patch(&path, &hugo.signed(0, &spec)), "a hold");
    let end = json!({"spec": {"holderIdentity": ""}});
    admitted(hugo.patch(&path, &end), "its end");
    let spec =
        json!({"holderIdentity": "alice", "leaseDurationSeconds": 600, "leaseTransitions": 1});
    let answer = uma.patch(&path, &uma.signed(1, &spec));
    refused_by("maint-clock", &answer, "the time of the hold");
    admitted(
        uma.patch(&path, &lock(&uma, 1, &at(0))),
        "a time of its own",
    );
}

/// One entry more than the server keeps separately, all with a time in the future. The server merges the oldest ones,
/// and the merged entry has the latest of their times.
fn crowd() -> Vec<Value> {
    let managers = (0..11).map(|number| {
        let mut entry = entry(&format!("forger-{number}"), "2099-01-01T00:00:00Z");
        // A field that no later write changes, because the server removes an entry without fields.
        entry["fieldsV1"] = json!({"f:spec": {"f:leaseDurationSeconds": {}}});
        entry
    });
    managers.collect()
}

fn with_more_fields(by: &Person, path: &str, more: Vec<Value>, mut patch: Value) -> Value {
    let lease = by.get(path);
    let mut fields = lease["metadata"]["managedFields"].clone();
    fields.as_array_mut().expect("a list").extend(more);
    patch["metadata"]["managedFields"] = fields;
    patch
}

#[test]
fn entries_that_the_server_merges_move_no_clock() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("crowd");
    let uma = person(plane, "uma", &[USERS]);
    let path = free(&uma, "crowd");
    admitted(uma.patch(&path, &lock(&uma, 1, &at(0))), "a lock");
    let theft = || lock(&uma, 2, "2099-01-01T00:00:00.000000Z");
    let at_once = with_more_fields(&uma, &path, crowd(), theft());
    refused_by("maint-untracked", &uma.patch(&path, &at_once), "at once");

    let only_fields = with_more_fields(&uma, &path, crowd(), json!({}));
    admitted(uma.patch(&path, &only_fields), "entries alone");
    let query = format!("{path}?fieldManager=late");
    refused_by("maint-live-lock", &uma.patch(&query, &theft()), "later");
    let renewal = json!({"spec": {"renewTime": at(0)}});
    admitted(uma.patch(&query, &renewal), "a renewal");
}

/// The second write gets no new entry, because it has the same field manager and the same second as the first one.
#[test]
fn an_entry_beside_a_write_of_the_same_second_moves_no_clock() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("beside");
    let uma = person(plane, "uma", &[USERS]);
    let path = free(&uma, "beside");
    admitted(uma.patch(&path, &lock(&uma, 1, &at(0))), "a lock");
    for number in 0..10 {
        let label = json!({"metadata": {"labels": {"number": number.to_string()}}});
        admitted(uma.patch(&path, &label), "a label");
        let forged = vec![entry("forger", "2099-01-01T00:00:00Z")];
        let theft = lock(&uma, 2, "2099-01-01T00:00:00.000000Z");
        let theft = with_more_fields(&uma, &path, forged, theft);
        let answer = uma.patch(&path, &theft);
        let refusal = answer.expect_err("the lock is live").message;
        assert!(refusal.contains("denied request: maint-"), "{refusal}");
    }
}
