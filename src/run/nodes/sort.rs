//! The order of the rows.

use clap::ValueEnum;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now};

use super::snapshot::Snapshot;
use crate::words::holder_name::of_node;
use crate::words::state::ShownState;

/// What rows are sorted by. Rows without the value come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortKey {
    /// Name of the node
    #[value(aliases = ["name", ".node", "{.node}", ".metadata.name", "{.metadata.name}"])]
    Node,
    /// Expired first, then overdue, on hold, locked and free
    #[value(aliases = [".state", "{.state}"])]
    State,
    /// Holder of the lock
    #[value(aliases = [".holder", "{.holder}"])]
    Holder,
    /// Oldest lock first
    #[value(aliases = [".age", "{.age}", ".acquiredAt", "{.acquiredAt}"])]
    Age,
    /// First to expire first
    #[value(aliases = [".left", "{.left}", ".until", "{.until}"])]
    Left,
}

impl SortKey {
    /// Sorts `nodes`; those with equal values keep their order.
    pub(crate) fn sort(self, nodes: &mut [String], snapshot: &Snapshot, now: Now) {
        let by_time = |time: Option<Instant>| {
            let micros = time.map(Instant::as_micros);
            (micros.unwrap_or(i64::MAX), String::new())
        };
        nodes.sort_by_cached_key(|node| {
            let lease = snapshot.leases.get(node);
            let held = lease.filter(|lease| lease.holder().is_some());
            match self {
                Self::Node => (0, node.clone()),
                Self::State => (ShownState::of(lease, now).urgency(), String::new()),
                Self::Holder => match held.and_then(NodeLease::holder) {
                    Some(holder) => (0, of_node(holder)),
                    None => (1, String::new()),
                },
                Self::Age => by_time(held.and_then(NodeLease::acquired).map(Instant::from)),
                Self::Left => by_time(held.and_then(|lease| lease.expected_end(now))),
            }
        });
    }
}
