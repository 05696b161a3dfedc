//! The metrics in Prometheus' text format.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use maintenance_lease::protocol::BootInstant;

use crate::election_state::{ElectionNames, ElectionSnapshot, Role};

/// Version 0.0.4 of the text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of the metrics, and the labels of the election.
struct MetricsText {
    text: String,
    labels: String,
}

/// All metrics. They have names by Prometheus' conventions and, for existing dashboards, the names that
/// Kubernetes' own components use.
pub(super) fn render(named: &ElectionNames, facts: &ElectionSnapshot, now: BootInstant) -> String {
    let mut page = MetricsText {
        text: String::new(),
        labels: format!(
            "namespace=\"{}\",lease=\"{}\"",
            escape(&named.namespace),
            escape(&named.lease)
        ),
    };
    let leads = facts.role == Role::Leader && facts.deadline.is_some_and(|until| now < until);
    let left = facts
        .deadline
        .filter(|_| leads)
        .map_or(0, |deadline| deadline.since(now).as_micros().max(0));
    let renewed = facts
        .renewed
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let sees = facts.role == Role::Leader || facts.role == Role::Standby && !facts.is_unwatched;

    page.with(
        "lease_elect_info",
        "gauge",
        "The program and its identity.",
        &format!(
            "version=\"{}\",holder=\"{}\"",
            env!("CARGO_PKG_VERSION"),
            escape(&named.holder)
        ),
        1,
    );
    page.gauge(
        "lease_elect_leader",
        "Whether this process leads.",
        u8::from(leads),
    );
    page.gauge(
        "lease_elect_ready",
        "Whether it leads, or stands by and sees the Lease.",
        u8::from(sees),
    );
    page.gauge(
        "lease_elect_lead_remaining_seconds",
        "Seconds until leadership ends, unless the lease is renewed.",
        seconds(left),
    );
    page.gauge(
        "lease_elect_last_renewal_timestamp_seconds",
        "Time of the last acquisition or renewal; 0 if there was none.",
        renewed.map_or(0.0, |since| since.as_secs_f64()),
    );
    page.counter(
        "lease_elect_renewals_total",
        "How often it renewed the lease.",
        facts.renewals,
    );
    page.counter(
        "lease_elect_leaders_observed_total",
        "How often it saw a new leader.",
        facts.leaders_seen,
    );
    let name = format!("name=\"{}\"", escape(&named.lease));
    page.figure(
        "leader_election_master_status",
        "gauge",
        "Whether this process leads: the metric of Kubernetes' own components.",
        &name,
        u8::from(leads),
    );
    page.text
}

impl MetricsText {
    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.with(name, "gauge", help, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.with(name, "counter", help, "", value);
    }

    /// Adds a metric with `more` labels in addition to those of the election.
    fn with(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        more: &str,
        value: impl std::fmt::Display,
    ) {
        let comma = if more.is_empty() { "" } else { "," };
        let labels = format!("{}{comma}{more}", self.labels);
        self.figure(name, kind, help, &labels, value);
    }

    fn figure(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        labels: &str,
        value: impl std::fmt::Display,
    ) {
        // Writing to a string can't fail.
        let _ = write!(
            self.text,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{{labels}}} {value}\n"
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "a lead is an hour at most")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// Escapes the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_type_and_the_elections_labels() {
        let named = ElectionNames {
            namespace: "batch".to_owned(),
            lease: "scheduler".to_owned(),
            holder: "host\"1\n".to_owned(),
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
        assert!(page.contains(r#"holder="host\"1\n"}"#), "{page}");

        let over = render(&named, &facts, BootInstant::from_micros(9_500_000));
        assert!(
            over.contains(&format!("lease_elect_leader{labels} 0\n")),
            "{over}"
        );
    }
}
