//! The state of a lock and what is unusual about its Lease, in words.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};

use super::time::longest_lock;

/// A state as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownState {
    Free,
    Locked,
    Expired,
    OnHold,
    OnHoldOverdue,
}

impl ShownState {
    pub(crate) fn of(lease: Option<&NodeLease>, now: Now) -> Self {
        let Some(lease) = lease else {
            return Self::Free;
        };
        match lease.state(now) {
            State::Free => Self::Free,
            State::Held { .. } => Self::Locked,
            State::Expired { .. } => Self::Expired,
            State::AdminHold if lease.is_overdue(now) => Self::OnHoldOverdue,
            State::AdminHold => Self::OnHold,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Locked => "Locked",
            Self::Expired => "Expired",
            Self::OnHold => "OnHold",
            Self::OnHoldOverdue => "OnHold overdue",
        }
    }

    /// How soon somebody should look at it: the least is the most urgent.
    pub(crate) fn urgency(self) -> i64 {
        match self {
            Self::Expired => 0,
            Self::OnHoldOverdue => 1,
            Self::OnHold => 2,
            Self::Locked => 3,
            Self::Free => 4,
        }
    }
}

/// Its time can't be read.
pub(super) const UNREADABLE_TIME: &str = "unreadable time";

/// What is unusual about a Lease.
pub(crate) fn flag_words(lease: &NodeLease, now: Now) -> Vec<String> {
    let flags = lease.flags(now);
    let all = [
        (flags.unreadable_time, UNREADABLE_TIME.to_owned()),
        (flags.clock_ahead, "clock ahead".to_owned()),
        (flags.overlong, format!("longer than {}", longest_lock())),
        (lease.is_deleting(), "being deleted".to_owned()),
    ];
    let set = all.into_iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, words)| words).collect()
}

/// The state of a node that a holder left unfinished.
pub(crate) fn node_problem(is_ready: bool, is_cordoned: bool) -> &'static str {
    match (is_ready, is_cordoned) {
        (true, _) => "still cordoned",
        (false, false) => "NotReady",
        (false, true) => "NotReady and still cordoned",
    }
}
