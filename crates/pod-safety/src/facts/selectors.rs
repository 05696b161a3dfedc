//! Label selectors of PodDisruptionBudgets, and node selectors of volumes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

type Labels = BTreeMap<String, String>;

/// Whether `selector` matches these labels. An empty selector matches everything.
pub(crate) fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let equal = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    equal
        .map(|(key, value)| labels.get(key) == Some(value))
        .chain(expressions.map(|one| {
            let values = one.values.as_deref().unwrap_or_default();
            holds(&one.operator, labels.get(&one.key), values)
        }))
        .all(|holds| holds)
}

/// Whether a volume can be used on a node with these labels. Same rules as `CheckNodeAffinity` of
/// k8s.io/component-helpers: one term must match, and a term without any requirement matches nothing. Field
/// selectors, such as the node's name, are ignored.
pub(crate) fn is_usable_on(volume: &PersistentVolume, labels: &Labels) -> bool {
    let Some(terms) = terms(volume) else {
        return true;
    };
    terms.iter().any(|term| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let is_empty =
            expressions.is_empty() && term.match_fields.as_ref().is_none_or(Vec::is_empty);
        !is_empty
            && expressions.iter().all(|one| {
                let values = one.values.as_deref().unwrap_or_default();
                holds(&one.operator, labels.get(&one.key), values)
            })
    })
}

/// Whether a volume can only be used on some nodes.
pub(crate) fn is_limited(volume: &PersistentVolume) -> bool {
    terms(volume).is_some()
}

fn terms(volume: &PersistentVolume) -> Option<&[NodeSelectorTerm]> {
    let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
    Some(&affinity.required.as_ref()?.node_selector_terms)
}

/// Whether a label with this value (`None` if it is not set) meets a requirement.
fn holds(operator: &str, value: Option<&String>, values: &[String]) -> bool {
    let is_among = value.is_some_and(|value| values.contains(value));
    let compared = || {
        let limit = values.first()?.parse::<i64>().ok()?;
        Some(value?.parse::<i64>().ok()?.cmp(&limit))
    };
    match operator {
        "In" => is_among,
        "NotIn" => !is_among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared() == Some(Ordering::Greater),
        "Lt" => compared() == Some(Ordering::Less),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn objects_that_fit_all_requirements_are_selected() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "a"}}), false),
            (
                json!({"matchLabels": {"app": "web"}, "matchExpressions": [
                    {"key": "app", "operator": "NotIn", "values": ["web"]},
                ]}),
                false,
            ),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).expect("a selector");
            assert_eq!(selects(&read, &labels), expected, "{selector}");
        }
    }

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
