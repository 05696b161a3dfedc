//! What `status` says beside its table.

use maintenance_lease::NAMESPACE;
use pod_safety::node_health::Health;

use super::fencing::count;
use super::state::ShownState;

/// kubectl's words for an empty table.
pub(crate) const NOTHING_FOUND: &str = "No resources found";

/// There may be more nodes than are shown.
pub(crate) const UNLISTED: &str = "no permission to list nodes: only nodes with a Lease are shown";

/// Nobody has locked a node at `place`, which may be the wrong cluster.
pub(crate) fn no_namespace(place: &str) -> String {
    format!("No node is locked in this cluster ({place}): namespace {NAMESPACE} does not exist")
}

/// Nodes that a table leaves out because they are free and ready.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) nodes: usize,
    /// How many of them are cordoned.
    pub(crate) cordoned: usize,
}

impl LeftOut {
    /// How many they are, beside `shown` nodes in the table.
    pub(crate) fn words(self, shown: usize) -> String {
        let other = if shown > 0 { "other " } else { "" };
        let cordoned = match (self.nodes, self.cordoned) {
            (_, 0) => String::new(),
            (1, _) => " (cordoned)".to_owned(),
            (_, cordoned) => format!(" ({cordoned} cordoned)"),
        };
        match self.nodes {
            1 => format!("1 {other}node is free and ready{cordoned}; show it with --all"),
            nodes => {
                format!("{nodes} {other}nodes are free and ready{cordoned}; show them with --all")
            }
        }
    }
}

/// How many nodes are in which state, such as `12 nodes: 9 free, 2 locked, 1 on hold`, and how many are
/// left out. Of a free node, its health is why it is in the table.
pub(crate) fn summary(nodes: &[(ShownState, Option<&Health>)], left_out: LeftOut) -> String {
    let counts = || counts(nodes);
    match (nodes.len(), left_out.nodes) {
        (0, _) => left_out.words(0),
        (_, 0) => counts(),
        (shown, _) => format!("{}. {}", counts(), left_out.words(shown)),
    }
}

fn counts(all: &[(ShownState, Option<&Health>)]) -> String {
    let of_state = |label| all.iter().filter(|(state, _)| *state == label).count();
    let free = |is_so: fn(&Health) -> bool| {
        let free = all.iter().filter(|(state, _)| *state == ShownState::Free);
        free.filter(|(_, health)| health.is_some_and(is_so)).count()
    };
    let not_ready =
        free(|health| matches!(health, Health::NotReady { .. } | Health::Unreachable { .. }));
    let out_of_service = free(|health| {
        use Health::{KubeletAlive, OutOfService, Restarted};
        matches!(
            health,
            OutOfService { .. } | Restarted { .. } | KubeletAlive { .. }
        )
    });
    let overdue = of_state(ShownState::OnHoldOverdue);
    let on_hold = match overdue {
        0 => "on hold".to_owned(),
        _ => format!("on hold ({overdue} overdue)"),
    };
    let parts: Vec<String> = [
        (
            of_state(ShownState::Free) - not_ready - out_of_service,
            "free",
        ),
        (not_ready, "free but not ready"),
        (out_of_service, "free but out of service"),
        (of_state(ShownState::Locked), "locked"),
        (of_state(ShownState::Expired), "expired"),
        (of_state(ShownState::OnHold) + overdue, &on_hold),
    ]
    .into_iter()
    .filter(|&(count, _)| count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    format!("{}: {}", count(all.len(), "node"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_why_a_free_node_is_shown() {
        let (not_ready, restarted) = (
            Health::NotReady { reporting: false },
            Health::Restarted {
                by: "bob".to_owned(),
            },
        );
        let shown = [
            (ShownState::Free, Some(&Health::Ready)),
            (ShownState::Free, Some(&not_ready)),
            (ShownState::Free, Some(&restarted)),
            (ShownState::Free, None),
            (ShownState::Locked, Some(&not_ready)),
        ];
        assert_eq!(
            summary(&shown, LeftOut::default()),
            "5 nodes: 2 free, 1 free but not ready, 1 free but out of service, 1 locked"
        );
    }
}
