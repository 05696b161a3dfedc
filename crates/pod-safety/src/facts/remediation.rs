//! Operators that repair nodes, identified by their Leases and taints.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Now, Span, has_expired};

use crate::constants::MEDIK8S;
use crate::known::Known;
use crate::taint::taints;
use crate::wire::micro_instant;

/// Whether an operator such as medik8s repairs the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remediation {
    /// No operator shows that it does, or its Lease expired.
    None,
    /// An operator holds the medik8s Lease of the node.
    Running {
        /// The operator.
        holder: String,
    },
    /// An operator put its taint on the node.
    Tainted {
        /// The taint with its value.
        taint: String,
    },
}

impl Remediation {
    /// The remediation that `lease` shows (`None` if there is no Lease).
    #[must_use]
    pub fn of(lease: Option<&Lease>, now: Now) -> Self {
        let running = lease.and_then(|lease| {
            let spec = lease.spec.as_ref()?;
            let holder = spec
                .holder_identity
                .clone()
                .filter(|holder| !holder.is_empty())?;
            let renewed = micro_instant(spec.renew_time.as_ref().or(spec.acquire_time.as_ref())?);
            let seconds = u32::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
            let end = renewed + Span::seconds(seconds);
            (!has_expired(end, now)).then_some(holder)
        });
        running.map_or(Self::None, |holder| Self::Running { holder })
    }

    /// The remediation of `node`: its taint takes precedence over the Lease.
    #[must_use]
    pub fn on(node: &Node, by_lease: Known<Self>) -> Known<Self> {
        match tainted(node) {
            Some(taint) => Known::Yes(Self::Tainted { taint }),
            None => by_lease,
        }
    }
}

/// The taint that a medik8s operator puts on a node while it works.
fn tainted(node: &Node) -> Option<String> {
    let taint = taints(node).iter().find(|taint| is_medik8s(&taint.key))?;
    Some(match &taint.value {
        Some(value) => format!("{}={value}", taint.key),
        None => taint.key.clone(),
    })
}

fn is_medik8s(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let above = domain.strip_suffix(MEDIK8S);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_lease_of_a_lock_is_no_remediation() {
        let now = Now::at(Instant::from_micros(1_772_366_400_000_000));
        let by = |holder: &str| {
            let lease = json!({"spec": {
                "holderIdentity": holder,
                "renewTime": "2026-03-01T11:59:00.000000Z",
                "leaseDurationSeconds": 600,
            }});
            let lease: Lease = serde_json::from_value(lease).expect("a Lease");
            Remediation::of(Some(&lease), now)
        };
        let holder = "node-healthcheck".to_owned();
        assert_eq!(by("node-healthcheck"), Remediation::Running { holder });
        assert_eq!(by(""), Remediation::None);
    }

    #[test]
    fn taints_of_medik8s_are_in_its_domain_or_below() {
        for (key, is_it) in [
            ("medik8s.io/remediation", true),
            ("medik8s.io/drain", true),
            ("remediation.medik8s.io/fence-agents-remediation", true),
            ("notmedik8s.io/remediation", false),
            ("medik8s.io", false),
            ("example.com/medik8s.io", false),
        ] {
            assert_eq!(is_medik8s(key), is_it, "{key}");
        }
    }
}
