//! The PodDisruptionBudgets that cover a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::selectors::selects;
use crate::known::Known;

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// How many disruptions it allows now.
    pub allowed: i32,
}

/// The budgets among those `read` that cover `pod`.
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

/// Whether `budget` covers `pod`, which is in the same namespace.
pub(crate) fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let labels = pod.metadata.labels.as_ref();
    let none = BTreeMap::new();
    selector.is_some_and(|selector| selects(selector, labels.unwrap_or(&none)))
}
