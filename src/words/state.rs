//! The state of a lock and what is unusual about its Lease, in words.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};
use schemars::JsonSchema;
use serde::Serialize;

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
    /// What is unusual about `lease`.
    pub(crate) fn all(lease: &NodeLease, now: Now) -> Vec<Self> {
        let flags = lease.flags(now);
        let all = [
            (flags.unreadable_time, Self::UnreadableTime),
            (flags.clock_ahead, Self::ClockAhead),
            (flags.overlong, Self::Overlong),
            (lease.is_deleting(), Self::Deleting),
        ];
        let set = all.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, flag)| flag).collect()
    }

    pub(crate) fn words(self) -> String {
        match self {
            Self::UnreadableTime => "unreadable time".to_owned(),
            Self::ClockAhead => "holder's clock ahead".to_owned(),
            Self::Overlong => format!("over the {} limit", longest_lock()),
            Self::Deleting => "being deleted".to_owned(),
        }
    }
}

/// What is unusual about a Lease.
pub(crate) fn flag_words(lease: &NodeLease, now: Now) -> Vec<String> {
    let flags = LockFlag::all(lease, now).into_iter();
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
