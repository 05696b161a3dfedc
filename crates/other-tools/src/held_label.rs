//! The held label and the annotations that explain it, from the lock and its Node. Pure.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Instant, identity};
use maintenance_lease::{BREAKS, NodeLease};

use crate::node_keys::{
    CORDON, HELD, LOCK_ID, NOTES, NodeKeys, SET, annotation, is_cordoned, is_held_key,
    is_only_ours, own_entry,
};
use crate::opt_outs::{is_set_by_lock, owns_cordon};

/// Whether the Node was schedulable before the lock. Then it is the lock's cordon that nobody else may undo.
const SCHEDULABLE: &str = "kubectl-maint.dev/held-schedulable";

impl NodeKeys {
    /// The held label of the lock in `lease`. That of a lock that expires says when: then the node policy no longer
    /// protects the Node.
    #[must_use]
    pub fn of_lock(lease: &NodeLease) -> Self {
        let end = lease.end().filter(|_| !lease.is_hold());
        let end = end.and_then(Instant::to_chrono).map(whole_seconds);
        let notes = [
            ("held-by", lease.holder().map(identity::person)),
            ("held-reason", lease.reason()),
            ("held-ticket", lease.ticket()),
            ("held-user", lease.api_user()),
            ("held-until", end.as_deref()),
        ];
        let notes = notes.into_iter().filter_map(|(name, value)| {
            let value = value.filter(|value| !value.is_empty())?;
            Some((format!("kubectl-maint.dev/{name}"), value.to_owned()))
        });
        Self {
            labels: [(HELD.to_owned(), "true".to_owned())].into(),
            annotations: notes.collect(),
            ..Self::default()
        }
    }

    /// The opt-outs that the lock with this id set on `node`.
    #[must_use]
    pub fn opt_outs_of(lock_id: &str, node: &Node) -> Self {
        if annotation(&node.metadata, LOCK_ID) != Some(lock_id) {
            return Self::default();
        }
        let mut keys = Self::set_by_locks(node);
        keys.labels.remove(HELD);
        keys.cordon = false;
        keys
    }

    /// What locks set on `node` and did not remove: the held label, the opt-outs, and the cordon.
    /// The annotations that explain them are left out.
    #[must_use]
    pub fn set_by_locks(node: &Node) -> Self {
        let Some(own) = own_entry(&node.metadata) else {
            return Self::default();
        };
        let owned = |map: &str, found: &Option<BTreeMap<String, String>>| {
            let is_owned = |key: &String| own["f:metadata"][map][format!("f:{key}")].is_object();
            let mut found = found.clone().unwrap_or_default();
            found.retain(|key, _| is_owned(key) && key != BREAKS && !key.starts_with(NOTES));
            found
        };
        Self {
            labels: owned("f:labels", &node.metadata.labels),
            annotations: owned("f:annotations", &node.metadata.annotations),
            cordon: own["f:spec"]["f:unschedulable"].is_object(),
        }
    }

    /// The same for this Node. A cordon of ours stays, also that of an earlier lock: only the end of the lock
    /// undoes it.
    pub(crate) fn on(&self, node: &Node, lock_id: &str) -> Self {
        let mut keys = self.clone();
        if !keys.labels.contains_key(HELD) {
            return keys;
        }
        let owns_cordon = owns_cordon(node);
        let is_same = annotation(&node.metadata, LOCK_ID) == Some(lock_id);
        let recorded = annotation(&node.metadata, SCHEDULABLE).filter(|_| is_same || owns_cordon);
        let was_schedulable = match recorded {
            Some(recorded) => recorded == "true",
            None => !is_cordoned(node),
        };
        let note = (SCHEDULABLE.to_owned(), was_schedulable.to_string());
        keys.cordon |= owns_cordon;
        let cordon = (keys.cordon && was_schedulable).then_some(CORDON);
        let set: Vec<&str> = self.set_on(node).chain(cordon).collect();
        let set = (!set.is_empty()).then(|| (SET.to_owned(), set.join(",")));
        keys.annotations.extend([note].into_iter().chain(set));
        keys
    }
}

impl NodeKeys {
    /// The opt-outs among these keys that nobody else has set.
    fn set_on<'k>(&'k self, node: &'k Node) -> impl Iterator<Item = &'k str> {
        let maps = [
            ("labels", &self.labels, &node.metadata.labels),
            ("annotations", &self.annotations, &node.metadata.annotations),
        ];
        let all = maps.into_iter().flat_map(move |(map, wanted, found)| {
            let opt_outs = wanted.iter().filter(|(key, _)| !is_held_key(key));
            opt_outs.filter(move |(key, value)| {
                match found.as_ref().and_then(|found| found.get(*key)) {
                    None => true,
                    Some(found) if found != *value => false,
                    Some(_) => {
                        is_set_by_lock(node, map, key)
                            || is_only_ours(&node.metadata, &["metadata", map, key])
                    }
                }
            })
        });
        all.map(|(key, _)| key.as_str())
    }
}

/// A time as the server prints those of writes. The node policy compares the texts.
fn whole_seconds(time: DateTime<Utc>) -> String {
    let up = match time.timestamp_subsec_nanos() {
        0 => TimeDelta::zero(),
        _ => TimeDelta::seconds(1),
    };
    (time + up).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_keys::FIELD_MANAGER;

    fn node(lock_id: &str, schedulable: Option<bool>, cordoned: bool, owns_cordon: bool) -> Node {
        let mut annotations = json!({(LOCK_ID): lock_id});
        if let Some(schedulable) = schedulable {
            annotations[SCHEDULABLE] = json!(schedulable.to_string());
        }
        let spec = if owns_cordon {
            json!({"f:unschedulable": {}})
        } else {
            json!({})
        };
        let node = json!({
            "metadata": {
                "name": "worker-1",
                "annotations": annotations,
                "managedFields": [{
                    "manager": FIELD_MANAGER, "operation": "Apply", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {}, "f:spec": spec},
                }],
            },
            "spec": {"unschedulable": cordoned},
        });
        serde_json::from_value(node).expect("a Node")
    }

    /// The lock has cordoned the Node, and the cordon is no longer ours.
    fn lists_cordon(lock_id: &str, cordoned: bool) -> Node {
        let mut node = node(lock_id, Some(true), cordoned, false);
        let annotations = node.metadata.annotations.get_or_insert_default();
        annotations.insert(SET.to_owned(), CORDON.to_owned());
        node
    }

    #[test]
    fn the_end_of_a_lock_is_rounded_up_to_a_second() {
        for (time, expected) in [
            ("2026-11-22T18:00:00Z", "2026-11-22T18:00:00Z"),
            ("2026-11-22T18:59:59.000001Z", "2026-11-22T19:00:00Z"),
        ] {
            let time: DateTime<Utc> = time.parse().expect("a time");
            assert_eq!(whole_seconds(time), expected);
        }
    }

    #[test]
    fn the_opt_outs_of_a_lock_are_what_it_owns_besides_its_label() {
        let node = json!({
            "metadata": {
                "name": "worker-1",
                "labels": {HELD: "true", "ours": "1", "theirs": "2"},
                "annotations": {LOCK_ID: "id", "kubectl-maint.dev/held-by": "alice", "opt": "out"},
                "managedFields": [{
                    "manager": FIELD_MANAGER, "operation": "Apply", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {
                        "f:labels": {"f:kubectl-maint.dev/held": {}, "f:ours": {}},
                        "f:annotations": {
                            "f:kubectl-maint.dev/held-lock-id": {}, "f:kubectl-maint.dev/held-by": {},
                            "f:opt": {},
                        },
                    }},
                }],
            },
        });
        let node: Node = serde_json::from_value(node).expect("a Node");
        let map = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
        let expected = NodeKeys {
            labels: map("ours", "1"),
            annotations: map("opt", "out"),
            ..NodeKeys::default()
        };
        assert_eq!(NodeKeys::opt_outs_of("id", &node), expected);
        let mut all = expected;
        all.labels.insert(HELD.to_owned(), "true".to_owned());
        assert_eq!(NodeKeys::set_by_locks(&node), all);
        let of_another = NodeKeys::opt_outs_of("other", &node);
        assert_eq!(of_another, NodeKeys::default());
    }

    #[test]
    fn the_state_before_the_hold_is_recorded_once_and_its_cordon_stays() {
        let keys = |cordon| NodeKeys {
            labels: [(HELD.to_owned(), "true".to_owned())].into(),
            cordon,
            ..NodeKeys::default()
        };
        for (node, asks, was_schedulable, cordons) in [
            // A new hold.
            (node("old", None, false, false), false, "true", false),
            (node("old", None, true, false), false, "false", false),
            (node("old", Some(true), true, false), true, "false", true),
            (node("old", Some(false), false, false), true, "true", true),
            // The same hold again.
            (node("id", Some(true), true, false), false, "true", false),
            (node("id", Some(true), true, true), false, "true", true),
            (node("id", Some(false), true, false), true, "false", true),
            // A hold that takes over one that cordoned.
            (node("old", Some(true), true, true), false, "true", true),
            // Somebody has uncordoned the Node, or has then cordoned it.
            (lists_cordon("id", false), false, "true", false),
            (lists_cordon("id", true), false, "true", false),
            (lists_cordon("old", true), false, "false", false),
        ] {
            let found = keys(asks).on(&node, "id");
            assert_eq!(found.annotations[SCHEDULABLE], was_schedulable, "{node:?}");
            assert_eq!(found.cordon, cordons, "{node:?}");
        }
        // A copy has no entry of ours.
        let mut copy = lists_cordon("id", true);
        copy.metadata.managed_fields = None;
        assert!(keys(false).on(&copy, "id").cordon);
        let none = NodeKeys::default();
        assert_eq!(none.on(&node("id", None, true, true), "id"), none);
    }
}
