//! The order of the rows.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now};

use super::snapshot::Snapshot;
use crate::args::status::SortKey;
use crate::words::holder_name::of_node;
use crate::words::state::ShownState;

/// Sorts `nodes` by `key`; those with equal values keep their order.
pub(super) fn sort(nodes: &mut [String], key: SortKey, snapshot: &Snapshot, now: Now) {
    let by_time = |time: Option<Instant>| {
        let micros = time.map(Instant::as_micros);
        (micros.unwrap_or(i64::MAX), String::new())
    };
    nodes.sort_by_cached_key(|node| {
        let lease = snapshot.leases.get(node);
        let held = lease.filter(|lease| lease.holder().is_some());
        match key {
            SortKey::Node => (0, node.clone()),
            SortKey::State => (ShownState::of(lease, now).urgency(), String::new()),
            SortKey::Holder => match held.and_then(NodeLease::holder) {
                Some(holder) => (0, of_node(holder)),
                None => (1, String::new()),
            },
            SortKey::Age => by_time(held.and_then(NodeLease::acquired).map(Instant::from)),
            SortKey::Left => by_time(held.and_then(|lease| lease.expected_end(now))),
        }
    });
}
