//! Whether the eviction API, which `kubectl drain` uses, would refuse an eviction.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::facts::PodSnapshot;
use crate::facts::budgets::covers;
use crate::facts::pod::phase;

/// Why an eviction would be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The budget allows no disruption now.
    Budget {
        /// Its name.
        name: String,
        /// The number of pods that must be healthy.
        desired: i32,
        /// The number of pods that are healthy.
        healthy: i32,
        /// Why the disruption controller could not process the budget, so that it allows nothing.
        failure: Option<String>,
    },
    /// Several budgets cover the pod, which the API does not support.
    Several {
        /// Their names.
        names: Vec<String>,
    },
}

impl Eviction {
    /// Why an eviction of `pod` would be refused, by the budgets of its namespace; `None` if it would be
    /// allowed. The rules are those of `EvictionREST` in the API server.
    #[must_use]
    pub fn refused(pod: &Pod, budgets: &[PodDisruptionBudget]) -> Option<Self> {
        let covering: Vec<_> = budgets.iter().filter(|one| covers(one, pod)).collect();
        let name = |budget: &PodDisruptionBudget| budget.metadata.name.clone().unwrap_or_default();
        let is_exempt = matches!(phase(pod), "Succeeded" | "Failed" | "Pending")
            || pod.metadata.deletion_timestamp.is_some();
        let budget = match covering[..] {
            _ if is_exempt => return None,
            [] => return None,
            [budget] => budget,
            _ => {
                let names = covering.into_iter().map(name).collect();
                return Some(Self::Several { names });
            }
        };
        let status = budget.status.clone().unwrap_or_default();
        let (healthy, desired) = (
            status.current_healthy.unwrap_or(0),
            status.desired_healthy.unwrap_or(0),
        );
        let policy =
            { budget.spec.as_ref() }.and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
        if !PodSnapshot::of(pod).conditions.ready
            && (policy == Some("AlwaysAllow") || (healthy >= desired && desired > 0))
        {
            return None;
        }
        let name = name(budget);
        let mut conditions = status.conditions.iter().flatten();
        let failed = conditions.find(|one| {
            one.type_ == "DisruptionAllowed"
                && one.status == "False"
                && one.reason == "SyncFailed"
                && !one.message.is_empty()
        });
        // The API server does not use the numbers of an earlier generation either.
        let is_processed =
            status.observed_generation.unwrap_or(0) >= budget.metadata.generation.unwrap_or(0);
        let is_allowed = is_processed && status.disruptions_allowed.unwrap_or(0) > 0;
        let failure = failed.map(|condition| condition.message.clone());
        (failure.is_some() || !is_allowed).then_some(Self::Budget {
            name,
            desired,
            healthy,
            failure,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(pod: &Value, budgets: &[Value]) -> Option<Eviction> {
        let budgets = budgets.iter().cloned().map(serde_json::from_value);
        let budgets: Result<Vec<_>, _> = budgets.collect();
        let pod = serde_json::from_value(pod.clone()).expect("a pod");
        Eviction::refused(&pod, &budgets.expect("budgets"))
    }

    fn budget(healthy: i32, desired: i32, allowed: i32, change: &Value) -> Value {
        let mut budget = json!({
            "metadata": {"name": "web", "generation": 2},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {
                "observedGeneration": 2, "disruptionsAllowed": allowed, "expectedPods": 2,
                "currentHealthy": healthy, "desiredHealthy": desired,
            },
        });
        for (part, fields) in change.as_object().into_iter().flatten() {
            for (field, value) in fields.as_object().into_iter().flatten() {
                budget[part][field] = value.clone();
            }
        }
        budget
    }

    #[test]
    fn an_eviction_is_refused_as_the_server_does() {
        let pod = |phase: &str, ready: &str| {
            json!({
                "metadata": {"name": "web-0", "labels": {"app": "web"}},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
            })
        };
        let ready = pod("Running", "True");
        let unready = pod("Running", "False");
        let full = budget(2, 2, 0, &json!({}));
        let short = budget(1, 2, 0, &json!({}));
        let always = budget(
            1,
            2,
            0,
            &json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
        );
        let stale = budget(2, 2, 0, &json!({"status": {"observedGeneration": 1}}));
        let blocked = |healthy| {
            Some(Eviction::Budget {
                name: "web".to_owned(),
                desired: 2,
                healthy,
                failure: None,
            })
        };
        for (pod, budget, expected) in [
            (&ready, &full, blocked(2)),
            (&ready, &budget(3, 2, 1, &json!({})), None),
            (&unready, &full, None),
            (&unready, &short, blocked(1)),
            (&unready, &always, None),
            (&ready, &always, blocked(1)),
            (&ready, &stale, blocked(2)),
            (&pod("Pending", "False"), &short, None),
            (&pod("Failed", "False"), &short, None),
        ] {
            assert_eq!(
                refused(pod, std::slice::from_ref(budget)),
                expected,
                "{pod} {budget}"
            );
        }
        let failed = json!({"status": {"observedGeneration": 0, "conditions": [{
            "type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed",
            "message": "found no controllers for pod \"web-0\"",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]}});
        let failed = refused(&ready, &[budget(0, 0, 0, &failed)]);
        let expected = Eviction::Budget {
            name: "web".to_owned(),
            desired: 0,
            healthy: 0,
            failure: Some("found no controllers for pod \"web-0\"".to_owned()),
        };
        assert_eq!(failed, Some(expected));
        let several = refused(&ready, &[full.clone(), full]);
        assert!(matches!(several, Some(Eviction::Several { names }) if names == ["web", "web"]));
        assert_eq!(refused(&ready, &[]), None);
    }
}
