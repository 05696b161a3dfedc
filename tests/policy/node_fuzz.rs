//! Random writes to Nodes by their holder, by other users and by programs. This file repeats the rules of the node
//! policy: the policy must refuse exactly what breaks one of them.

use control_plane::{ControlPlane, NodeSpec, Rule};
use fastrand::Rng;
use http::Method;
use maintenance_lease::protocol::identity::SHARED_USERS;
use serde_json::{Map, Value, json};

use crate::node_record::cordon_by_lock;
use crate::support::{
    ADMINISTRATORS, Answer, MERGE, NODES, Person, admin, admitted, at, denying, person,
};

/// More nodes follow, up to the limit, if a rule has refused nothing yet: random writes seldom break some rules.
const NODE_COUNT: usize = 12;
const NODE_LIMIT: usize = 5 * NODE_COUNT;
const WRITES: usize = 60;

/// Times at which locks end.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";
const FAR_AHEAD: &str = "2099-01-01T00:00:00Z";

const HELD: &str = "kubectl-maint.dev/held";

/// The codes of the rules.
const RULES: [&str; 6] = [
    "maint-held-delete",
    "maint-held-record",
    "maint-held-user",
    "maint-held-cordon",
    "maint-held-uncordon",
    "maint-held-taint",
];

/// Taints that tools set before they drain or delete a node.
const DISRUPTIVE: [&str; 5] = [
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "medik8s.io/drain",
    "remediation.medik8s.io/fence-agents-remediation",
    "kubevirt.io/drain",
];

/// Taints that healthy controllers or users set.
const HARMLESS: [&str; 6] = [
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.cilium.io/agent-not-ready",
    "DeletionCandidateOfClusterAutoscaler",
    "example.com/drain",
];

struct Writer {
    person: Person,
    may_take_over: bool,
    may_lock: bool,
    /// Writes only the status, as a kubelet does.
    is_kubelet: bool,
}

/// The kind of request.
#[derive(Clone, Copy, Debug)]
enum Way {
    Patch,
    PatchStatus,
    Put,
}

fn note<'n>(node: &'n Value, name: &str) -> &'n str {
    let notes = &node["metadata"]["annotations"];
    notes[format!("kubectl-maint.dev/{name}")]
        .as_str()
        .unwrap_or_default()
}

fn is_labeled(node: &Value) -> bool {
    node["metadata"]["labels"][HELD].is_string()
}

fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == json!(true)
}

/// Whether the cordon is that of a lock, as the server tracks it.
fn is_cordoned_by_lock(node: &Value) -> bool {
    let entries = node["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        entry["manager"] == "kubectl-maint-node-keys"
            && entry["fieldsV1"]["f:spec"]["f:unschedulable"].is_object()
    })
}

/// The label, and the annotations that explain it.
fn record(node: &Value) -> (Value, Map<String, Value>) {
    let notes = node["metadata"]["annotations"].as_object();
    let mut notes = notes.cloned().unwrap_or_default();
    notes.retain(|key, _| key.starts_with("kubectl-maint.dev/held-"));
    (node["metadata"]["labels"][HELD].clone(), notes)
}

/// The taints that evict pods, and those that tools set before they drain or delete a node.
fn disruptive_taints(node: &Value) -> Vec<(String, String)> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let taints = taints.map(|taint| {
        let text = |field: &str| taint[field].as_str().expect("it is set").to_owned();
        (text("key"), text("effect"))
    });
    taints
        .filter(|(key, effect)| DISRUPTIVE.contains(&&**key) && effect != "PreferNoSchedule")
        .collect()
}

/// The rules that the write breaks. `after` is null if the write deletes the Node.
fn broken_rules(before: &Value, after: &Value, by: &Writer) -> Vec<&'static str> {
    let name = &*by.person.name;
    let lock_id = note(before, "held-lock-id");
    let has_expired = note(before, "held-until") == LONG_AGO;
    let is_held = is_labeled(before) && !lock_id.is_empty() && !has_expired;
    let was_mine = note(before, "held-user") == name;
    let is_holder = was_mine && !SHARED_USERS.contains(&name);
    if after.is_null() {
        return (is_held && !is_holder)
            .then_some("maint-held-delete")
            .into_iter()
            .collect();
    }
    if !is_labeled(before) && !is_labeled(after) {
        return Vec::new();
    }
    let (mut old_record, mut new_record) = (record(before), record(after));
    let moves_end = [&old_record, &new_record]
        .into_iter()
        .all(|(_, notes)| notes.contains_key("kubectl-maint.dev/held-until"));
    if was_mine && moves_end {
        for (_, notes) in [&mut old_record, &mut new_record] {
            notes.remove("kubectl-maint.dev/held-until");
        }
    }
    let is_changed = old_record != new_record;
    let new_id = note(after, "held-lock-id");
    let is_signed = !new_id.is_empty() && note(after, "held-user") == name && by.may_lock;
    let is_new_lock = is_labeled(after) && is_signed && new_id != lock_id;
    let is_gone = !is_labeled(after) && record(after).1.is_empty();
    let takes_over = by.may_take_over && (is_gone || is_new_lock);
    let is_protected = is_held && !is_holder && !takes_over;
    let (was_cordoned, is_cordoned) = (is_cordoned(before), is_cordoned(after));
    let old_taints = disruptive_taints(before);
    let adds_taint = disruptive_taints(after)
        .iter()
        .any(|taint| !old_taints.contains(taint));
    let rules = [
        (
            "maint-held-record",
            is_protected && is_changed && !is_new_lock,
        ),
        (
            "maint-held-user",
            is_changed && is_labeled(after) && !is_signed,
        ),
        (
            "maint-held-cordon",
            is_protected && !was_cordoned && is_cordoned,
        ),
        (
            "maint-held-uncordon",
            is_protected && was_cordoned && !is_cordoned && is_cordoned_by_lock(before),
        ),
        ("maint-held-taint", is_protected && adds_taint),
    ];
    let broken = rules.into_iter().filter(|(_, is_broken)| *is_broken);
    broken.map(|(rule, _)| rule).collect()
}

/// Applies `patch` to `object` as a JSON merge patch (RFC 7386).
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    let fields = object.as_object_mut().expect("an object");
    for (name, value) in patch {
        match value {
            Value::Null => drop(fields.remove(name)),
            value => merge(fields.entry(name).or_insert(Value::Null), value),
        }
    }
}

fn one_in(rng: &mut Rng, number: u8) -> bool {
    rng.u8(..number) == 0
}

fn any(rng: &mut Rng, values: &[Value]) -> Value {
    values[rng.usize(..values.len())].clone()
}

/// The label and the annotations of a lock.
fn lock(rng: &mut Rng, lock_id: &str, user: &str) -> Value {
    let mut notes = json!({
        "kubectl-maint.dev/held-by": user,
        "kubectl-maint.dev/held-lock-id": lock_id,
        "kubectl-maint.dev/held-user": user,
    });
    match rng.u8(..6) {
        0 => notes["kubectl-maint.dev/held-until"] = json!(FAR_AHEAD),
        1 => notes["kubectl-maint.dev/held-until"] = json!(LONG_AGO),
        2 => notes["kubectl-maint.dev/held-until"] = json!("never"),
        _ => {}
    }
    json!({"metadata": {"labels": {(HELD): "true"}, "annotations": notes}})
}

/// Changes single keys of the label and its annotations.
fn random_keys(rng: &mut Rng, before: &Value, by: &str, metadata: &mut Value) {
    if one_in(rng, 10) {
        metadata["labels"][HELD] = any(rng, &[json!("true"), json!("no"), json!(""), Value::Null]);
    }
    let lock_id = note(before, "held-lock-id");
    let texts = ["x", "", "true", "false"].map(Value::from);
    let ends = [LONG_AGO, FAR_AHEAD, "never", ""].map(Value::from);
    let users = ["fuzz-alice", by, ""].map(Value::from);
    let ids = [lock_id, "u.9.n", ""].map(Value::from);
    for (name, values, number) in [
        ("held-by", &texts[..], 30),
        ("held-reason", &texts, 15),
        ("held-ticket", &texts, 30),
        ("held-until", &ends, 15),
        ("held-user", &users, 30),
        ("held-lock-id", &ids, 30),
        ("fenced", &texts, 10),
        ("hook", &texts, 10),
    ] {
        if one_in(rng, number) {
            let value = match one_in(rng, 3) {
                true => Value::Null,
                false => any(rng, values),
            };
            metadata["annotations"][format!("kubectl-maint.dev/{name}")] = value;
        }
    }
    if one_in(rng, 6) {
        metadata["labels"]["example.com/x"] = any(rng, &texts);
    }
}

/// A random merge patch.
fn random_patch(rng: &mut Rng, before: &Value, by: &str) -> Value {
    let lock_id = note(before, "held-lock-id");
    let mut patch = json!({"metadata": {"labels": {}, "annotations": {}}, "spec": {}});
    match rng.u8(..8) {
        // A new lock, or the same lock in the writer's own name.
        0 => {
            let new_id = format!("u.{}.n", rng.u16(..));
            let id = if one_in(rng, 4) { lock_id } else { &new_id };
            merge(&mut patch, &lock(rng, id, by));
        }
        // The end of the lock.
        1 => {
            patch["metadata"]["labels"][HELD] = Value::Null;
            for key in record(before).1.keys() {
                patch["metadata"]["annotations"][key] = Value::Null;
            }
        }
        2 if one_in(rng, 4) => patch["metadata"]["annotations"] = Value::Null,
        2..=4 => random_keys(rng, before, by, &mut patch["metadata"]),
        _ => {}
    }
    if one_in(rng, 4) {
        let cordons = [json!(true), json!(false), Value::Null];
        patch["spec"]["unschedulable"] = any(rng, &cordons);
    }
    if one_in(rng, 4) {
        let mut taints = before["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        taints.retain(|_| rng.bool());
        let keys = [&DISRUPTIVE[..], &HARMLESS].concat();
        let key = keys[rng.usize(..keys.len())];
        let effects = ["NoSchedule", "NoExecute", "PreferNoSchedule"];
        let effect = effects[rng.usize(..effects.len())];
        taints.retain(|taint| taint["key"] != key || taint["effect"] != effect || rng.bool());
        if !taints
            .iter()
            .any(|taint| taint["key"] == key && taint["effect"] == effect)
        {
            taints.push(json!({"key": key, "value": rng.u8(..3).to_string(), "effect": effect}));
        }
        patch["spec"]["taints"] = json!(taints);
    }
    if one_in(rng, 6) {
        let condition = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": at(0)});
        patch["status"] = json!({"conditions": [condition]});
    }
    patch
}

/// Sends the write. Returns the Node that it should produce, and the answer. Nothing is written if the Node has
/// changed since it was read.
fn write(way: Way, patch: &Value, before: &Value, by: &Person) -> (Value, Answer) {
    let name = before["metadata"]["name"].as_str().expect("a name");
    let path = format!("{NODES}/{name}");
    let mut patch = patch.clone();
    patch["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    let mut after = before.clone();
    merge(&mut after, &patch);
    let answer = match way {
        Way::Patch => by.send(Method::PATCH, &path, MERGE, &patch),
        Way::PatchStatus => {
            after["spec"] = before["spec"].clone();
            by.send(Method::PATCH, &format!("{path}/status"), MERGE, &patch)
        }
        Way::Put => by.put(&path, &after),
    };
    (after, answer)
}

/// Deletes the Node as a dry run, alone or by a selector, and returns the answer.
fn delete(rng: &mut Rng, before: &Value, by: &Person) -> Answer {
    let name = before["metadata"]["name"].as_str().expect("a name");
    let path = match rng.bool() {
        true => format!("{NODES}/{name}"),
        false => format!("{NODES}?labelSelector=fuzz%3D{name}"),
    };
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"],
        "preconditions": {"resourceVersion": before["metadata"]["resourceVersion"]},
    });
    by.send(Method::DELETE, &path, "application/json", &options)
}

fn writers(plane: &ControlPlane) -> Vec<Writer> {
    let node = |verbs: &[&str]| Rule::new("", &["nodes", "nodes/status"], verbs);
    let names = [
        "fuzz-alice",
        "fuzz-bob",
        "fuzz-ada",
        "kubernetes-admin",
        "system:node:fuzz",
        "system:serviceaccount:kube-system:fuzz-controller",
        "system:serviceaccount:fuzz:machine-controller",
    ];
    let each = names.into_iter().map(|name| {
        let groups: &[&str] = match name {
            "fuzz-ada" => &[ADMINISTRATORS],
            // All rights, as programs with wildcard roles have.
            "kubernetes-admin" | "system:serviceaccount:fuzz:machine-controller" => {
                &["system:masters"]
            }
            _ => &[],
        };
        let is_program = name.starts_with("system:");
        if !groups.contains(&"system:masters") {
            let verbs = ["get", "patch", "update", "delete", "deletecollection"];
            let mut rules = vec![node(&verbs)];
            if !is_program {
                let leases = Rule::new("coordination.k8s.io", &["leases"], &["patch"]);
                rules.push(leases);
            }
            plane.grant(name, &rules).expect("rights");
        }
        Writer {
            person: person(plane, name, groups),
            may_take_over: !groups.is_empty(),
            may_lock: !is_program || !groups.is_empty(),
            is_kubelet: name.starts_with("system:node:"),
        }
    });
    each.collect()
}

#[test]
fn random_writes_are_admitted_if_they_break_no_rule() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("node-fuzz");
    let writers = writers(plane);
    let admin = admin(plane);
    let mut seen = Vec::new();
    let mut nodes = 0;
    while nodes < NODE_COUNT
        || (nodes < NODE_LIMIT && RULES.iter().any(|rule| !seen.contains(rule)))
    {
        let seed = fastrand::u64(..);
        let mut rng = Rng::with_seed(seed);
        let name = &format!("node-fuzz-{nodes}");
        nodes += 1;
        plane
            .create_nodes(&[NodeSpec::ready(name)])
            .expect("a node");
        let path = format!("{NODES}/{name}");
        let label = json!({"metadata": {"labels": {"fuzz": name}}});
        admitted(admin.patch(&path, &label), "a label of the test");
        let mut step = 0;
        while step < WRITES {
            let mut before = admin.get(&path);
            if !is_labeled(&before) && !one_in(&mut rng, 4) {
                let holders = ["fuzz-alice", "fuzz-alice", "fuzz-bob", "kubernetes-admin"];
                let holder = holders[rng.usize(..holders.len())];
                let by = writers.iter().find(|writer| writer.person.name == holder);
                if rng.bool() {
                    admitted(cordon_by_lock(&admin, &path), "a cordon");
                }
                let lock = lock(&mut rng, &format!("u.{step}.n"), holder);
                let by = &by.expect("a writer").person;
                before = admitted(by.patch(&path, &lock), "a lock of one's own");
            }
            let by = &writers[rng.usize(..writers.len())];
            let (what, after, answer) = match one_in(&mut rng, 8) {
                true => {
                    let answer = delete(&mut rng, &before, &by.person);
                    ("deleted".to_owned(), Value::Null, answer)
                }
                false => {
                    let ways = [Way::Patch, Way::Patch, Way::Put, Way::PatchStatus];
                    let way = match by.is_kubelet && rng.bool() {
                        true => Way::PatchStatus,
                        false => ways[rng.usize(..ways.len())],
                    };
                    let patch = random_patch(&mut rng, &before, &by.person.name);
                    let (after, answer) = write(way, &patch, &before, &by.person);
                    (format!("{way:?} {patch}"), after, answer)
                }
            };
            // A conflict: the controller manager writes to the same Nodes.
            if answer.as_ref().is_err_and(|refused| refused.code == 409) {
                continue;
            }
            let broken = broken_rules(&before, &after, by);
            let context = || {
                let by = &by.person.name;
                format!("seed {seed}, step {step}: {what} by {by} on {before}: {answer:?}")
            };
            match &answer {
                Ok(_) => assert!(broken.is_empty(), "breaks {broken:?}: {}", context()),
                Err(refused) => {
                    let says = |rule: &&str| {
                        let rule = format!("denied request: {rule}: ");
                        refused.code == 403 && refused.message.contains(&rule)
                    };
                    let rule = broken.into_iter().find(says);
                    seen.push(rule.unwrap_or_else(|| panic!("breaks no such rule: {}", context())));
                }
            }
            step += 1;
        }
    }
    for rule in RULES {
        assert!(seen.contains(&rule), "{rule} refused nothing");
    }
    // At least half of the writes must be admitted.
    assert!(seen.len() < nodes * WRITES / 2, "{}", seen.len());
}
