//! A refusal in two lines: holder, since when, until when and why; and the next command.

pub(crate) mod fenced;
mod hint;

use maintenance_lease::Refused;
use maintenance_lease::protocol::{Instant, Refusal, State};

pub(crate) use self::hint::running_command;
pub(super) use self::hint::{FLAGS, LONGER, flag, hint, possible_extension, wait_for};
use super::holder_name::person;
use super::lock::{about, why};
use super::request::RequestContext;
use super::state::node_problem;
use super::time::{clock, length, longest_lock, remaining};
use crate::error::Verb;
use crate::text::escape;

/// The two lines, the second without its `hint:`.
pub(crate) fn lines(refused: &Refused, request: RequestContext<'_>) -> (String, String) {
    let hint = hint(refused, std::slice::from_ref(&refused.node), request);
    (message(refused, request), hint)
}

/// The first of them: what failed, and why.
pub(crate) fn message(refused: &Refused, request: RequestContext<'_>) -> String {
    let failed = request.verb.failed(&refused.node);
    format!("{failed}: {}", cause(refused, request))
}

/// Why it is refused: who has the lock, since when, until when and why.
pub(crate) fn cause(refused: &Refused, request: RequestContext<'_>) -> String {
    if let Some(lease) = fenced::hold(refused, request) {
        return fenced::cause(lease, request.now);
    }
    let about = refused
        .lease
        .as_ref()
        .map(|lease| about(lease, refused.state, request.now))
        .unwrap_or_default();
    let holder = refused
        .lease
        .as_ref()
        .map_or_else(|| "nobody".to_owned(), person);
    cause_with(refused, 1, &holder, &about, request)
}

/// The same for this many nodes that were refused alike, with the reason and times in `about`.
pub(super) fn cause_with(
    refused: &Refused,
    nodes: usize,
    holder: &str,
    about: &str,
    request: RequestContext<'_>,
) -> String {
    let caller = escape(request.caller);
    let is_one = nodes == 1;
    let expired = match is_one {
        true => format!("the lock of {holder} has expired{about}"),
        false => format!("the locks of {holder} have expired{about}"),
    };
    let its_lease = if is_one { "its Lease" } else { "each Lease" };
    match refused.refusal {
        Refusal::Held => format!("locked by {holder}{about}"),
        Refusal::HeldByCaller if request.verb == Verb::Wait => {
            format!("locked by you as {holder}{about}")
        }
        Refusal::HeldByCaller => {
            let locks = if is_one { "this lock" } else { "these locks" };
            format!("you already hold {locks} as {holder}{about}")
        }
        Refusal::Expired => format!("it has expired{about}"),
        Refusal::Unfinished {
            is_ready,
            is_cordoned,
        } => format!(
            "{expired}, and {} {}",
            if is_one {
                "the node is"
            } else {
                "the nodes are"
            },
            node_problem(is_ready, is_cordoned)
        ),
        Refusal::AdminHold => format!("on hold by {holder}{about}"),
        Refusal::OwnHold => format!("on hold by you as {holder}{about}"),
        Refusal::NotHolder => match refused.state {
            State::AdminHold => format!("on hold by {holder}{about}"),
            State::Expired { .. } => format!("{expired}; you are {caller}"),
            _ => format!("locked by {holder}{about}; you are {caller}"),
        },
        Refusal::NotHeld => match &refused.lease {
            None => "it is free: never locked, or its Lease was deleted".to_owned(),
            Some(lease) if lease.last_holder() == Some(request.caller) => {
                let released = lease.released_at().map(Instant::from);
                let at = released.map(|at| format!(" at {}", clock(at, request.now.latest)));
                let by = lease.released_by().map(|by| format!(" by {}", escape(by)));
                format!(
                    "it is free: your lock was released{}{}{}",
                    by.unwrap_or_default(),
                    at.unwrap_or_default(),
                    why(lease)
                )
            }
            Some(_) => "it is free".to_owned(),
        },
        Refusal::NotAHold => format!("not on hold, but locked by {holder}{about}"),
        Refusal::ChangedHands if is_one => {
            format!("replaced by a newer lock of {holder}{about}")
        }
        Refusal::ChangedHands => format!("replaced by newer locks of {holder}{about}"),
        Refusal::Elected => {
            format!("{its_lease} has a strategy and belongs to coordinated leader election")
        }
        Refusal::Deleting => {
            let whose = match refused.state {
                State::Free => String::new(),
                State::AdminHold => format!("; on hold by {holder}{about}"),
                State::Expired { .. } => format!("; {expired}"),
                State::Held { .. } => format!("; locked by {holder}{about}"),
            };
            format!("{its_lease} is being deleted{whose}")
        }
        Refusal::Foreign => format!("{its_lease} belongs to another application"),
        Refusal::TooLong { left, added } => format!(
            "{} left; with {} more, the lock would last longer than {}",
            remaining(left),
            length(added),
            longest_lock()
        ),
    }
}
