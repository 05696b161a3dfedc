//! The budgets that cover a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::known::Known;

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// How many disruptions it allows now.
    pub allowed: i32,
}

/// Those of the namespace's budgets that cover `pod`.
pub(super) fn covering(pod: &Pod, read: &Known<Vec<PodDisruptionBudget>>) -> Known<Vec<Budget>> {
    read.as_ref().map(|budgets| {
        budgets
            .iter()
            .filter(|budget| covers(budget, pod))
            .map(|budget| Budget {
                name: budget.metadata.name.clone().unwrap_or_default(),
                allowed: budget
                    .status
                    .as_ref()
                    .and_then(|status| status.disruptions_allowed)
                    .unwrap_or(0),
            })
            .collect()
    })
}

/// Whether `budget`, which is of the pod's namespace, covers `pod`.
pub(crate) fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let labels = pod.metadata.labels.as_ref();
    let none = BTreeMap::new();
    selector.is_some_and(|selector| selects(selector, labels.unwrap_or(&none)))
}

/// Whether `selector` selects what has these labels; an empty one selects everything.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    equal
        .map(|(key, value)| labels.get(key) == Some(value))
        .chain(expressions.map(|expression| {
            let value = labels.get(&expression.key);
            let among = value
                .is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match &*expression.operator {
                "In" => among,
                "NotIn" => !among,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        }))
        .all(|holds| holds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select_as_the_server_has_it() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "a"}}), false),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "web"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["web"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
                false,
            ),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).expect("a selector");
            assert_eq!(selects(&read, &labels), expected, "{selector}");
        }
    }
}
