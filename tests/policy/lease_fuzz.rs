//! Random patches of Leases by users with different rights. This file repeats the rules of the policy: the policy must
//! admit exactly what these rules allow.

use chrono::{DateTime, Utc};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, NODES, Person, USERS, admin, at, denying, person,
};

const LEASE_COUNT: usize = 12;
const PATCHES: usize = 30;

/// The annotations of an acquisition.
const RECORD: [&str; 10] = [
    "acquisition",
    "reason",
    "ticket",
    "hold-until",
    "purpose",
    "last-holder",
    "released-at",
    "released-by",
    "last-acquisition",
    "breaks",
];

/// Our annotations that belong to no acquisition, and one of another tool.
const OTHERS: [&str; 3] = [
    "kubectl-maint.dev/fenced",
    "kubectl-maint.dev/repaired",
    "example.com/x",
];

/// A user, and the rights that the policy checks.
struct Writer {
    person: Person,
    may_hold: bool,
    may_take_over: bool,
}

/// One of the values, or `None` to keep the current one.
fn one_of(rng: &mut Rng, values: &[Value]) -> Option<Value> {
    (rng.u8(..2) == 0).then(|| values[rng.usize(..values.len())].clone())
}

fn text<'v>(lease: &'v Value, field: &str) -> &'v str {
    lease["spec"][field].as_str().unwrap_or_default()
}

fn number(lease: &Value, field: &str) -> i64 {
    lease["spec"][field].as_i64().unwrap_or_default()
}

/// The time of the last renewal, in seconds since 1970, or 0 without times.
fn start(lease: &Value) -> f64 {
    let start = [text(lease, "renewTime"), text(lease, "acquireTime")];
    let start = start.into_iter().find(|time| !time.is_empty());
    start.map_or(0.0, seconds)
}

/// The end of the lock, in seconds since 1970. Without times, the lock has ended.
fn end(lease: &Value) -> f64 {
    match start(lease) {
        0.0 => 0.0,
        start => start + number(lease, "leaseDurationSeconds") as f64,
    }
}

fn seconds(time: &str) -> f64 {
    let time = DateTime::parse_from_rfc3339(time).expect("a time");
    time.timestamp_micros() as f64 / 1e6
}

fn note<'v>(lease: &'v Value, name: &str) -> &'v str {
    let notes = &lease["metadata"]["annotations"];
    notes[format!("kubectl-maint.dev/{name}")]
        .as_str()
        .unwrap_or_default()
}

/// Whether the write acquires the lock.
fn is_acquired(old: &Value, new: &Value) -> bool {
    let holders = [old, new].map(|lease| text(lease, "holderIdentity"));
    let counts = [old, new].map(|lease| number(lease, "leaseTransitions"));
    let marks = [old, new].map(|lease| note(lease, "acquisition"));
    let is_new = holders[0] != holders[1] || counts[0] != counts[1];
    let is_marked = marks[0] != marks[1] && !marks[1].is_empty();
    !holders[1].is_empty() && (is_new || is_marked)
}

/// The API user that the Lease must name: the writer for a new acquisition, else the previous user.
fn user(old: &Value, new: &Value, by: &Writer) -> String {
    match is_acquired(old, new) {
        true => format!("{}-{}", number(new, "leaseTransitions"), by.person.name),
        false => note(old, "user").to_owned(),
    }
}

fn mark(lease: &Value) -> Option<&str> {
    let mark = lease["metadata"]["annotations"]["kubectl-maint.dev/acquisition"].as_str()?;
    let count = number(lease, "leaseTransitions");
    mark.starts_with(&format!("{count}-")).then_some(mark)
}

fn lock_id(lease: &Value) -> String {
    let uid = lease["metadata"]["uid"].as_str().expect("a uid");
    let count = number(lease, "leaseTransitions");
    let nonce = mark(lease).and_then(|mark| mark.split_once('-'));
    format!("{uid}.{count}.{}", nonce.map_or("", |(_, nonce)| nonce))
}

/// The parts of an acquisition outside the spec: the owner references and our annotations.
fn record(lease: &Value) -> (Vec<Value>, Vec<&Value>) {
    let metadata = &lease["metadata"];
    let owners = metadata["ownerReferences"].as_array();
    let note = |name| &metadata["annotations"][format!("kubectl-maint.dev/{name}")];
    let notes = RECORD.into_iter().map(note);
    (owners.cloned().unwrap_or_default(), notes.collect())
}

fn is_admin(holder: &str) -> bool {
    holder.starts_with("kubeadm")
}

/// Whether the rules allow the write. `None` if a difference of one second decides.
fn is_allowed(old: &Value, new: &Value, by: &Writer) -> Option<bool> {
    let now = Utc::now().timestamp_micros() as f64 / 1e6;
    let (was, is) = (text(old, "holderIdentity"), text(new, "holderIdentity"));
    let counts = [old, new].map(|lease| number(lease, "leaseTransitions"));
    let is_new_count = counts[0] != counts[1];
    if is_new_count && counts[1] != counts[0] + 1 {
        return Some(false);
    }
    if is_admin(is) && (is != was || is_new_count) && !by.may_hold {
        return Some(false);
    }
    if is_admin(was) && is != was && !by.may_hold && !by.may_take_over {
        return Some(false);
    }
    let changed = |field: &str| {
        let value = &new["spec"][field];
        !value.is_null() && *value != old["spec"][field]
    };
    let fields = [
        "renewTime",
        "acquireTime",
        "holderIdentity",
        "leaseTransitions",
        "leaseDurationSeconds",
    ];
    let has_clock = fields.into_iter().any(changed);
    let times = ["renewTime", "acquireTime"]
        .into_iter()
        .filter(|field| changed(field));
    let mut times = times.map(|field| seconds(text(new, field)) - now);
    if !is_admin(is) && times.any(|offset| !(-3.0..6.0).contains(&offset)) {
        return Some(false);
    }
    if is_acquired(old, new) && !is_admin(is) && has_clock && start(new) > now + 6.0 {
        return Some(false);
    }
    let mark_changed = mark(old).is_some_and(|mark| {
        new["metadata"]["annotations"]["kubectl-maint.dev/acquisition"] != mark
    });
    if note(new, "user") != user(old, new, by) {
        return Some(false);
    }
    let is_replaced = !is.is_empty() && (is != was || is_new_count || mark_changed);
    let is_shortened = is == was && !is_admin(was) && end(new) < end(old);
    let breaks = &new["metadata"]["annotations"]["kubectl-maint.dev/breaks"];
    let is_taken_over = *breaks == lock_id(old) && by.may_take_over;
    let is_ended = is.is_empty() && !was.is_empty();
    let named = note(old, "user").strip_prefix(&format!("{}-", counts[0]));
    let is_own = named.is_none_or(|named| named == by.person.name);
    let is_same_hold = is == was && is_admin(was);
    let is_own_end = is_own && (is_ended || is == format!("kubeadm:{was}") || is_same_hold);
    let is_ended_early = (is_replaced || is_shortened || is_ended) && !is_own_end;
    let is_record_changed = !is_own && record(old) != record(new);
    let over = now - end(old) - 1.0;
    let is_expired = (over.abs() > 3.0).then_some(over > 0.0);
    let is_longer = is == was && !is_own && !is_acquired(old, new) && end(new) > end(old);
    if !was.is_empty() && !is_admin(was) && has_clock && is_longer && is_expired != Some(false) {
        return is_expired.map(|_| false);
    }
    if was.is_empty() || !(is_ended_early || is_record_changed) || is_taken_over {
        return Some(true);
    }
    if is_admin(was) || !has_clock {
        return Some(false);
    }
    is_expired
}

/// `patch` applied to `lease`, for the fields that the rules read.
fn patched(lease: &Value, patch: &Value) -> Value {
    let mut lease = lease.clone();
    for (part, changes) in [
        ("/spec", &patch["spec"]),
        ("/metadata/annotations", &patch["metadata"]["annotations"]),
    ] {
        let fields = lease.pointer_mut(part).and_then(Value::as_object_mut);
        let fields = fields.expect("it is there");
        for (name, value) in changes.as_object().expect("an object") {
            fields.remove(name);
            if !value.is_null() {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
    if let Some(owners) = patch["metadata"].get("ownerReferences") {
        lease["metadata"]["ownerReferences"] = owners.clone();
    }
    lease
}

/// Random changes of metadata that do not affect the times of a lock.
fn random_metadata(rng: &mut Rng, owner: &Value, metadata: &mut Value) {
    let texts = [json!("x"), json!("y"), Value::Null];
    for name in RECORD {
        // `acquisition` and `breaks` get their own values elsewhere.
        if !["acquisition", "breaks"].contains(&name) && rng.u8(..20) == 0 {
            let name = format!("kubectl-maint.dev/{name}");
            metadata["annotations"][name] = texts[rng.usize(..texts.len())].clone();
        }
    }
    for name in OTHERS {
        if rng.u8(..4) == 0 {
            metadata["annotations"][name] = texts[rng.usize(..texts.len())].clone();
        }
    }
    if rng.u8(..5) == 0 {
        let owners = [json!([owner]), json!([]), Value::Null];
        metadata["ownerReferences"] = owners[rng.usize(..owners.len())].clone();
    }
}

fn random_patch(rng: &mut Rng, lease: &Value, owner: &Value) -> Value {
    let count = number(lease, "leaseTransitions");
    let holder = text(lease, "holderIdentity");
    let mut spec = Map::new();
    let holders = [
        json!(""),
        json!("alice"),
        json!("bob"),
        json!("kubeadm"),
        json!("kubeadm:alice"),
        Value::Null,
        json!(format!("kubeadm:{holder}")),
    ];
    let counts = [
        json!(count + 1),
        json!(count + 1),
        json!(count + 1),
        json!(count + 2),
        json!((count - 1).max(0)),
        Value::Null,
    ];
    let times = [
        json!(at(0)),
        json!(at(0)),
        json!(at(0)),
        json!(at(3600)),
        json!(at(-3600)),
        Value::Null,
    ];
    let durations = [json!(1), json!(600), json!(2_147_483_647), Value::Null];
    for (field, values) in [
        ("holderIdentity", &holders[..]),
        ("leaseTransitions", &counts),
        ("renewTime", &times),
        ("acquireTime", &times),
        ("leaseDurationSeconds", &durations),
    ] {
        if let Some(value) = one_of(rng, values) {
            spec.insert(field.to_owned(), value);
        }
    }
    let mut notes = Map::new();
    let marks = [
        json!(format!("{}-n", count + 1)),
        json!(format!("{count}-m")),
        Value::Null,
    ];
    let ids = [json!(lock_id(lease)), json!("another")];
    for (name, values) in [("acquisition", &marks[..]), ("breaks", &ids)] {
        if let Some(value) = one_of(rng, values) {
            notes.insert(format!("kubectl-maint.dev/{name}"), value);
        }
    }
    let mut metadata = json!({ "annotations": notes });
    random_metadata(rng, owner, &mut metadata);
    // People who write a patch by hand often change only metadata.
    if rng.u8(..4) == 0 {
        spec.clear();
    }
    json!({"metadata": metadata, "spec": spec})
}

#[test]
fn random_patches_are_admitted_if_the_rules_allow_them() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("lease-fuzz");
    let writer = |name: &str, groups: &[&str]| Writer {
        person: person(plane, name, groups),
        may_hold: groups.contains(&HOLDERS) || groups.contains(&ADMINISTRATORS),
        may_take_over: groups.contains(&ADMINISTRATORS),
    };
    let writers = [
        writer("uma", &[USERS]),
        writer("hugo", &[USERS, HOLDERS]),
        writer("ada", &[ADMINISTRATORS]),
    ];
    // The owner must exist: the garbage collector deletes objects whose owners are all missing.
    let node = json!({"metadata": {"name": "fuzz-owner"}});
    let node = admin(plane).post(NODES, &node).expect("a node");
    let owner = json!({
        "apiVersion": "v1", "kind": "Node", "name": "fuzz-owner", "uid": node["metadata"]["uid"],
    });
    let (mut admitted, mut refused) = (0, 0);
    for number in 0..LEASE_COUNT {
        let seed = fastrand::u64(..);
        let mut rng = Rng::with_seed(seed);
        let first = json!({
            "metadata": {"name": format!("fuzz-{number}"), "annotations": {"other": "stays"}},
            "spec": {"holderIdentity": ""},
        });
        let path = format!("{LEASES}/fuzz-{number}");
        let ada = &writers[2].person;
        let mut lease = ada.post(LEASES, &first).expect("a lease");
        for step in 0..PATCHES {
            let by = &writers[rng.usize(..writers.len())];
            let mut patch = random_patch(&mut rng, &lease, &owner);
            let signature = match rng.u8(..8) {
                0 => format!("{}-uma", rng.u8(..3)),
                _ => user(&lease, &patched(&lease, &patch), by),
            };
            if signature != note(&lease, "user") {
                patch["metadata"]["annotations"]["kubectl-maint.dev/user"] = json!(signature);
            }
            let Some(is_allowed) = is_allowed(&lease, &patched(&lease, &patch), by) else {
                continue;
            };
            let answer = by.person.patch(&path, &patch);
            assert_eq!(
                answer.is_ok(),
                is_allowed,
                "seed {seed}, step {step}: {patch} on {lease}: {answer:?}"
            );
            match answer {
                Ok(now) => {
                    lease = now;
                    admitted += 1;
                }
                Err(answer) => {
                    assert!(
                        answer.message.contains("denied request: maint-"),
                        "{answer:?}"
                    );
                    refused += 1;
                }
            }
        }
    }
    // Both outcomes must occur often enough.
    assert!(
        admitted > 40 && refused > 40,
        "{admitted} admitted, {refused} refused"
    );
}
