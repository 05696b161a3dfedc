//! The health of a node, in words and as data.

use maintenance_lease::NodeRow;
use maintenance_lease::protocol::Now;
use pod_safety::fencing::record::Since;
use pod_safety::node_health::Health;
use pod_safety::words::age;

use crate::text::escape;

/// kubectl's word for a healthy node.
const READY: &str = "Ready";

/// A Node that does not exist, in words for people.
pub(crate) const GONE: &str = "Gone: the Node was deleted, and only its Lease is left";

/// A word for programs.
pub(crate) fn word(health: &Health) -> &'static str {
    match health {
        Health::Ready => READY,
        Health::NotReady { .. } => "NotReady",
        Health::Unreachable { .. } => "Unreachable",
        Health::OutOfService { .. } => "OutOfService",
        Health::Restarted { .. } => "Fenced",
        Health::KubeletAlive { .. } => "OutOfServiceKubeletAlive",
        Health::Gone => "Gone",
    }
}

/// In words for people, such as `Unreachable 9m`.
pub(crate) fn words(health: &Health, now: Now) -> String {
    let word = word(health);
    match health {
        Health::NotReady { reporting: true } => format!("{word} (reporting)"),
        Health::Unreachable { since: Some(since) } => {
            format!("{word} {}", age(now.latest - *since))
        }
        Health::OutOfService {
            by: Some(by),
            since,
        } => {
            let which = match since {
                Some(Since::NewNode) => " before this Node was created",
                Some(Since::Restarted) => " before its last restart",
                Some(Since::SameBoot | Since::Unknown) | None => "",
            };
            format!("{word} (fenced by {}{which})", escape(by))
        }
        Health::OutOfService { by: None, .. } => format!("{word} (taint without a record)"),
        Health::Restarted { by } => {
            format!("{word} (by {}; restarted: unfence it)", escape(by))
        }
        Health::KubeletAlive { by: Some(by) } => {
            format!("OutOfService, kubelet alive (taint set by {})", escape(by))
        }
        Health::KubeletAlive { by: None } => "OutOfService, kubelet alive".to_owned(),
        Health::Ready
        | Health::NotReady { reporting: false }
        | Health::Unreachable { since: None }
        | Health::Gone => word.to_owned(),
    }
}

/// The same without names, for a table in a terminal.
fn brief(health: &Health, now: Now) -> String {
    let word = word(health);
    match health {
        Health::OutOfService {
            by: Some(_),
            since: Some(Since::SameBoot | Since::Unknown) | None,
        } => format!("{word} (fenced)"),
        Health::Restarted { .. } => format!("{word} (restarted)"),
        Health::KubeletAlive { .. } => words(&Health::KubeletAlive { by: None }, now),
        _ => words(health, now),
    }
}

/// kubectl's words for a node, with what else is known, and with names unless it `is_brief`. The first of its words only
/// says whether the node is ready.
pub(crate) fn status(row: &NodeRow, health: Option<&Health>, is_brief: bool, now: Now) -> String {
    let (readiness, rest) = match row.status.split_once(',') {
        Some((readiness, rest)) => (readiness, Some(rest)),
        None => (&row.status[..], None),
    };
    let words = if is_brief { brief } else { words };
    let readiness = health.map_or_else(|| escape(readiness), |health| words(health, now));
    match rest {
        Some(rest) => format!("{readiness},{}", escape(rest)),
        None => readiness,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use maintenance_lease::protocol::{Instant, Span};

    use super::*;

    const NOW: Instant = Instant::from_micros(1_000_000_000);

    #[test]
    fn the_first_of_kubectls_words_says_more() {
        let row = |status: &str| NodeRow {
            name: "worker-1".to_owned(),
            status: status.to_owned(),
            uid: String::new(),
            deleting: false,
            labels: BTreeMap::new(),
            fenced: false,
        };
        let by = || Some("alice\u{1b}@bastion".to_owned());
        let since = Some(NOW - Span::seconds(540));
        for (words, health, expected) in [
            ("Ready", None, "Ready"),
            ("NotReady", None, "NotReady"),
            ("Ready", Some(Health::Ready), "Ready"),
            (
                "Ready,SchedulingDisabled",
                Some(Health::Ready),
                "Ready,SchedulingDisabled",
            ),
            (
                "NotReady",
                Some(Health::NotReady { reporting: true }),
                "NotReady (reporting)",
            ),
            (
                "NotReady",
                Some(Health::NotReady { reporting: false }),
                "NotReady",
            ),
            (
                "NotReady,SchedulingDisabled",
                Some(Health::Unreachable { since }),
                "Unreachable 9m,SchedulingDisabled",
            ),
            (
                "NotReady",
                Some(Health::OutOfService {
                    by: by(),
                    since: Some(Since::SameBoot),
                }),
                "OutOfService (fenced by alice\\u{1b}@bastion)",
            ),
            (
                "NotReady",
                Some(Health::OutOfService {
                    by: by(),
                    since: Some(Since::Restarted),
                }),
                "OutOfService (fenced by alice\\u{1b}@bastion before its last restart)",
            ),
            (
                "NotReady",
                Some(Health::OutOfService {
                    by: None,
                    since: None,
                }),
                "OutOfService (taint without a record)",
            ),
            (
                "Ready,SchedulingDisabled",
                Some(Health::Restarted {
                    by: "alice\u{1b}@bastion".to_owned(),
                }),
                "Fenced (by alice\\u{1b}@bastion; restarted: unfence it),SchedulingDisabled",
            ),
            (
                "Ready",
                Some(Health::KubeletAlive { by: None }),
                "OutOfService, kubelet alive",
            ),
            (
                "Ready,SchedulingDisabled",
                Some(Health::KubeletAlive { by: by() }),
                "OutOfService, kubelet alive (taint set by alice\\u{1b}@bastion),SchedulingDisabled",
            ),
        ] {
            let status = status(&row(words), health.as_ref(), false, Now::at(NOW));
            assert_eq!(status, expected);
        }
    }
}
