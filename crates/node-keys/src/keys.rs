//! What a lock asks of its Node, and what sets and ends it. Pure.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, Span, identity};
use serde_json::{Map, Value, json};

use crate::asked::{Asked, Cordon};
use crate::managed_fields::{is_only_ours, is_ours, own_fields, owners};
use crate::opt_outs::{OPT_OUTS, OPTED_OUT, OptOut};

/// The label of a Node whose lock asks for it. Its value is the lock's owner. The node policy refuses some writes to Nodes that
/// have it.
pub const HELD: &str = "kubectl-maint.dev/held";

/// How the annotations that explain the held label begin.
const NOTES: &str = "kubectl-maint.dev/held-";

/// The annotation with the lock id that the keys belong to.
const LOCK_ID: &str = "kubectl-maint.dev/held-lock-id";

/// The annotation with the end of the lock.
const UNTIL: &str = "kubectl-maint.dev/held-until";

/// The annotation with the id of a lock that ended. It gives a Node without keys another version, so a late apply for that lock
/// fails. For an expired lock it makes the server record the time of the write.
const ENDED: &str = "kubectl-maint.dev/ended";

/// The field of the cordon.
const UNSCHEDULABLE: [&str; 2] = ["spec", "unschedulable"];

/// The longest value of a label.
const LONGEST_VALUE: usize = 63;

/// Labels, annotations and the cordon of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeKeys {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The Node is cordoned.
    pub cordon: bool,
}

/// What the keys of a lock are computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The command that asks for them sets them.
    Set,
    /// They are compared with the Node later. What somebody removed is not put back.
    Update,
    /// Like `Update`, but shows an end that is one duration after the lock's. A keeper, which renews often, then writes the Node
    /// once per duration.
    Keep,
}

/// What a lock asks of its Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What our field manager is to own.
    pub keys: NodeKeys,
    /// The opt-outs that somebody else has set to another value. They are left as they are.
    pub conflicts: Vec<Conflict>,
    /// Somebody else has cordoned the Node, so it stays cordoned after the lock.
    pub stays_cordoned: bool,
    /// An earlier lock has left its cordon. It goes with its other keys.
    pub uncordons: bool,
}

/// Why the keys on a Node do not match its lock: a command died between its two writes, or somebody has edited them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The lock asks for keys that are not there.
    Missing,
    /// They belong to a lock that has ended or expired.
    LeftOver,
}

/// A key that somebody else set to another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key.
    pub key: String,
    /// Its value on the Node.
    pub value: String,
    /// The field manager that set it, if the server recorded one.
    pub manager: Option<String>,
}

/// What the lock in `lease` asks of `node`; `None`: nothing. `lease` must have been read after `node`.
#[must_use]
pub fn wanted(node: &Node, lease: &NodeLease, mode: Mode) -> Option<Wanted> {
    let asked = Asked::of(lease)?;
    let metadata = &node.metadata;
    let lock_id = lock_id_of(lease);
    let is_written = lock_id_on(node) == Some(&*lock_id);
    // What is missing was removed by somebody.
    let sets_missing = !is_written || mode == Mode::Set;
    let mut keys = NodeKeys::default();
    let mut conflicts = Vec::new();
    for opt_out in asked.opt_outs.on(node) {
        let (map, found, wanted) = match opt_out.is_label {
            true => ("labels", &metadata.labels, &mut keys.labels),
            false => ("annotations", &metadata.annotations, &mut keys.annotations),
        };
        let key = opt_out.key.to_owned();
        let value = found.as_ref().and_then(|found| found.get(&key));
        let path = ["metadata", map, &key];
        let is_free = value.map_or(sets_missing, |_| is_only_ours(metadata, &path));
        match value {
            _ if is_free => {
                wanted.insert(key, OPTED_OUT.to_owned());
            }
            Some(value) if value != OPTED_OUT => conflicts.push(Conflict {
                manager: other_owner(metadata, &path),
                value: value.clone(),
                key,
            }),
            _ => {}
        }
    }
    let is_cordoned = is_cordoned(node);
    let is_our_cordon = is_cordoned && is_only_ours(metadata, &UNSCHEDULABLE);
    keys.cordon = match asked.cordon {
        Cordon::No => false,
        Cordon::Keep => is_our_cordon,
        Cordon::Set => is_our_cordon || !is_cordoned && sets_missing,
    };
    let holder = lease.holder().unwrap_or_default();
    let until = end_to_show(node, lease, mode).filter(|_| !lease.is_hold());
    let notes = [
        (LOCK_ID, Some(&*lock_id)),
        ("kubectl-maint.dev/held-by", Some(identity::person(holder))),
        ("kubectl-maint.dev/held-user", lease.api_user()),
        (UNTIL, until.as_deref()),
        ("kubectl-maint.dev/held-reason", lease.reason()),
        ("kubectl-maint.dev/held-ticket", lease.ticket()),
    ];
    let notes = notes.into_iter().filter_map(|(key, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    });
    keys.annotations.extend(notes);
    keys.labels
        .insert(HELD.to_owned(), label_value(owner(holder)));
    Some(Wanted {
        uncordons: is_our_cordon && !keys.cordon,
        keys,
        conflicts,
        stays_cordoned: asked.cordon == Cordon::Set && is_cordoned && !is_our_cordon,
    })
}

/// The apply that makes our field manager own exactly `keys` of `node`; `None`: it does already.
#[must_use]
pub fn apply(node: &Node, keys: &NodeKeys) -> Option<Value> {
    let metadata = &node.metadata;
    let has = |found: &Option<BTreeMap<String, String>>, wanted: &BTreeMap<String, String>| {
        let has = |(key, value)| found.as_ref().and_then(|found| found.get(key)) == Some(value);
        wanted.iter().all(has)
    };
    let is_done = own_fields(metadata).cloned() == fields(keys)
        && has(&metadata.labels, &keys.labels)
        && has(&metadata.annotations, &keys.annotations)
        && (is_cordoned(node) || !keys.cordon);
    (!is_done).then(|| {
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": metadata.name,
                // Without it, the apply would create a Node that is gone.
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
        });
        // An empty map would be owned as a whole.
        for (map, keys) in [("labels", &keys.labels), ("annotations", &keys.annotations)] {
            if !keys.is_empty() {
                body["metadata"][map] = json!(keys);
            }
        }
        if keys.cordon {
            body["spec"] = json!({"unschedulable": true});
        }
        body
    })
}

/// The apply after the end of the lock `ended`, which asked for keys on `node`; `None`: its keys are not there, and can't come.
///
/// If it `has_expired`, others may have ended it. The node policy allows that if the write is later than the lock's end, and the
/// server records the time of a write only if it sets a field.
#[must_use]
pub fn end(node: &Node, ended: &str, has_expired: bool) -> Option<Value> {
    let found = lock_id_on(node);
    if found.is_some_and(|found| found != ended) {
        return None;
    }
    let mut keys = NodeKeys::default();
    if found.is_none() || has_expired {
        keys.annotations.insert(ENDED.to_owned(), ended.to_owned());
    }
    apply(node, &keys)
}

/// The merge patch that removes `keys` from `node`, whoever owns them. If a lock has `ended`, sets its id, for the reason that
/// [`end`] gives.
#[must_use]
pub(crate) fn removal(node: &Node, keys: &NodeKeys, ended: Option<&str>) -> Value {
    let nulls = |map: &BTreeMap<String, String>| -> Map<String, Value> {
        map.keys().map(|key| (key.clone(), Value::Null)).collect()
    };
    let metadata = &node.metadata;
    let mut annotations = nulls(&keys.annotations);
    annotations.insert(ENDED.to_owned(), json!(ended));
    let mut patch = json!({"metadata": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "labels": nulls(&keys.labels),
        "annotations": annotations,
    }});
    if keys.cordon {
        patch["spec"] = json!({"unschedulable": null});
    }
    patch
}

impl NodeKeys {
    /// What locks have set on `node`: the keys that only locks write, and what only our applies own.
    #[must_use]
    pub fn on(node: &Node) -> Self {
        let metadata = &node.metadata;
        let of_locks = |map: &str, found: &Option<BTreeMap<String, String>>| {
            let mut found = found.clone().unwrap_or_default();
            found.retain(|key, _| {
                is_held_key(key) || key != ENDED && is_only_ours(metadata, &["metadata", map, key])
            });
            found
        };
        Self {
            labels: of_locks("labels", &metadata.labels),
            annotations: of_locks("annotations", &metadata.annotations),
            cordon: is_cordoned(node) && is_only_ours(metadata, &UNSCHEDULABLE),
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These keys without the annotations that only locks write.
    #[must_use]
    pub fn without_notes(mut self) -> Self {
        self.annotations.retain(|key, _| !is_held_key(key));
        self
    }

    /// The tools whose opt-outs are among them.
    pub fn opted_out_of(&self) -> impl Iterator<Item = &'static str> {
        let is_set = |opt_out: &&OptOut| {
            self.labels.contains_key(opt_out.key) || self.annotations.contains_key(opt_out.key)
        };
        let set = OPT_OUTS.iter().filter(is_set);
        set.map(|opt_out| opt_out.tool)
    }

    /// Whether the held label is among them.
    #[must_use]
    pub fn are_labeled(&self) -> bool {
        self.labels.contains_key(HELD)
    }

    /// Whether they belong to the lock in `lease`, and it has not expired at `now`.
    pub(crate) fn belong_to(&self, lease: Option<&NodeLease>, now: Now) -> bool {
        let lease = lease.filter(|lease| lease.state(now).is_locked());
        lease.is_some_and(|lease| self.annotations.get(LOCK_ID) == Some(&lock_id_of(lease)))
    }

    /// What is wrong with them by the lock in `lease`.
    #[must_use]
    pub fn mismatch(&self, lease: Option<&NodeLease>, now: Now) -> Option<Mismatch> {
        let belong = self.belong_to(lease, now);
        let are_anothers = !belong && self.annotations.contains_key(LOCK_ID);
        match lease.is_some_and(|lease| asks(lease, now)) && !are_anothers {
            true => (!(belong && self.are_labeled())).then_some(Mismatch::Missing),
            false => (!self.is_empty() && !belong).then_some(Mismatch::LeftOver),
        }
    }
}

/// Whether the lock in `lease` stands at `now`, and asks for keys of its Node.
#[must_use]
pub fn asks(lease: &NodeLease, now: Now) -> bool {
    lease.state(now).is_locked() && Asked::of(lease).is_some()
}

/// Whether `node` has the id of a lock that ended and had no keys there.
#[must_use]
pub fn has_ended_id(node: &Node) -> bool {
    annotation(node, ENDED).is_some()
}

/// Whether only locks write this label or annotation.
pub(crate) fn is_held_key(key: &str) -> bool {
    key == HELD || key.starts_with(NOTES)
}

/// The lock id in `lease`. That of an acquisition without a nonce, as in a dry run, ends with a dot.
pub(crate) fn lock_id_of(lease: &NodeLease) -> String {
    let id = lease.lock_id().map(|id| id.to_string());
    id.unwrap_or_else(|| format!("{}.{}.", lease.uid(), lease.transitions()))
}

/// The lock id that the keys on `node` belong to.
pub(crate) fn lock_id_on(node: &Node) -> Option<&str> {
    annotation(node, LOCK_ID)
}

fn annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let annotations = node.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

fn other_owner(metadata: &ObjectMeta, path: &[&str]) -> Option<String> {
    let other = owners(metadata, path).find(|owner| !is_ours(owner));
    other.and_then(|owner| owner.manager.clone())
}

/// What the server records as owned after an apply of `keys`; `None`: nothing.
fn fields(keys: &NodeKeys) -> Option<Value> {
    let mut fields = Map::new();
    let mut metadata = Map::new();
    for (map, keys) in [("labels", &keys.labels), ("annotations", &keys.annotations)] {
        let names = keys.keys().map(|key| (format!("f:{key}"), json!({})));
        let names: Map<_, _> = names.collect();
        if !names.is_empty() {
            metadata.insert(format!("f:{map}"), names.into());
        }
    }
    if !metadata.is_empty() {
        fields.insert("f:metadata".to_owned(), metadata.into());
    }
    if keys.cordon {
        fields.insert("f:spec".to_owned(), json!({"f:unschedulable": {}}));
    }
    (!fields.is_empty()).then(|| fields.into())
}

/// The end that the Node shows. It never moves earlier.
fn end_to_show(node: &Node, lease: &NodeLease, mode: Mode) -> Option<String> {
    let ahead = match mode {
        Mode::Keep => Span::seconds(lease.duration_seconds()),
        Mode::Set | Mode::Update => Span::ZERO,
    };
    let end = (lease.end()? + ahead).to_chrono().map(whole_seconds)?;
    let is_written = lock_id_on(node) == Some(&lock_id_of(lease));
    let shown = annotation(node, UNTIL).filter(|_| is_written);
    let shown = shown.and_then(|shown| shown.parse::<DateTime<Utc>>().ok());
    Some(
        shown
            .map_or(end, |shown| shown.max(end))
            .to_rfc3339_opts(SecondsFormat::Secs, true),
    )
}

/// Rounded up, to what the server prints of the times of writes. The node policy compares the texts.
fn whole_seconds(time: DateTime<Utc>) -> DateTime<Utc> {
    let up = match time.timestamp_subsec_nanos() {
        0 => TimeDelta::zero(),
        nanos => TimeDelta::seconds(1) - TimeDelta::nanoseconds(nanos.into()),
    };
    time + up
}

/// The owner behind a holder name, without the marks of a hold and of running commands.
fn owner(holder: &str) -> &str {
    ["/with-", "/roll-", "/force-delete-"]
        .iter()
        .fold(identity::person(holder), |owner, mark| {
            owner.split_once(mark).map_or(owner, |(owner, _)| owner)
        })
}

/// `name` as the value of a label.
fn label_value(name: &str) -> String {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let value: String = name
        .chars()
        .map(|c| if is_inner(c) { c } else { '-' })
        .collect();
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    let value = value.trim_start_matches(is_end);
    let value = value[..value.len().min(LONGEST_VALUE)].trim_end_matches(is_end);
    match value {
        "" => "true".to_owned(),
        value => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::{Maintenance, NAMESPACE};
    use sandbox::Sandbox;

    use super::*;
    use crate::managed_fields::FIELD_MANAGER;

    const UID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
    const FLUO: &str = "flatcar-linux-update.v1.flatcar-linux.net/reboot-paused";

    /// The Lease of a lock that asks for `keys`, renewed so many seconds after noon. It lasts for ten minutes.
    async fn lease(keys: &str, holder: &str, seconds: u8) -> NodeLease {
        let sandbox = Sandbox::new();
        sandbox.put(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "n", "namespace": NAMESPACE, "uid": UID, "annotations": {
                "kubectl-maint.dev/acquisition": "1-n1",
                "kubectl-maint.dev/user": "1-alice@example.com",
                "kubectl-maint.dev/keys": keys,
                "kubectl-maint.dev/reason": "disk",
            }},
            "spec": {
                "holderIdentity": holder,
                "acquireTime": "2026-03-01T12:00:00.000000Z",
                "renewTime": format!("2026-03-01T12:00:{seconds:02}.000001Z"),
                "leaseDurationSeconds": 600,
                "leaseTransitions": 1,
            },
        }));
        let locks = Maintenance::new(sandbox.client(), "anybody").expect("an identity");
        locks.get("n").await.expect("an answer").expect("a Lease")
    }

    /// A Node that has `keys`, of which we own `ours`.
    fn node(keys: &NodeKeys, ours: &NodeKeys) -> Node {
        let entry = json!({
            "manager": FIELD_MANAGER, "operation": "Apply", "fieldsType": "FieldsV1",
            "fieldsV1": fields(ours).unwrap_or_default(),
        });
        let node = json!({
            "metadata": {
                "name": "n", "uid": "node-uid", "resourceVersion": "7",
                "labels": keys.labels, "annotations": keys.annotations, "managedFields": [entry],
            },
            "spec": {"unschedulable": keys.cordon},
        });
        serde_json::from_value(node).expect("a Node")
    }

    fn empty() -> Node {
        node(&NodeKeys::default(), &NodeKeys::default())
    }

    fn keys_on(node: &Node, lease: &NodeLease, mode: Mode) -> NodeKeys {
        wanted(node, lease, mode).expect("it asks for keys").keys
    }

    #[tokio::test]
    async fn a_lock_asks_for_what_its_lease_says() {
        let lock = lease("held,cordon,fluo", "alice@bastion/with-4711-0a", 0).await;
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            let owned = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            owned.collect()
        };
        let expected = NodeKeys {
            labels: map(&[(HELD, "alice-bastion")]),
            annotations: map(&[
                (FLUO, "true"),
                (LOCK_ID, &format!("{UID}.1.n1")),
                ("kubectl-maint.dev/held-by", "alice@bastion/with-4711-0a"),
                ("kubectl-maint.dev/held-user", "alice@example.com"),
                (UNTIL, "2026-03-01T12:10:01Z"),
                ("kubectl-maint.dev/held-reason", "disk"),
            ]),
            cordon: true,
        };
        assert_eq!(keys_on(&empty(), &lock, Mode::Update), expected);
        // What is there already needs no write, unless others own it.
        assert_eq!(apply(&node(&expected, &expected), &expected), None);
        let of_others = node(&expected, &NodeKeys::default());
        assert!(apply(&of_others, &expected).is_some());
        let hold = keys_on(
            &empty(),
            &lease("held", "kubeadm:alice", 0).await,
            Mode::Set,
        );
        assert!(!hold.annotations.contains_key(UNTIL) && !hold.cordon);
        let free = lease("held", "", 0).await;
        assert_eq!(wanted(&empty(), &free, Mode::Set), None);
    }

    #[tokio::test]
    async fn what_somebody_removed_comes_back_only_with_a_command_that_asks_for_it() {
        let lock = lease("held,cordon,fluo", "alice", 0).await;
        let all = keys_on(&empty(), &lock, Mode::Set);
        let mut rest = all.clone();
        rest.annotations.remove(FLUO);
        rest.labels.clear();
        rest.cordon = false;
        let left = node(&rest, &rest);
        for mode in [Mode::Update, Mode::Keep] {
            let keys = keys_on(&left, &lock, mode);
            assert!(keys.are_labeled() && !keys.cordon);
            assert!(!keys.annotations.contains_key(FLUO));
        }
        assert_eq!(keys_on(&left, &lock, Mode::Set), all);
    }

    #[tokio::test]
    async fn a_cordon_of_others_is_left_out_and_that_of_an_earlier_lock_is_kept() {
        let cordon = |cordon| NodeKeys {
            cordon,
            ..NodeKeys::default()
        };
        let cordoned = |is_ours| node(&cordon(true), &cordon(is_ours));
        for (keys, node, expected) in [
            ("held,cordon", &empty(), (true, false)),
            ("held,cordon", &cordoned(true), (true, false)),
            ("held,cordon", &cordoned(false), (false, true)),
            ("held,kept-cordon", &empty(), (false, false)),
            ("held,kept-cordon", &cordoned(true), (true, false)),
            ("held,kept-cordon", &cordoned(false), (false, false)),
            ("held", &cordoned(true), (false, false)),
        ] {
            let lock = lease(keys, "alice", 0).await;
            let wanted = wanted(node, &lock, Mode::Update).expect("keys");
            let found = (wanted.keys.cordon, wanted.stays_cordoned);
            assert_eq!(found, expected, "{keys} {node:?}");
        }
    }

    #[tokio::test]
    async fn the_end_that_is_shown_moves_ahead_with_the_renewals_and_never_back() {
        for (seconds, shown, mode, expected) in [
            (29, "12:10:01Z", Mode::Update, "12:10:30Z"),
            (29, "12:10:01Z", Mode::Keep, "12:20:30Z"),
            (59, "12:20:30Z", Mode::Update, "12:20:30Z"),
            (29, "soon", Mode::Update, "12:10:30Z"),
        ] {
            let mut keys = keys_on(&empty(), &lease("held", "alice", 0).await, Mode::Set);
            let shown = format!("2026-03-01T{shown}");
            keys.annotations.insert(UNTIL.to_owned(), shown.clone());
            let lock = lease("held", "alice", seconds).await;
            let found = &keys_on(&node(&keys, &keys), &lock, mode).annotations[UNTIL];
            assert_eq!(*found, format!("2026-03-01T{expected}"), "{shown} {mode:?}");
        }
    }

    #[test]
    fn the_end_of_a_lock_removes_its_own_keys_or_leaves_its_id() {
        let with_id = |id: &str| {
            let keys = NodeKeys {
                annotations: [(LOCK_ID.to_owned(), id.to_owned())].into(),
                ..NodeKeys::default()
            };
            node(&keys, &keys)
        };
        let removal = end(&with_id("u.1.a"), "u.1.a", false).expect("an apply");
        let metadata = json!({"name": "n", "uid": "node-uid", "resourceVersion": "7"});
        assert_eq!(removal["metadata"], metadata);
        assert_eq!(end(&with_id("u.2.b"), "u.1.a", true), None);
        for left in [
            end(&empty(), "u.1.a", false),
            end(&with_id("u.1.a"), "u.1.a", true),
        ] {
            let left = left.expect("an apply");
            assert_eq!(left["metadata"]["annotations"], json!({ENDED: "u.1.a"}));
        }
    }

    #[test]
    fn the_owner_is_the_value_of_the_label() {
        for (holder, expected) in [
            ("alice", "alice"),
            ("alice@bastion.example", "alice-bastion.example"),
            ("kubeadm:alice@bastion", "alice-bastion"),
            ("alice@bastion/with-4711-0a", "alice-bastion"),
            ("alice/roll-3/force-delete-1-2", "alice"),
            ("_(alice)_", "alice"),
            ("\u{e4}\u{f6}", "true"),
            (&"x".repeat(70), &"x".repeat(63)),
            (&format!("{}---y", "x".repeat(60)), &"x".repeat(60)),
        ] {
            assert_eq!(label_value(owner(holder)), expected, "{holder}");
        }
    }
}
