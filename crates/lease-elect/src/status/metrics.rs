//! The metrics in Prometheus' text format.

use std::fmt::Display;

use maintenance_lease::protocol::BootInstant;

use crate::election_state::{ElectionNames, ElectionSnapshot, Role};

/// Version 0.0.4 of the text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics.
pub(super) fn render(named: &ElectionNames, facts: &ElectionSnapshot, now: BootInstant) -> String {
    let deadline = facts.deadline.filter(|_| facts.role == Role::Leader);
    let left = deadline.map_or(0, |deadline| deadline.since(now).as_micros().max(0));
    let leads = u8::from(left > 0);
    let labels = format!(
        "namespace=\"{}\",lease=\"{}\"",
        named.namespace, named.lease
    );
    let name = format!("name=\"{}\"", named.lease);
    [
        metric(
            "lease_elect_leader gauge",
            "Whether this process leads.",
            &labels,
            leads,
        ),
        metric(
            "lease_elect_lead_remaining_seconds gauge",
            "Seconds until leadership ends, unless the lease is renewed.",
            &labels,
            seconds(left),
        ),
        metric(
            "lease_elect_renewals_total counter",
            "How often it renewed the lease.",
            &labels,
            facts.renewals,
        ),
        metric(
            "leader_election_master_status gauge",
            "Whether this process leads: the metric of Kubernetes' own components.",
            &name,
            leads,
        ),
    ]
    .concat()
}

/// The lines of one metric, given by its name and type. Names of Kubernetes need no escapes in labels.
fn metric(declared: &str, help: &str, labels: &str, value: impl Display) -> String {
    let name = declared.split(' ').next().unwrap_or_default();
    format!("# HELP {name} {help}\n# TYPE {declared}\n{name}{{{labels}}} {value}\n")
}

#[expect(clippy::cast_precision_loss, reason = "a lead is an hour at most")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_type_and_the_elections_labels() {
        let named = ElectionNames {
            namespace: "batch".to_owned(),
            lease: "scheduler".to_owned(),
        };
        let facts = ElectionSnapshot {
            role: Role::Leader,
            deadline: Some(BootInstant::from_micros(9_500_000)),
            renewals: 4,
            ..ElectionSnapshot::default()
        };
        let page = render(&named, &facts, BootInstant::from_micros(2_000_000));
        let labels = "{namespace=\"batch\",lease=\"scheduler\"}";
        for line in [
            format!("lease_elect_leader{labels} 1"),
            format!("lease_elect_lead_remaining_seconds{labels} 7.5"),
            format!("lease_elect_renewals_total{labels} 4"),
            "# TYPE lease_elect_renewals_total counter".to_owned(),
            "leader_election_master_status{name=\"scheduler\"} 1".to_owned(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        let over = render(&named, &facts, BootInstant::from_micros(9_500_000));
        assert!(
            over.contains(&format!("lease_elect_leader{labels} 0\n")),
            "{over}"
        );
    }
}
