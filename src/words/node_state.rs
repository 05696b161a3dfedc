//! The states of awaited nodes, in words.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use maintenance_lease::protocol::{Now, Refusal, State, identity};
use maintenance_lease::{Blocked, NodeLease, Refused};

use super::holder_name::person;
use super::lock::about;
use super::waiting;
use crate::error::lock_state::Awaited;

/// The most nodes that are listed one by one.
const MOST: usize = 10;

/// The most holders that are named in one line.
const MOST_HOLDERS: usize = 3;

/// The state of a node: free, or who holds it, why, since when and until when.
pub(crate) fn line(node: &str, lease: Option<&NodeLease>, now: Now) -> String {
    format!("node/{node} {}", state(lease, "", now))
}

/// The lock that a script verified.
pub(crate) fn still_locked(lease: &NodeLease, now: Now) -> String {
    let about = about(lease, lease.state(now), now);
    let node = lease.node();
    format!("node/{node} is still locked by {}{about}", person(lease))
}

/// The same without the node. Locks of `caller` are theirs.
pub(crate) fn state(lease: Option<&NodeLease>, caller: &str, now: Now) -> String {
    let (lease, state) = match lease.map(|lease| (lease, lease.state(now))) {
        Some((lease, State::Free)) if lease.is_deleting() => {
            return "has a Lease that is being deleted".to_owned();
        }
        None | Some((_, State::Free)) => return "is free".to_owned(),
        Some(locked) => locked,
    };
    let how = match state {
        State::Expired { .. } => "has an expired lock of",
        State::AdminHold => "is on hold by",
        State::Free | State::Held { .. } => "is locked by",
    };
    let (holder, about) = (person(lease), about(lease, state, now));
    match lease.holder().map(identity::person) == Some(caller) {
        true if matches!(state, State::Expired { .. }) => {
            format!("{how} yours, held as {holder}{about}")
        }
        true => format!("{how} you as {holder}{about}"),
        false => format!("{how} {holder}{about}"),
    }
}

/// Why no lock id is printed.
pub(crate) fn without_lock_id(lease: &NodeLease) -> String {
    format!(
        "node/{} is locked by {}, but without a lock id: another tool locked it, or the Lease was edited",
        lease.node(),
        person(lease)
    )
}

/// As in "waiting for it to be free".
impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Locked => "locked",
        })
    }
}

/// What to report once about a node: its state and holder, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportedState {
    state: std::mem::Discriminant<State>,
    holder: Option<String>,
    reason: Option<String>,
    ticket: Option<String>,
    transitions: Option<u32>,
    deleting: bool,
}

impl ReportedState {
    pub(crate) fn of(lease: Option<&NodeLease>, now: Now) -> Self {
        let state = lease.map_or(State::Free, |lease| lease.state(now));
        let deleting = lease.is_some_and(NodeLease::is_deleting);
        let lease = lease.filter(|_| state != State::Free);
        Self {
            state: std::mem::discriminant(&state),
            holder: lease.and_then(NodeLease::holder).map(ToOwned::to_owned),
            reason: lease.and_then(NodeLease::reason).map(ToOwned::to_owned),
            ticket: lease.and_then(NodeLease::ticket).map(ToOwned::to_owned),
            transitions: lease.map(NodeLease::transitions),
            deleting,
        }
    }
}

/// The awaited nodes, by name, with their Leases.
pub(crate) struct AwaitedNodes<'a> {
    pub(crate) nodes: Vec<(&'a str, Option<&'a NodeLease>)>,
    /// How many there were.
    pub(crate) all: usize,
    pub(crate) awaited: Awaited,
    /// Who waits.
    pub(crate) caller: &'a str,
}

impl AwaitedNodes<'_> {
    /// Whether there are too many to list one by one.
    pub(crate) fn are_many(&self) -> bool {
        self.nodes.len() > MOST
    }

    /// A line with everything to report about one of them.
    pub(crate) fn line_of(&self, node: &str, lease: Option<&NodeLease>, now: Now) -> String {
        format!(
            "waiting for node/{node} to be {}: it {}",
            self.awaited,
            state(lease, self.caller, now)
        )
    }

    /// How many there are, and who holds them.
    pub(crate) fn count(&self, now: Now) -> String {
        format!("{}{}", self.number(), self.holders(now))
    }

    fn number(&self) -> String {
        format!(
            "waiting for {} of {} nodes to be {}",
            self.nodes.len(),
            self.all,
            self.awaited
        )
    }

    /// Who holds them, first who holds the most.
    fn holders(&self, now: Now) -> String {
        let leases = self.nodes.iter().filter_map(|(_, lease)| *lease);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for lease in leases.filter(|lease| lease.state(now) != State::Free) {
            *counts.entry(person(lease)).or_default() += 1;
        }
        let mut holders: Vec<(String, usize)> = counts.into_iter().collect();
        holders.sort_by_key(|&(_, count)| Reverse(count));
        let more = match holders.len().saturating_sub(MOST_HOLDERS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let holders: Vec<String> = holders
            .into_iter()
            .take(MOST_HOLDERS)
            .map(|(holder, count)| match count == self.nodes.len() {
                true => holder,
                false => format!("{holder} ({count})"),
            })
            .collect();
        match holders.is_empty() {
            true => String::new(),
            false => format!("; holders: {}{more}", holders.join(", ")),
        }
    }

    /// The same in one line. `refused` tells why an acquisition of the only node would be refused, and `left` how long the
    /// wait may still last.
    pub(crate) fn short(
        &self,
        refused: Option<Refused>,
        left: Option<Duration>,
        now: Now,
    ) -> String {
        let limit = left.map(|left| waiting::time_limit(left, now));
        let limit = limit.unwrap_or_default();
        match (&self.nodes[..], refused) {
            (&[(_, lease)], Some(refused)) if ends_without_acquire(refused.refusal) => {
                let earliest = lease.and_then(NodeLease::takeover);
                let blocked = Blocked { refused, earliest };
                let line = waiting::short(&blocked, now);
                format!("{line}{limit}")
            }
            (&[(node, lease)], _) => self.line_of(node, lease, now),
            _ => format!("{}{limit}{}", self.number(), self.holders(now)),
        }
    }
}

/// Whether time or somebody else ends what `refusal` is for, so that a wait can say when the node is free.
fn ends_without_acquire(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Held
            | Refusal::HeldByCaller
            | Refusal::AdminHold
            | Refusal::OwnHold
            | Refusal::Deleting
    )
}
