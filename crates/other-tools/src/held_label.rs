//! The held label and the annotations that explain it, from the hold and its Node. Pure.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use crate::node_keys::{
    LOCK_ID, NodeKeys, annotation, is_cordoned, is_held_key, is_only_ours, own_entry,
};

/// The label of a Node on hold. The node policy protects Nodes that have it.
pub const HELD: &str = "kubectl-maint.dev/held";

/// Whether the Node was schedulable before the hold. Then it is the hold's cordon that nobody else may undo.
const SCHEDULABLE: &str = "kubectl-maint.dev/held-schedulable";

/// What else the hold set and nobody had set before: keys, and [`CORDON`]. A copy of the Node does not show it otherwise.
const SET: &str = "kubectl-maint.dev/held-set";

/// How [`SET`] calls the cordon.
pub(crate) const CORDON: &str = "cordon";

/// Whether a hold has set this key, or [`CORDON`], on the Node or on the one that it is a copy of.
pub(crate) fn is_listed(node: &Node, key: &str) -> bool {
    annotation(node, SET).is_some_and(|set| set.split(',').any(|set| set == key))
}

impl NodeKeys {
    /// The held label of the hold in `lease`.
    #[must_use]
    pub fn of_hold(lease: &NodeLease) -> Self {
        let notes = [
            ("held-by", lease.holder().map(identity::person)),
            ("held-reason", lease.reason()),
            ("held-ticket", lease.ticket()),
            ("held-user", lease.api_user()),
        ];
        let notes = notes.into_iter().filter_map(|(name, value)| {
            let value = value.filter(|value| !value.is_empty())?;
            Some((format!("kubectl-maint.dev/{name}"), value.to_owned()))
        });
        Self {
            labels: [(HELD.to_owned(), "true".to_owned())].into(),
            annotations: notes.collect(),
            cordon: false,
        }
    }

    /// The same for this Node. A cordon of ours stays, also that of an earlier hold: only the end of the hold
    /// undoes it.
    pub(crate) fn on(&self, node: &Node, lock_id: &str) -> Self {
        let mut keys = self.clone();
        if !keys.labels.contains_key(HELD) {
            return keys;
        }
        let owns_cordon = is_listed(node, CORDON)
            || own_entry(node).is_some_and(|own| own["f:spec"]["f:unschedulable"].is_object());
        let is_same = annotation(node, LOCK_ID) == Some(lock_id);
        let recorded = annotation(node, SCHEDULABLE).filter(|_| is_same || owns_cordon);
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
                    Some(_) => is_listed(node, key) || is_only_ours(node, &["metadata", map, key]),
                }
            })
        });
        all.map(|(key, _)| key.as_str())
    }
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
        ] {
            let found = keys(asks).on(&node, "id");
            assert_eq!(found.annotations[SCHEDULABLE], was_schedulable, "{node:?}");
            assert_eq!(found.cordon, cordons, "{node:?}");
        }
        let none = NodeKeys::default();
        assert_eq!(none.on(&node("id", None, true, true), "id"), none);
    }
}
