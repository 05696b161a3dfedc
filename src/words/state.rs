//! The state of a lock, and the oddities of its Lease.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};

/// The state of a lock, as it is shown.
pub(crate) fn state_word(state: State) -> &'static str {
    match state {
        State::Free => "Free",
        State::Held { .. } => "Locked",
        State::Expired { .. } => "Expired",
        State::AdminHold => "OnHold",
    }
}

/// Something unusual about a Lease.
struct Oddity {
    /// For programs.
    name: &'static str,
    /// For people.
    words: &'static str,
}

fn oddities(lease: &NodeLease, now: Now) -> impl Iterator<Item = Oddity> {
    let flags = lease.flags(now);
    // The times of a free Lease have no meaning.
    let held = lease.state(now) != State::Free;
    [
        (
            held && flags.unreadable_time,
            "unreadableTime",
            "unreadable time",
        ),
        (held && flags.clock_ahead, "clockAhead", "clock ahead"),
        (held && flags.overlong, "overlong", "overlong"),
        (lease.is_deleting(), "deleting", "being deleted"),
    ]
    .into_iter()
    .filter_map(|(set, name, words)| set.then_some(Oddity { name, words }))
}

/// The oddities of a Lease, for programs.
pub(crate) fn flag_names(lease: &NodeLease, now: Now) -> Vec<&'static str> {
    oddities(lease, now).map(|oddity| oddity.name).collect()
}

/// The oddities of a Lease, for people.
pub(crate) fn flag_words(lease: &NodeLease, now: Now) -> Vec<&'static str> {
    oddities(lease, now).map(|oddity| oddity.words).collect()
}

/// The state of a node that a holder left unfinished.
pub(crate) fn node_problem(is_ready: bool, is_cordoned: bool) -> &'static str {
    match (is_ready, is_cordoned) {
        (true, _) => "still cordoned",
        (false, false) => "NotReady",
        (false, true) => "NotReady and still cordoned",
    }
}
