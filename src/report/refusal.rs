//! A refusal in two lines: who, why, since, until; and the exact next command.

use maintenance_lease::protocol::{Instant, Now, Refusal, SKEW_BUDGET, State, identity};
use maintenance_lease::{NodeLease, Refused};

use super::time::{clock, span};
use crate::terminal::escape;

/// The two lines, the second without its `hint:`.
pub(crate) fn lines(refused: &Refused, caller: &str, program: &str, now: Now) -> (String, String) {
    let node = &refused.node;
    let holder = refused
        .lease
        .as_ref()
        .and_then(NodeLease::holder)
        .map_or_else(|| "nobody".to_owned(), escape);
    let about = refused
        .lease
        .as_ref()
        .map(|lease| about(lease, refused.state, now))
        .unwrap_or_default();
    let message = match refused.refusal {
        Refusal::Held => format!("node/{node} is held by {holder}{about}"),
        Refusal::HeldByCaller => {
            format!(
                "node/{node} is already held by {holder}, which is you or shares your name{about}"
            )
        }
        Refusal::Expired => format!("node/{node} has an expired lease of {holder}{about}"),
        Refusal::AdminHold => format!("node/{node} is on hold by {holder}{about}"),
        Refusal::OwnHold => format!("node/{node} is on your own hold{about}"),
        Refusal::NotHolder => format!("node/{node} is not yours: {holder} has it{about}"),
        Refusal::NotHeld => format!(
            "node/{node} is not held by anybody: your lease was released, or deleted with its node"
        ),
        Refusal::NotAHold => {
            format!("node/{node} is not on hold: {holder} has a lease on it{about}")
        }
        Refusal::ChangedHands => {
            format!("node/{node} changed hands: it is another acquisition, by {holder}{about}")
        }
        Refusal::Elected => format!(
            "node/{node} has a Lease whose strategy is set: coordinated leader election owns it"
        ),
        Refusal::Deleting => format!("node/{node} has a Lease that is being deleted"),
    };
    (message, hint(refused, caller, program, now))
}

fn hint(refused: &Refused, caller: &str, program: &str, now: Now) -> String {
    let node = &refused.node;
    let holder = refused.lease.as_ref().and_then(NodeLease::holder);
    let by_force = format!("to break it: {program} release {node} --force -m WHY");
    match refused.refusal {
        Refusal::Held | Refusal::NotHolder | Refusal::ChangedHands
            if holder.is_some_and(|holder| is_same_user(holder, caller)) =>
        {
            format!(
                "if that is you on another host, be that holder: --holder {}",
                holder.map(escape).unwrap_or_default()
            )
        }
        Refusal::Held => match free_from(refused) {
            Some(from) => format!(
                "from {} on: {program} acquire {node}; {by_force}",
                clock(from, now.latest)
            ),
            None => by_force,
        },
        Refusal::HeldByCaller => {
            format!("{program} renew {node} extends it; acquire --reentry {node} goes on under it")
        }
        Refusal::Expired => {
            format!(
                "find out what is unfinished, then without --free-only: {program} acquire {node}"
            )
        }
        Refusal::AdminHold => format!(
            "ask them to end it, or: {program} unhold {node} (asks first), {program} hold {node} --take-over -m WHY"
        ),
        Refusal::OwnHold => format!("this is a hold: {program} unhold {node}"),
        Refusal::NotHolder | Refusal::ChangedHands => {
            format!("who and why: {program} status {node}; {by_force}")
        }
        Refusal::NotHeld => format!("{program} acquire {node} takes it anew"),
        Refusal::NotAHold => format!("{program} release {node} is for leases"),
        Refusal::Elected => format!(
            "kubectl get lease -n {} {node} -o yaml",
            maintenance_lease::NAMESPACE
        ),
        Refusal::Deleting => format!("{program} status {node} shows when it is gone"),
    }
}

/// Why, since when and until when, in brackets.
pub(crate) fn about(lease: &NodeLease, state: State, now: Now) -> String {
    let mut facts = Vec::new();
    if let Some(acquired) = lease.acquired() {
        let acquired = Instant::from(acquired);
        facts.push(format!(
            "since {}, {} ago",
            clock(acquired, now.latest),
            span(now.latest - acquired)
        ));
    }
    match state {
        State::Held { until } if until == Instant::UNREADABLE => {
            facts.push("until a time that can't be read".to_owned());
        }
        State::Held { until } => facts.push(format!(
            "until {}, {} left",
            clock(until, now.latest),
            span(until - now.earliest)
        )),
        State::Expired { since: Some(since) } => facts.push(format!(
            "expired {}, {} ago",
            clock(since, now.latest),
            span(now.latest - since)
        )),
        State::Expired { since: None } => facts.push("without any times".to_owned()),
        State::AdminHold => match lease.hold_until().map(Instant::from) {
            Some(until) if until < now.earliest => facts.push(format!(
                "meant until {}, overdue by {}",
                clock(until, now.latest),
                span(now.earliest - until)
            )),
            Some(until) => facts.push(format!("meant until {}", clock(until, now.latest))),
            None => facts.push("until they let go".to_owned()),
        },
        State::Free => {}
    }
    let why = lease
        .reason()
        .filter(|reason| !reason.is_empty())
        .map(|reason| format!(": \"{}\"", escape(reason)))
        .unwrap_or_default();
    let flags = super::item::flag_words(lease, now);
    if !flags.is_empty() {
        facts.push(flags.join(", "));
    }
    if facts.is_empty() {
        why
    } else {
        format!("{why} ({})", facts.join("; "))
    }
}

/// The earliest instant at which somebody else may take what is held.
fn free_from(refused: &Refused) -> Option<Instant> {
    match refused.state {
        State::Held { until } if until != Instant::UNREADABLE => Some(until + SKEW_BUDGET),
        _ => None,
    }
}

/// The same user on another host, going by the `user@host` of default identities.
fn is_same_user(holder: &str, caller: &str) -> bool {
    let user = |identity: &str| identity.split_once('@').map(|(user, _)| user.to_owned());
    let holder = identity::person(holder);
    holder != caller && user(holder).is_some() && user(holder) == user(caller)
}
