//! What `status` says beside its table.

use super::confirmation::nodes;
use super::state::ShownState;

/// kubectl's words for an empty table.
pub(crate) const NOTHING_FOUND: &str = "No resources found";

/// There may be more nodes than are shown.
pub(crate) const UNLISTED: &str = "no permission to list nodes: only nodes with a Lease are shown";

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
/// left out.
pub(crate) fn summary(states: &[ShownState], left_out: LeftOut) -> String {
    let counts = || counts(states);
    match (states.len(), left_out.nodes) {
        (0, _) => left_out.words(0),
        (_, 0) => counts(),
        (shown, _) => format!("{}. {}", counts(), left_out.words(shown)),
    }
}

fn counts(states: &[ShownState]) -> String {
    let count = |label| states.iter().filter(|state| **state == label).count();
    let overdue = count(ShownState::OnHoldOverdue);
    let on_hold = match overdue {
        0 => "on hold".to_owned(),
        _ => format!("on hold ({overdue} overdue)"),
    };
    let parts: Vec<String> = [
        (count(ShownState::Free), "free"),
        (count(ShownState::Locked), "locked"),
        (count(ShownState::Expired), "expired"),
        (count(ShownState::OnHold) + overdue, &on_hold),
    ]
    .into_iter()
    .filter(|&(count, _)| count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    format!("{}: {}", nodes(states.len()), parts.join(", "))
}
