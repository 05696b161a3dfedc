//! The state of a lock in words, and the oddities of its Lease.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};
use schemars::JsonSchema;
use serde::Serialize;

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

/// Something unusual about a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum LockFlag {
    /// The Lease has a time that can't be read, such as one in the year 9999. It counts as far in the future.
    UnreadableTime,
    /// The last renewal is in the future: the holder's clock is ahead.
    ClockAhead,
    /// It ends more than an hour from now, or was not renewed for longer than that.
    Overlong,
    /// It was deleted, but something such as a finalizer keeps it.
    Deleting,
}

impl LockFlag {
    fn words(self) -> &'static str {
        match self {
            Self::UnreadableTime => "unreadable time",
            Self::ClockAhead => "clock ahead",
            Self::Overlong => "overlong",
            Self::Deleting => "being deleted",
        }
    }
}

/// What is unusual about a Lease, for programs.
pub(crate) fn lock_flags(lease: &NodeLease, now: Now) -> Vec<LockFlag> {
    let flags = lease.flags(now);
    // The times of a free Lease have no meaning.
    let held = lease.state(now) != State::Free;
    let all = [
        (held && flags.unreadable_time, LockFlag::UnreadableTime),
        (held && flags.clock_ahead, LockFlag::ClockAhead),
        (held && flags.overlong, LockFlag::Overlong),
        (lease.is_deleting(), LockFlag::Deleting),
    ];
    let set = all.into_iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, flag)| flag).collect()
}

/// The same for people.
pub(crate) fn flag_words(lease: &NodeLease, now: Now) -> Vec<&'static str> {
    let flags = lock_flags(lease, now).into_iter();
    flags.map(LockFlag::words).collect()
}

/// The state of a node that a holder left unfinished.
pub(crate) fn node_problem(is_ready: bool, is_cordoned: bool) -> &'static str {
    match (is_ready, is_cordoned) {
        (true, _) => "still cordoned",
        (false, false) => "NotReady",
        (false, true) => "NotReady and still cordoned",
    }
}
