//! Taints that evict pods, and the tolerations for them.

use k8s_openapi::api::core::v1::{Node, Taint, Toleration};
use maintenance_lease::protocol::Instant;

use crate::bugs::{self, Bug};
use crate::constants::OUT_OF_SERVICE;
use crate::wire::instant;

/// The effect of a taint that evicts running pods.
pub(crate) const NO_EXECUTE: &str = "NoExecute";

/// The combined effect of a Node's out-of-service taints. There may be one taint of each effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutOfService {
    /// The Node has no such taint.
    #[default]
    No,
    /// Somebody asserts that nothing runs there any more. Kubernetes believes this, whatever the taint's
    /// value and effect: it detaches volumes and deletes terminating pods. But it evicts no pods.
    Asserted,
    /// As `Asserted`, and pods that do not tolerate this taint are evicted.
    Evicting(NoExecute),
}

impl OutOfService {
    /// The combined effect of the out-of-service taints among `taints`.
    pub fn of<'a>(taints: impl IntoIterator<Item = &'a Taint>) -> Self {
        let mut worst = Self::No;
        for taint in taints
            .into_iter()
            .filter(|taint| is_out_of_service(&taint.key))
        {
            match NoExecute::read(taint) {
                Some(evicting) => return Self::Evicting(evicting),
                None => worst = Self::Asserted,
            }
        }
        worst
    }

    /// Whether somebody asserts that nothing runs there any more.
    #[must_use]
    pub fn is_asserted(&self) -> bool {
        *self != Self::No
    }

    /// Whether pods are evicted.
    #[must_use]
    pub fn is_evicting(&self) -> bool {
        matches!(self, Self::Evicting(_))
    }

    /// Whether a pod with `tolerations` is not evicted at once. It may be evicted later.
    #[must_use]
    pub fn spares(&self, tolerations: &[Toleration]) -> bool {
        match self {
            Self::No | Self::Asserted => true,
            Self::Evicting(taint) => tolerations.iter().any(|it| taint.is_tolerated_by(it)),
        }
    }
}

/// Whether a taint with this key asserts that nothing runs on its node any more.
pub(crate) fn is_out_of_service(key: &str) -> bool {
    key == OUT_OF_SERVICE
}

/// The taints of `node`.
pub(crate) fn taints(node: &Node) -> &[Taint] {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

/// A taint that evicts pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoExecute {
    /// Its key.
    pub key: String,
    /// Its value; empty if it has none.
    pub value: String,
    /// When the taint was added.
    pub added: Option<Instant>,
}

impl NoExecute {
    /// The taints of `node` that evict pods.
    #[must_use]
    pub fn of(node: &Node) -> Vec<Self> {
        taints(node).iter().filter_map(Self::read).collect()
    }

    /// Reads `taint`; `None` if it does not evict pods.
    fn read(taint: &Taint) -> Option<Self> {
        (taint.effect == NO_EXECUTE || bugs::active(Bug::AnyEffectEvicts)).then(|| Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            added: taint.time_added.as_ref().map(instant),
        })
    }

    /// Whether `toleration` keeps a pod on the node, at least for some time. Same rules as
    /// `Toleration.ToleratesTaint` of k8s.io/api.
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
    fn only_a_taint_of_one_effect_evicts_and_any_asserts() {
        let taint = |key: &str, effect: &str| Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            value: Some("x".to_owned()),
            time_added: None,
        };
        let other = taint("gpu", NO_EXECUTE);
        let asserted = taint(OUT_OF_SERVICE, "NoSchedule");
        let evicting = taint(OUT_OF_SERVICE, NO_EXECUTE);
        let of = |taints: &[&Taint]| OutOfService::of(taints.iter().copied());
        assert_eq!(of(&[&other]), OutOfService::No);
        assert_eq!(of(&[&asserted, &other]), OutOfService::Asserted);
        let is_tolerated = Toleration {
            key: Some(OUT_OF_SERVICE.to_owned()),
            value: Some("x".to_owned()),
            ..Toleration::default()
        };
        for both in [[&asserted, &evicting], [&evicting, &asserted]] {
            let both = of(&both);
            assert!(both.is_evicting() && both.is_asserted());
            assert!(both.spares(std::slice::from_ref(&is_tolerated)));
            assert!(!both.spares(&[]));
        }
        assert!(of(&[&asserted]).spares(&[]));
    }

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
