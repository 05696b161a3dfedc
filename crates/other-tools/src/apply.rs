//! The labels, annotations and the cordon that a lock writes on its Node: one server-side apply with an own field
//! manager, and its undo, an apply with less. Values of others are never overwritten.
//!
//! The lock itself is the Lease, and these keys must not outlive it. So both writes name the uid and the resource
//! version of the Node that was read:
//!
//! - [`set_keys`] reads the Node, and then whether the Lease still shows the lock id.
//! - [`remove_keys`] runs before the release. It removes the keys and leaves the ended lock id in an annotation. That
//!   write changes the resource version, so late copies of an apply for the ended lock fail. An apply that begins
//!   later finds the ended id.
//!
//! A Node that is created again from a copy has the keys of the lock, but another field manager owns them. So an apply that
//! changes keys that only we write is forced. It does not remove what others own, so [`remove_keys`] first removes that with a
//! merge patch, bound to the same uid and resource version. An annotation lists the other keys that the lock set. The same
//! goes for a Node whose annotations somebody has edited. That patch removes all keys that only we write, because the node
//! policy takes the id of an ended lock for a takeover only once.
//!
//! [`clear_keys`] removes everything, whatever lock it belongs to.
//!
//! If a command stops between two of these writes, the same command finishes the work when it is run again.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{ApiError, BREAKS, Requests, escape};
use serde_json::{Map, Value, json};

use crate::managed_fields::owners;
use crate::node_keys::{
    CORDON, HELD, LOCK_ID, NodeKeys, annotation, is_cordoned, is_held_key, is_only_ours,
    is_own_entry, own_entry,
};
use crate::opt_outs::{is_listed, is_set_by_lock, owns_cordon};
use crate::writes::{APPLY, FORCED_APPLY, Kind, MERGE, Tries, patch, read, try_patch};

/// How many writes the end of a lock takes at most: two for an earlier lock and two for its own, and again if the Node was
/// changed in between.
const MOST_WRITES: u32 = 8;

/// The Node and the lock that keys belong to.
#[derive(Clone, Copy, Debug)]
pub struct KeysOfLock<'a> {
    /// The Node's name.
    pub node: &'a str,
    /// The Node's uid.
    pub uid: &'a str,
    /// The lock id.
    pub lock_id: &'a str,
}

/// The result of [`set_keys`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysSet {
    /// They are on the Node, except for those that somebody else set to another value.
    Done(Vec<Conflict>),
    /// There is no such Node, or another one has its name now. Nothing was written.
    NodeGone,
    /// The lock has ended, or is being ended. Nothing was written.
    LockEnded,
}

/// A key that somebody else set to another value, and that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key.
    pub key: String,
    /// Its value on the Node.
    pub value: String,
    /// The field manager that set it, if the server recorded one.
    pub manager: Option<String>,
}

/// The result of [`remove_keys`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysRemoved {
    /// These were removed. Those that somebody else set to the same value stayed.
    Done(NodeKeys),
    /// There were none, or there is no such Node.
    Nothing,
    /// Nothing was removed. The Node has the held label, but no lock id.
    WithoutLockId,
    /// They belong to the lock that the Lease shows, and were left as they are.
    StillHeld,
}

/// The result of [`remove_all`].
struct Removed {
    keys: KeysRemoved,
    /// Whether something keeps what a lock set.
    is_altered: bool,
}

impl Removed {
    fn and(self, keys: NodeKeys) -> Self {
        let keys = match self.keys {
            KeysRemoved::Done(before) => before.and(keys),
            KeysRemoved::Nothing | KeysRemoved::WithoutLockId | KeysRemoved::StillHeld => keys,
        };
        Self {
            keys: KeysRemoved::Done(keys),
            ..self
        }
    }

    /// Reports a held label that no lock id explains.
    fn or_without_lock_id(self, node: &Node) -> Self {
        let labels = node.metadata.labels.as_ref();
        let is_labeled = labels.is_some_and(|labels| labels.contains_key(HELD));
        let keys = match self.keys {
            KeysRemoved::Nothing if is_labeled => KeysRemoved::WithoutLockId,
            keys => keys,
        };
        Self { keys, ..self }
    }

    fn but_still_held(self) -> Self {
        Self {
            keys: KeysRemoved::StillHeld,
            ..self
        }
    }
}

/// The next step with a Node that was read.
#[derive(Debug, PartialEq)]
enum Step {
    /// Send this apply, if the Lease shows the lock id.
    Apply(Kind, Value, Vec<Conflict>),
    /// There is nothing to write.
    Done(KeysSet),
}

/// Writes the `keys` on the Node. Replaces what the same field manager wrote before.
///
/// `is_held` reads whether the Lease still shows the lock id. It is called after each read of the Node.
///
/// # Errors
/// If the Node can't be read or written, or keeps changing. Also the errors of `is_held`.
///
/// # Caveats
/// Dropping this future abandons the answer. The keys may still be written, unless they are removed first.
pub async fn set_keys<E: From<ApiError>>(
    requests: &Requests,
    of: KeysOfLock<'_>,
    keys: impl Fn(&Node) -> NodeKeys,
    is_held: impl AsyncFn() -> Result<bool, E>,
) -> Result<KeysSet, E> {
    let to_set = |node: &Node| to_set(node, of, &keys(node));
    write(requests, of.node, patch, to_set, is_held).await
}

/// Sends the first write of [`set_keys`] on the Node `name` as a dry run. The lock may not exist yet.
///
/// # Errors
/// If the Node can't be read, keeps changing, or the write is refused.
///
/// # Caveats
/// Dropping this future abandons the answer and changes nothing.
pub(crate) async fn check_keys(
    requests: &Requests,
    name: &str,
    lock_id: &str,
    keys: impl Fn(&Node) -> NodeKeys,
) -> Result<KeysSet, ApiError> {
    let to_set = |node: &Node| {
        let of = KeysOfLock {
            node: name,
            uid: node.metadata.uid.as_deref().unwrap_or_default(),
            lock_id,
        };
        to_set(node, of, &keys(node))
    };
    write(requests, name, try_patch, to_set, async || Ok(true)).await
}

/// Reads the Node `name`, checks `is_held`, and sends what `to_set` returns with `patch`. Tries again after errors that may pass.
async fn write<E: From<ApiError>>(
    requests: &Requests,
    name: &str,
    patch: impl AsyncFn(&Requests, &str, Kind, &Value) -> Result<Value, ApiError>,
    to_set: impl Fn(&Node) -> Step,
    is_held: impl AsyncFn() -> Result<bool, E>,
) -> Result<KeysSet, E> {
    let mut tries = Tries::default();
    loop {
        let Some(node) = read::<Node>(requests, &path(name)).await? else {
            return Ok(KeysSet::NodeGone);
        };
        let (kind, body, conflicts) = match to_set(&node) {
            Step::Apply(kind, body, conflicts) => (kind, body, conflicts),
            Step::Done(set) => return Ok(set),
        };
        if !is_held().await? {
            return Ok(KeysSet::LockEnded);
        }
        match patch(requests, &path(name), kind, &body).await {
            Ok(_) => return Ok(KeysSet::Done(conflicts)),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Removes the keys that [`set_keys`] wrote for the lock `ending`, or for one that has ended, and leaves the id of that lock.
/// If the Node has no keys of ours, only the id of the lock `ending` is written: an apply for it may still be on its way.
///
/// Call it before the lock `ending` is released; `None`: no lock is to be released. `shown` reads the lock id that the Lease
/// shows. It is called after a read of a Node with the keys of another lock: a lock that the Lease does not show by then has
/// ended, and never begins again.
///
/// # Errors
/// If the Node can't be read or written, or keeps changing. Also the errors of `shown`. [`ApiError::Altered`] if something, such
/// as an admission webhook, keeps what a lock set on the Node. The lock can still be ended.
///
/// # Caveats
/// Dropping this future abandons the answer. The keys may still be removed.
pub async fn remove_keys<E: From<ApiError>>(
    requests: &Requests,
    name: &str,
    ending: Option<&str>,
    shown: impl AsyncFn() -> Result<Option<String>, E>,
) -> Result<KeysRemoved, E> {
    let removed = remove_all(requests, name, ending, shown).await?;
    match removed.is_altered {
        true => Err(ApiError::Altered.into()),
        false => Ok(removed.keys),
    }
}

/// The same, but reports a key that something keeps in the result, not as an error.
async fn remove_all<E: From<ApiError>>(
    requests: &Requests,
    name: &str,
    ending: Option<&str>,
    shown: impl AsyncFn() -> Result<Option<String>, E>,
) -> Result<Removed, E> {
    let mut tries = Tries::default();
    let mut writes = 0..MOST_WRITES;
    let mut removed = Removed {
        keys: KeysRemoved::Nothing,
        is_altered: false,
    };
    // The lock whose label is gone, while other keys of it may be left.
    let mut unlabeled: Option<String> = None;
    loop {
        let Some(node) = read::<Node>(requests, &path(name)).await? else {
            return Ok(removed);
        };
        let removing = only_ours(&node);
        let found = annotation(&node.metadata, LOCK_ID).or(unlabeled.as_deref());
        let Some(ended) = found.or(ending) else {
            // Nobody knows which lock they belong to.
            if removing.is_empty() {
                return Ok(removed.or_without_lock_id(&node));
            }
            if shown().await?.is_some() {
                return Ok(removed.but_still_held());
            }
            let Some(body) = to_clear(&node, false) else {
                return Ok(removed);
            };
            match patch(requests, &path(name), MERGE, &body).await {
                Ok(_) => return Ok(removed.and(removing)),
                Err(error) if error.is_not_found() => return Ok(removed),
                Err(error) => tries.wait(error).await?,
            }
            continue;
        };
        // A merge patch would not remove what is kept.
        let is_altered = removed.is_altered;
        let to_end = match is_altered {
            true => to_remove(&node, ended).map(|body| (FORCED_APPLY, body)),
            false => to_end(&node, ended),
        };
        let has_keys = found.is_some() || !removing.is_empty();
        let Some((kind, body)) = to_end else {
            return Ok(removed);
        };
        if ending != Some(ended) && shown().await?.as_deref() == Some(ended) {
            return Ok(removed.but_still_held());
        }
        if writes.next().is_none() {
            return Err(ApiError::Altered.into());
        }
        let written = match patch(requests, &path(name), kind, &body).await {
            Ok(node) => {
                removed.is_altered |= has_held_keys(&node);
                Ok(())
            }
            Err(ApiError::Altered) => {
                removed.is_altered = true;
                Ok(())
            }
            Err(error) => Err(error),
        };
        match written {
            Ok(()) if kind == MERGE => {
                removed = removed.and(removing);
                unlabeled = Some(ended.to_owned());
            }
            // The id of the lock `ending` comes after that of an earlier one.
            Ok(()) if ending.is_some_and(|ending| ending != ended) => {
                removed = removed.and(removing);
                unlabeled = None;
            }
            Ok(()) if has_keys => return Ok(removed.and(removing)),
            Ok(()) => return Ok(removed),
            Err(error) if error.is_rejection() && !has_keys => return Ok(removed),
            Err(error) if error.is_not_found() => return Ok(removed),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Removes everything that locks wrote on the Node, whatever lock it belongs to, and leaves no lock id. The cordon of a lock
/// that stands is left.
///
/// `shown` reads the lock id that the Lease shows. It is called after each read of the Node.
///
/// # Errors
/// If the Node can't be read or written, or keeps changing. Also the errors of `shown`.
///
/// # Caveats
/// Dropping this future abandons the answer. The keys may still be removed.
pub async fn clear_keys<E: From<ApiError>>(
    requests: &Requests,
    name: &str,
    shown: impl AsyncFn() -> Result<Option<String>, E>,
) -> Result<NodeKeys, E> {
    let mut tries = Tries::default();
    loop {
        let Some(node) = read::<Node>(requests, &path(name)).await? else {
            return Ok(NodeKeys::default());
        };
        let keeps_cordon = shown().await?.is_some();
        let Some(body) = to_clear(&node, keeps_cordon) else {
            return Ok(NodeKeys::default());
        };
        let mut removed = only_ours(&node);
        removed.cordon &= !keeps_cordon;
        match patch(requests, &path(name), MERGE, &body).await {
            Ok(_) => return Ok(removed),
            Err(error) if error.is_not_found() => return Ok(NodeKeys::default()),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Whether locks wrote labels or annotations on `node`, also if only the id of a lock that has ended is left.
#[must_use]
pub fn has_keys(node: &Node) -> bool {
    to_clear(node, true).is_some()
}

/// Whether `node`, as the server stored it, has keys that only locks write.
fn has_held_keys(node: &Value) -> bool {
    let maps = ["labels", "annotations"].map(|map| node["metadata"][map].as_object());
    let mut keys = maps.into_iter().flatten().flat_map(Map::keys);
    keys.any(|key| is_held_key(key))
}

/// What locks set on `node`, and nobody else.
fn only_ours(node: &Node) -> NodeKeys {
    let mut keys = NodeKeys::set_by_locks(node);
    for (map, found) in [
        ("labels", &mut keys.labels),
        ("annotations", &mut keys.annotations),
    ] {
        found.retain(|key, _| is_only_ours(&node.metadata, &["metadata", map, key]));
    }
    keys.cordon &= is_only_ours(&node.metadata, &["spec", "unschedulable"]);
    keys
}

/// The apply that writes `keys` on `node`.
fn to_set(node: &Node, of: KeysOfLock<'_>, keys: &NodeKeys) -> Step {
    if node.metadata.uid.as_deref() != Some(of.uid) {
        return Step::Done(KeysSet::NodeGone);
    }
    if annotation(&node.metadata, BREAKS) == Some(of.lock_id) {
        return Step::Done(KeysSet::LockEnded);
    }
    let mut keys = keys.on(node, of.lock_id);
    keys.annotations
        .insert(LOCK_ID.to_owned(), of.lock_id.to_owned());
    let (is_copy, conflicts) = conflicts(node, &keys);
    let is_free = |key: &String| !conflicts.iter().any(|conflict| conflict.key == *key);
    let without = |map: &BTreeMap<String, String>| {
        let mut map = map.clone();
        map.retain(|key, _| is_free(key));
        map
    };
    let labels = without(&keys.labels);
    let annotations = without(&keys.annotations);
    let has = |map: &Option<BTreeMap<String, String>>, wanted: &BTreeMap<String, String>| {
        let has = |(key, value)| map.as_ref().and_then(|map| map.get(key)) == Some(value);
        wanted.iter().all(has)
    };
    let owned = fields(&labels, &annotations, keys.cordon);
    if own_entry(&node.metadata) == Some(&owned)
        && has(&node.metadata.labels, &labels)
        && has(&node.metadata.annotations, &annotations)
        && (is_cordoned(node) || !keys.cordon)
    {
        return Step::Done(KeysSet::Done(conflicts));
    }
    let spec = keys.cordon.then(|| json!({"unschedulable": true}));
    let kind = match is_copy {
        true => FORCED_APPLY,
        false => APPLY,
    };
    Step::Apply(kind, body(node, &labels, &annotations, spec), conflicts)
}

/// The next patch at the end of a lock; `None`: there is nothing more to remove. A merge patch comes before the apply.
fn to_end(node: &Node, lock_id: &str) -> Option<(Kind, Value)> {
    let disowned = to_disown(node, lock_id).map(|body| (MERGE, body));
    disowned.or_else(|| Some((FORCED_APPLY, to_remove(node, lock_id)?)))
}

/// The apply that removes what we wrote on `node` and leaves the lock id; `None`: that is done.
fn to_remove(node: &Node, lock_id: &str) -> Option<Value> {
    let ended = BTreeMap::from([(BREAKS.to_owned(), lock_id.to_owned())]);
    let none = BTreeMap::new();
    let is_done = annotation(&node.metadata, BREAKS) == Some(lock_id)
        && own_entry(&node.metadata).is_none_or(|own| *own == fields(&none, &ended, false));
    (!is_done).then(|| body(node, &none, &ended, None))
}

/// The merge patch that removes the keys that only locks write, and what else a lock set and somebody else owns: the Node
/// was created from a copy, or somebody has edited such a key. `None`: neither.
fn to_disown(node: &Node, lock_id: &str) -> Option<Value> {
    let metadata = &node.metadata;
    let maps = [
        ("labels", &metadata.labels),
        ("annotations", &metadata.annotations),
    ];
    let is_foreign = |map: &str, key: &str| !is_only_ours(metadata, &["metadata", map, key]);
    let mut all = maps.into_iter().flat_map(|(map, found)| {
        let keys = found.iter().flat_map(BTreeMap::keys);
        keys.map(move |key| (map, key))
    });
    if !all.any(|(map, key)| is_held_key(key) && is_foreign(map, key)) {
        return None;
    }
    let removed = |(map, found): (&str, &Option<BTreeMap<String, String>>)| {
        let keys = found.iter().flat_map(BTreeMap::keys);
        let removed = keys.filter(|key| {
            is_held_key(key) || is_set_by_lock(node, map, key) && is_foreign(map, key)
        });
        let nulls = removed.map(|key| (key.clone(), Value::Null));
        nulls.collect::<Map<String, Value>>()
    };
    let [labels, mut annotations] = maps.map(removed);
    annotations.insert(BREAKS.to_owned(), json!(lock_id));
    let mut patch = json!({"metadata": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "labels": labels,
        "annotations": annotations,
    }});
    if is_listed(node, CORDON) && owns_cordon(node) {
        patch["spec"] = json!({"unschedulable": null});
    }
    Some(patch)
}

/// The merge patch that removes everything that locks wrote on `node`; `None`: there is nothing.
fn to_clear(node: &Node, keeps_cordon: bool) -> Option<Value> {
    let metadata = &node.metadata;
    let ours = only_ours(node);
    let is_copy = own_entry(metadata).is_none();
    let nulls =
        |map: &str, found: &Option<BTreeMap<String, String>>, ours: &BTreeMap<String, String>| {
            let keys = found.iter().flat_map(BTreeMap::keys).filter(|key| {
                is_held_key(key)
                    || *key == BREAKS
                    || ours.contains_key(*key)
                    || is_copy && is_set_by_lock(node, map, key)
            });
            keys.map(|key| (key.clone(), Value::Null))
                .collect::<Map<_, _>>()
        };
    let labels = nulls("labels", &metadata.labels, &ours.labels);
    let annotations = nulls("annotations", &metadata.annotations, &ours.annotations);
    let uncordons = !keeps_cordon && (ours.cordon || is_copy && is_listed(node, CORDON));
    if labels.is_empty() && annotations.is_empty() && !uncordons {
        return None;
    }
    let mut patch = json!({"metadata": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "labels": labels,
        "annotations": annotations,
    }});
    if uncordons {
        patch["spec"] = json!({"unschedulable": null});
    }
    Some(patch)
}

fn body(
    node: &Node,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    spec: Option<Value>,
) -> Value {
    let metadata = &node.metadata;
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": metadata.name,
            // Without it, the apply would create a Node that is gone.
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "annotations": annotations,
        },
    });
    // An empty map would be owned as a whole.
    if !labels.is_empty() {
        body["metadata"]["labels"] = json!(labels);
    }
    if let Some(spec) = spec {
        body["spec"] = spec;
    }
    body
}

/// Whether somebody else owns keys that only locks write, and the other keys that somebody else set to another value.
fn conflicts(node: &Node, keys: &NodeKeys) -> (bool, Vec<Conflict>) {
    let labels = node.metadata.labels.as_ref();
    let annotations = node.metadata.annotations.as_ref();
    let maps = [
        ("labels", &keys.labels, labels),
        ("annotations", &keys.annotations, annotations),
    ];
    let all = maps.iter().flat_map(|(name, wanted, found)| {
        let found = found.iter().flat_map(|found| found.iter());
        found.filter_map(move |(key, value)| {
            let other = wanted.get(key).is_some_and(|wanted| wanted != value);
            other.then_some((*name, key, value))
        })
    });
    let all = all.filter_map(|(map, key, value)| {
        let path = ["metadata", map, key];
        let other = owners(&node.metadata, &path).find(|owner| !is_own_entry(owner));
        (!is_only_ours(&node.metadata, &path)).then(|| Conflict {
            key: key.clone(),
            value: value.clone(),
            manager: other.and_then(|owner| owner.manager.clone()),
        })
    });
    let (held, others): (Vec<_>, Vec<_>) = all.partition(|conflict| is_held_key(&conflict.key));
    (!held.is_empty(), others)
}

/// The paths of what an apply writes.
fn fields(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    cordon: bool,
) -> Value {
    let set = |map: &BTreeMap<String, String>| -> Value {
        let names = map.keys().map(|key| (format!("f:{key}"), json!({})));
        Value::Object(names.collect())
    };
    let mut metadata = json!({"f:annotations": set(annotations)});
    if !labels.is_empty() {
        metadata["f:labels"] = set(labels);
    }
    let mut fields = json!({"f:metadata": metadata});
    if cordon {
        fields["f:spec"] = json!({"f:unschedulable": {}});
    }
    fields
}

pub(crate) fn path(node: &str) -> String {
    format!("/api/v1/nodes/{}", escape(node))
}
