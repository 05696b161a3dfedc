//! The nodes on which a volume can be used.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume};

/// Whether a volume can be used on a node with these labels, as `CheckNodeAffinity` of
/// k8s.io/component-helpers decides: one term has to match, one without any requirement matches nothing,
/// and fields such as the name of the node don't count.
#[must_use]
pub fn is_usable_on(volume: &PersistentVolume, labels: &BTreeMap<String, String>) -> bool {
    let Some(terms) = terms(volume) else {
        return true;
    };
    terms.iter().any(|term| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let is_empty =
            expressions.is_empty() && term.match_fields.as_ref().is_none_or(Vec::is_empty);
        !is_empty && expressions.iter().all(|one| holds(one, labels))
    })
}

/// Whether it can only be used on some nodes.
pub(crate) fn is_limited(volume: &PersistentVolume) -> bool {
    terms(volume).is_some()
}

fn terms(volume: &PersistentVolume) -> Option<&[NodeSelectorTerm]> {
    let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
    Some(&affinity.required.as_ref()?.node_selector_terms)
}

fn holds(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let mut values = requirement.values.iter().flatten();
    let among = value.is_some_and(|value| values.clone().any(|one| one == value));
    let mut compared = || {
        let number: i64 = value?.parse().ok()?;
        let limit: i64 = values.next()?.parse().ok()?;
        Some(number.cmp(&limit))
    };
    match &*requirement.operator {
        "In" => among,
        "NotIn" => !among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn one_term_has_to_match_with_all_of_its_requirements() {
        let labels = [("zone", "a"), ("size", "5")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = BTreeMap::from(labels);
        let one = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let usable = |terms: &[Value]| {
            let volume =
                json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
            is_usable_on(&serde_json::from_value(volume).expect("a volume"), &labels)
        };
        for (term, expected) in [
            (one("zone", "In", &["b", "a"]), true),
            (one("zone", "In", &["b"]), false),
            (one("zone", "NotIn", &["b"]), true),
            (one("rack", "NotIn", &["b"]), true),
            (one("zone", "NotIn", &["a"]), false),
            (one("zone", "Exists", &[]), true),
            (one("rack", "Exists", &[]), false),
            (one("rack", "DoesNotExist", &[]), true),
            (one("size", "Gt", &["4"]), true),
            (one("size", "Gt", &["5"]), false),
            (one("size", "Lt", &["6"]), true),
            (one("zone", "Lt", &["6"]), false),
            (json!({}), false),
            (
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}),
                true,
            ),
        ] {
            assert_eq!(usable(std::slice::from_ref(&term)), expected, "{term}");
            assert_eq!(usable(&[one("zone", "In", &["b"]), term]), expected);
        }
        assert!(!usable(&[]));
        assert!(is_usable_on(&PersistentVolume::default(), &labels));
    }
}
