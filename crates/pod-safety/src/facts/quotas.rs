//! ResourceQuotas that prevent the replacement of a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceQuota, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use maintenance_lease::protocol::{Now, Span};

use super::pod::has_ended;
use crate::wire::instant;

/// Amounts in billionths, by the name of the resource.
type Amounts = BTreeMap<String, i128>;

/// A quota without room for the replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// Its name and what is used up, such as `ResourceQuota/small (pods: 3 of 3 used)`.
    pub what: String,
    /// There is no room even after the pod itself stops counting. If false, it depends on whether the pod
    /// still counts.
    pub is_certain: bool,
}

/// The quotas of the pod's namespace without room for another pod like `pod`. Quotas with scopes are skipped.
///
/// A deleted pod counts until twice its grace period has passed since the deletion (`QuotaV1Pod`). The
/// controller notices this only when a pod of the namespace is removed, or at its next full recount (every 5
/// minutes by default).
pub(super) fn full(pod: &Pod, quotas: &[ResourceQuota], now: Now) -> Vec<Full> {
    let needed = usage(pod);
    let counts = counts(pod, now);
    let unscoped = quotas.iter().filter(|quota| {
        let spec = quota.spec.as_ref();
        spec.is_none_or(|spec| spec.scopes.is_none() && spec.scope_selector.is_none())
    });
    unscoped
        .filter_map(|quota| full_for(quota, &needed, counts))
        .collect()
}

fn full_for(quota: &ResourceQuota, needed: &Amounts, counts: bool) -> Option<Full> {
    let status = quota.status.as_ref()?;
    let hard = status.hard.as_ref()?;
    let full = hard.iter().filter_map(|(name, limit)| {
        let needed = *needed.get(name)?;
        let used = status.used.as_ref().and_then(|used| used.get(name));
        let (hard, now) = (amount(limit)?, used.map_or(Some(0), amount)?);
        // Without the pod itself: if the pod still counts, its usage becomes free once it is gone.
        let is_certain = now > hard;
        let is_left = now + needed <= hard || (counts || name == COUNT) && !is_certain;
        let used = used.map_or("0", |used| &used.0);
        (!is_left).then(|| (format!("{name}: {used} of {} used", limit.0), is_certain))
    });
    let full: Vec<(String, bool)> = full.collect();
    let what: Vec<&str> = full.iter().map(|(what, _)| &**what).collect();
    let name = quota.metadata.name.as_deref().unwrap_or_default();
    (!full.is_empty()).then(|| Full {
        what: format!("ResourceQuota/{name} ({})", what.join(", ")),
        is_certain: full.iter().any(|(_, is_certain)| *is_certain),
    })
}

/// This quota counts every pod for as long as its object exists.
const COUNT: &str = "count/pods";

/// Whether the quota controller still counts what `pod` uses.
fn counts(pod: &Pod, now: Now) -> bool {
    let metadata = &pod.metadata;
    let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
    let grace = Span::seconds(u32::try_from(grace).unwrap_or(0));
    let ends = metadata.deletion_timestamp.as_ref().map(instant);
    !has_ended(pod) && ends.is_none_or(|ends| now.earliest <= ends + grace)
}

/// What a pod like `pod` uses, under all names that quotas use for it (`PodUsageFunc`).
fn usage(pod: &Pod) -> Amounts {
    let one = 1_000_000_000;
    let mut used = Amounts::from([("pods".to_owned(), one), (COUNT.to_owned(), one)]);
    let Some(spec) = &pod.spec else {
        return used;
    };
    for (name, amount) in total(spec, |needs| needs.requests.as_ref()) {
        used.insert(format!("requests.{name}"), amount);
        used.insert(name, amount);
    }
    for (name, amount) in total(spec, |needs| needs.limits.as_ref()) {
        used.insert(format!("limits.{name}"), amount);
    }
    used
}

/// The requests or limits of a pod (`PodRequests`, `PodLimits`). They are the sum of its containers and
/// sidecars, or the most that an init container needs. Values set for the whole pod take precedence. The
/// pod's overhead is added.
fn total(
    spec: &PodSpec,
    of: impl Fn(&ResourceRequirements) -> Option<&BTreeMap<String, Quantity>>,
) -> Amounts {
    let read = |needs: Option<&ResourceRequirements>| -> Amounts {
        let quantities = needs.and_then(&of).into_iter().flatten();
        quantities
            .filter_map(|(name, quantity)| Some((name.clone(), amount(quantity)?)))
            .collect()
    };
    let needs = |container: &Container| read(container.resources.as_ref());
    let mut sidecars = Amounts::new();
    let mut most = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let mut while_it_starts = sidecars.clone();
        add(&mut while_it_starts, needs(container));
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.clone_from(&while_it_starts);
        }
        raise(&mut most, while_it_starts);
    }
    let mut sum = sidecars;
    for container in &spec.containers {
        add(&mut sum, needs(container));
    }
    raise(&mut sum, most);
    sum.extend(read(spec.resources.as_ref()));
    for (name, quantity) in spec.overhead.iter().flatten() {
        if let (Some(sum), Some(more)) = (sum.get_mut(name), amount(quantity)) {
            *sum += more;
        }
    }
    sum
}

fn add(sum: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        *sum.entry(name).or_default() += amount;
    }
}

fn raise(most: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        let most = most.entry(name).or_default();
        *most = amount.max(*most);
    }
}

/// A Kubernetes quantity in billionths, such as `100m`, `1.5`, `2Gi` or `1e3`.
fn amount(quantity: &Quantity) -> Option<i128> {
    let text = quantity.0.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let factor = match suffix {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024_f64.powi(2),
        "Gi" => 1024_f64.powi(3),
        "Ti" => 1024_f64.powi(4),
        "Pi" => 1024_f64.powi(5),
        "Ei" => 1024_f64.powi(6),
        exponent => 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    #[allow(clippy::cast_possible_truncation, reason = "as good as it gets")]
    Some((number * factor * 1e9).round() as i128)
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("100m", 100_000_000),
            ("1.5", 1_500_000_000),
            ("2Ki", 2048 * 1_000_000_000),
            ("1e3", 1_000 * 1_000_000_000),
            ("1k", 1_000 * 1_000_000_000),
        ] {
            assert_eq!(amount(&Quantity(text.to_owned())), Some(expected), "{text}");
        }
        assert_eq!(amount(&Quantity("many".to_owned())), None);
    }

    #[test]
    fn a_pod_uses_what_its_containers_or_its_largest_init_container_need() {
        let cpu = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let pod = json!({"spec": {
            "containers": [{"name": "a", "resources": cpu("1")}, {"name": "b", "resources": cpu("500m")}],
            "initContainers": [
                {"name": "proxy", "restartPolicy": "Always", "resources": cpu("1")},
                {"name": "load", "resources": cpu("3")},
            ],
            "overhead": {"cpu": "1"},
        }});
        let used = usage(&serde_json::from_value(pod).expect("a pod"));
        assert_eq!(used["requests.cpu"], 5_000_000_000);
        assert_eq!(used["cpu"], used["requests.cpu"]);
        assert_eq!(
            (used["pods"], used.get("limits.cpu")),
            (1_000_000_000, None)
        );
    }

    #[test]
    fn a_quota_without_room_is_found() {
        let full_at = |seconds: i64, hard: &str, used: &str, spec: &Value| {
            let pod = json!({"metadata": {
                "deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30,
            }, "spec": {"containers": []}});
            let quota = json!({
                "metadata": {"name": "small"}, "spec": spec,
                "status": {"hard": {"pods": hard}, "used": {"pods": used}},
            });
            let quota = serde_json::from_value(quota).expect("a quota");
            let now = Now::at(Instant::from_micros(seconds * 1_000_000));
            let pod = serde_json::from_value(pod).expect("a pod");
            let full = full(&pod, &[quota], now);
            full.first().map(|full| full.is_certain)
        };
        let full = |seconds, hard, used| full_at(seconds, hard, used, &json!({}));
        assert_eq!(full(600, "3", "2"), None);
        // The pod counts until twice its grace period has passed.
        assert_eq!(full(80, "3", "3"), None);
        assert_eq!(full(600, "3", "3"), Some(false));
        assert_eq!(full(80, "3", "4"), Some(true));
        assert_eq!(
            full_at(600, "3", "3", &json!({"scopes": ["BestEffort"]})),
            None
        );
    }
}
