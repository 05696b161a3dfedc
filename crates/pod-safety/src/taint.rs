//! Taints that evict pods, and who tolerates them.

use k8s_openapi::api::core::v1::{Node, Taint, Toleration};
use maintenance_lease::protocol::Instant;

use crate::wire::instant;

/// The effect of a taint that evicts pods which run already.
const NO_EXECUTE: &str = "NoExecute";

/// A taint that evicts pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoExecute {
    /// Its key.
    pub key: String,
    /// Its value; empty where it has none.
    pub value: String,
    /// Since when the node has it.
    pub added: Option<Instant>,
}

impl NoExecute {
    /// Those of `node`.
    #[must_use]
    pub fn of(node: &Node) -> Vec<Self> {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
        let evicting = |taint: &&Taint| taint.effect == NO_EXECUTE;
        let taints = taints.unwrap_or_default().iter().filter(evicting);
        taints
            .map(|taint| Self {
                key: taint.key.clone(),
                value: taint.value.clone().unwrap_or_default(),
                added: taint.time_added.as_ref().map(instant),
            })
            .collect()
    }

    /// Whether `toleration` keeps a pod there, be it for a time, as `Toleration.ToleratesTaint` of
    /// k8s.io/api has it.
    #[must_use]
    pub fn is_tolerated_by(&self, toleration: &Toleration) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted
                .as_deref()
                .is_none_or(|wanted| wanted.is_empty() || wanted == value)
        };
        is(&toleration.effect, NO_EXECUTE)
            && is(&toleration.key, &self.key)
            && match toleration.operator.as_deref() {
                Some("Exists") => true,
                None | Some("" | "Equal") => {
                    toleration.value.as_deref().unwrap_or_default() == self.value
                }
                Some(_) => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_is_of_one_value_and_effect() {
        let taint = NoExecute {
            key: "node.kubernetes.io/out-of-service".to_owned(),
            value: "nodeshutdown".to_owned(),
            added: None,
        };
        let toleration = |operator: &str, value: &str, effect: &str| Toleration {
            key: Some(taint.key.clone()),
            operator: (!operator.is_empty()).then(|| operator.to_owned()),
            value: Some(value.to_owned()),
            effect: (!effect.is_empty()).then(|| effect.to_owned()),
            toleration_seconds: None,
        };
        for (operator, value, effect, tolerated) in [
            ("", "nodeshutdown", "", true),
            ("Equal", "nodeshutdown", "NoExecute", true),
            ("Equal", "other", "", false),
            ("Exists", "", "", true),
            ("Exists", "", "NoSchedule", false),
            ("Gt", "nodeshutdown", "", false),
        ] {
            let toleration = toleration(operator, value, effect);
            assert_eq!(
                taint.is_tolerated_by(&toleration),
                tolerated,
                "{toleration:?}"
            );
        }
    }
}
