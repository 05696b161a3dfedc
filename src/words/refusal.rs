//! A refusal in two lines: who, since when, until when and why; and the exact next command.

pub(crate) mod fenced;

use maintenance_lease::protocol::{Instant, Now, Refusal, SKEW_BUDGET, State, identity};
use maintenance_lease::{NodeLease, Refused};

use super::holder::person;
use super::time::{clock, remaining, span};
use crate::error::Verb;
use crate::text::{escape, for_shell};
use crate::words::command_line::NO_REASON;
use crate::words::holder::Running;
use crate::words::program::Program;

/// Who asked for what, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) verb: Verb,
    /// The caller's identity.
    pub(crate) caller: &'a str,
    /// How this program was run.
    pub(crate) program: &'a Program,
    pub(crate) now: Now,
    /// It was waited for already, in vain.
    pub(crate) waited: bool,
}

/// The two lines, the second without its `hint:`.
pub(crate) fn lines(refused: &Refused, asked: Asked<'_>) -> (String, String) {
    (message(refused, asked), hint(refused, asked))
}

/// The first of them.
pub(crate) fn message(refused: &Refused, asked: Asked<'_>) -> String {
    if let Some(lease) = fenced::hold(refused, asked) {
        return fenced::message(lease, asked.now);
    }
    let node = &refused.node;
    let holder = refused
        .lease
        .as_ref()
        .map_or_else(|| "nobody".to_owned(), person);
    let about = refused
        .lease
        .as_ref()
        .map(|lease| about(lease, refused.state, asked.now))
        .unwrap_or_default();
    let caller = escape(asked.caller);
    match refused.refusal {
        Refusal::Held => format!("node/{node} is held by {holder}{about}"),
        Refusal::HeldByCaller => {
            format!("node/{node} is held already by {holder}, you or your namesake{about}")
        }
        Refusal::Expired => format!("node/{node} has an expired lease of {holder}{about}"),
        Refusal::AdminHold => format!("node/{node} is on hold by {holder}{about}"),
        Refusal::OwnHold => format!("node/{node} is on your own hold{about}"),
        Refusal::NotHolder => match refused.state {
            State::AdminHold => format!("node/{node} is on hold by {holder}{about}"),
            State::Expired { .. } => {
                format!("node/{node} has an expired lease of {holder}{about}; you are {caller}")
            }
            _ => format!("node/{node} is held by {holder}{about}; you are {caller}"),
        },
        Refusal::NotHeld => match &refused.lease {
            None => format!(
                "node/{node} has no Lease: nobody held it, or your lease was deleted with its node"
            ),
            Some(lease) if lease.last_holder() == Some(asked.caller) => {
                let released = lease.released_at().map(Instant::from);
                let at = released.map(|at| format!(" at {}", clock(at, asked.now.latest)));
                format!(
                    "node/{node} is free: your lease was released{}",
                    at.unwrap_or_default()
                )
            }
            Some(_) => format!("node/{node} is free: there is nothing to renew"),
        },
        Refusal::NotAHold => {
            format!("node/{node} is not on hold: {holder} has a lease on it{about}")
        }
        Refusal::ChangedHands => {
            format!("node/{node} changed hands: {holder} has another acquisition of it{about}")
        }
        Refusal::Elected => format!(
            "node/{node} has a Lease whose strategy is set: coordinated leader election owns it"
        ),
        Refusal::Deleting => format!("node/{node} has a Lease that is being deleted"),
        Refusal::Foreign => {
            format!("node/{node} has a Lease that is another application's: it lacks labels")
        }
    }
}

fn hint(refused: &Refused, asked: Asked<'_>) -> String {
    let fenced = fenced::hold(refused, asked);
    if let Some(hint) = fenced.and_then(|lease| fenced::hint(refused, lease, asked)) {
        return hint;
    }
    let node = &refused.node;
    let Asked { verb, program, .. } = asked;
    let holder = refused.lease.as_ref().and_then(NodeLease::holder);
    let why = match verb {
        Verb::Release | Verb::Renew => program.asked().why(),
        _ => NO_REASON,
    };
    let by_force = format!("{program} release {node} --force -m {why}");
    let waits = asked.waited || program.asked().waits();
    // A reason to acquire with, where one was given.
    let reason = match program.asked().why() {
        NO_REASON => String::new(),
        why => format!(" -m {why}"),
    };
    // Nobody waits for a lease that lasts longer than maintenance may take.
    let overlong = is_overlong(refused, asked.now);
    let or_wait = if waits || overlong {
        ""
    } else {
        ", wait for it (--wait)"
    };
    let if_nobody = format!("if nobody is at work there: {by_force}");
    let or_by_force = match overlong {
        true => format!("; {if_nobody}"),
        false => String::new(),
    };
    let others = matches!(
        refused.refusal,
        Refusal::Held | Refusal::NotHolder | Refusal::AdminHold
    );
    if let Some(holder) = holder.filter(|holder| others && program.is_under(holder)) {
        return under(holder, asked, node);
    }
    if let Some((running, words)) = holder
        .filter(|_| others)
        .and_then(|holder| at_work(holder, asked.caller))
    {
        return match running {
            Running::With => format!("{words}; to break it: {by_force}"),
            Running::ForceDelete => format!("{words}; {}", once_it_is_free(asked, node, waits)),
        };
    }
    if let Some(holder) = holder.filter(|holder| others && is_same_user(holder, asked.caller)) {
        if verb == Verb::Hold {
            return format!(
                "if that is you on another host: {}{or_by_force}",
                program.as_holder(identity::person(holder)).again(node, "")
            );
        }
        if matches!(verb, Verb::Fence | Verb::Unfence) {
            let person = for_shell(identity::person(holder));
            return format!(
                "if that is you on another host, say so: --holder {person}{or_by_force}"
            );
        }
        if verb == Verb::With {
            return format!(
                "if that is you on another host: {}{or_by_force}",
                reentry(&program.as_holder(identity::person(holder)), node)
            );
        }
        return format!(
            "if that is you on another host: {} {} {node}{or_by_force}",
            program.as_holder(identity::person(holder)),
            as_that_holder(verb, refused.state),
        );
    }
    match (refused.refusal, verb) {
        (_, Verb::Verify) => "yours is over: stop what relied on it".to_owned(),
        (Refusal::Held | Refusal::AdminHold, Verb::Hold) => format!(
            "ask them{or_wait}, or take it over: {}{or_by_force}",
            program.again(node, "--take-over")
        ),
        (Refusal::Held | Refusal::AdminHold, Verb::Fence | Verb::Unfence) => {
            format!(
                "ask them, or take it over first: {program} hold {node} --take-over -m {why}{or_by_force}"
            )
        }
        (Refusal::AdminHold, Verb::Acquire | Verb::With) => {
            format!("ask them{or_wait}, or end it after a confirmation: {program} unhold {node}")
        }
        (Refusal::AdminHold, _) => by_unhold(asked, node),
        (Refusal::NotHolder, _) if refused.state == State::AdminHold => by_unhold(asked, node),
        (Refusal::NotHolder, Verb::Release) => {
            format!("ask them, or break it after a confirmation: {by_force}")
        }
        (Refusal::Held | Refusal::NotHolder, _) if overlong => format!("ask them; {if_nobody}"),
        (Refusal::Held, Verb::Acquire | Verb::With) if !waits => format!(
            "ask them, or wait for it: {}",
            program.again(node, "--wait")
        ),
        (Refusal::HeldByCaller, Verb::Wait) => {
            format!("it is for you to give it back: {program} release {node}")
        }
        (Refusal::OwnHold, Verb::Wait) => {
            format!("it is for you to end it: {program} unhold {node}")
        }
        (Refusal::Held | Refusal::NotHolder, _) => match refused.state {
            State::Held { until } => format!(
                "ask them, or from {} on: {}",
                clock(until + SKEW_BUDGET, asked.now.latest),
                take(asked, node)
            ),
            _ => format!("anyone may take it: {}", take(asked, node)),
        },
        (Refusal::HeldByCaller | Refusal::OwnHold, Verb::With) => {
            let whose = identity::person(holder.unwrap_or_default());
            let program = match Running::of(asked.caller).map(|(_, whose)| whose) == Some(whose) {
                true => program.clone(),
                false => program.as_holder(whose),
            };
            format!("to work under it: {}", reentry(&program, node))
        }
        (Refusal::HeldByCaller, _) => {
            format!("to extend it: {program} renew {node}; --reentry goes on under it")
        }
        (Refusal::Expired, _) => {
            format!("find out what is unfinished, then: {program} acquire {node}{reason}")
        }
        (Refusal::OwnHold, Verb::Acquire) => {
            format!("to end it: {program} unhold {node}; --reentry goes on under it")
        }
        (Refusal::OwnHold, Verb::Renew) => format!(
            "a hold has no end; to say until when it is meant: {program} hold {node} -m {why} --until TIME"
        ),
        (Refusal::OwnHold, _) => format!("this is a hold: {program} unhold {node}"),
        (Refusal::ChangedHands, Verb::Renew) => "yours is over: stop what relied on it".to_owned(),
        (Refusal::ChangedHands, _) => {
            format!("the one you named or confirmed is over; to see: {program} status {node}")
        }
        (Refusal::NotHeld, _) => format!("to take it: {program} acquire {node}{reason}"),
        (Refusal::NotAHold, _) if holder == Some(asked.caller) => {
            format!("this is a lease: {program} release {node}")
        }
        (Refusal::NotAHold, _) => format!("this is a lease; to break it: {by_force}"),
        (Refusal::Elected | Refusal::Foreign, _) => format!(
            "{} get lease -n {} {node} -o yaml",
            program.kubectl(),
            maintenance_lease::NAMESPACE
        ),
        (Refusal::Deleting, _) => format!("until it is gone: {program} status {node}"),
    }
}

/// What to do under the lock of the `with` that this runs under.
fn under(holder: &str, asked: Asked<'_>, node: &str) -> String {
    let program = asked.program;
    let flag = match asked.verb {
        Verb::Hold => {
            return format!(
                "this runs under that lock of `with`, and would end with it: leave the command first, \
                 then: {}",
                program.again(node, "")
            );
        }
        Verb::Release => {
            return "this runs under that lock of `with`, which is released when the command ends: \
                    leave it"
                .to_owned();
        }
        Verb::Wait => {
            return "this runs under that lock of `with`, which lasts until the command ends: nothing \
                    to wait for"
                .to_owned();
        }
        Verb::Acquire | Verb::With => "--reentry",
        _ => "",
    };
    format!(
        "this runs under that lock of `with`; to act as its holder: {}",
        program
            .as_holder(identity::person(holder))
            .again(node, flag)
    )
}

/// A command of the caller's own, or of a namesake's, that `holder` is and that has a node for as long as
/// it runs, in words.
pub(crate) fn at_work(holder: &str, caller: &str) -> Option<(Running, String)> {
    let (running, whose) = Running::of(holder)?;
    let until = match running {
        Running::With => "until its command ends",
        Running::ForceDelete => "until it has ended",
    };
    let name = running.name();
    (whose == caller || is_same_user(holder, caller)).then(|| {
        let words = format!("a `{name}` of yours or of your namesake has it, {until}");
        (running, words)
    })
}

/// What to do about a node that is free again soon.
fn once_it_is_free(asked: Asked<'_>, node: &str, waits: bool) -> String {
    let program = asked.program;
    match asked.verb {
        Verb::Acquire | Verb::With | Verb::Hold if !waits => {
            format!("wait for it: {}", program.again(node, "--wait"))
        }
        _ => format!("wait for it: {program} wait {node}"),
    }
}

/// How to take a node once it is free.
fn take(asked: Asked<'_>, node: &str) -> String {
    match asked.verb {
        Verb::Acquire | Verb::With | Verb::Hold => asked.program.again(node, ""),
        _ => format!("{} acquire {node}", asked.program),
    }
}

/// How to work under a lock that is there.
fn reentry(program: &Program, node: &str) -> String {
    program.again(node, "--reentry")
}

fn by_unhold(asked: Asked<'_>, node: &str) -> String {
    let unhold = format!("{} unhold {node}", asked.program);
    match asked.verb {
        Verb::Release => {
            format!("ask them, or end it as a hold, since release is for leases: {unhold}")
        }
        _ => format!("ask them, or end it after a confirmation: {unhold}"),
    }
}

/// What to do as the holder that one is on another host.
fn as_that_holder(verb: Verb, state: State) -> &'static str {
    match (verb, state) {
        (Verb::Acquire | Verb::Release | Verb::Wait, State::AdminHold) => "unhold",
        (Verb::Acquire, _) => "renew",
        (Verb::Wait, _) => "release",
        (verb, _) => verb.name(),
    }
}

/// Why, and in parentheses since when and until when: what a person looks for first comes first.
pub(crate) fn about(lease: &NodeLease, state: State, now: Now) -> String {
    format!("{}{}", why(lease), times(lease, state, now))
}

fn times(lease: &NodeLease, state: State, now: Now) -> String {
    let at = |instant: Instant| clock(instant, now.latest);
    let since = lease
        .acquired()
        .map(|acquired| format!("since {}", at(acquired.into())));
    let until = match state {
        State::Held { until } if until == Instant::UNREADABLE => {
            Some("until a time that can't be read".to_owned())
        }
        State::Held { until } => Some(format!(
            "until {}, {} left",
            at(until),
            remaining(until - now.earliest)
        )),
        State::Expired { since: Some(since) } => Some(format!(
            "expired at {}, {} ago",
            at(since),
            span(now.latest - since)
        )),
        State::Expired { since: None } => Some("without any times".to_owned()),
        State::AdminHold => lease.hold_until().map(Instant::from).map(|until| {
            if until < now.earliest {
                let overdue = span(now.earliest - until);
                format!("meant until {}, overdue by {overdue}", at(until))
            } else {
                format!("meant until {}", at(until))
            }
        }),
        State::Free => None,
    };
    let flags = super::state::flag_words(lease, now);
    let flags = flags.into_iter().map(ToOwned::to_owned);
    let parts: Vec<String> = since.into_iter().chain(until).chain(flags).collect();
    match &parts[..] {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}

/// The reason, quoted.
pub(crate) fn why(lease: &NodeLease) -> String {
    lease
        .reason()
        .filter(|reason| !reason.is_empty())
        .map(|reason| format!(": \"{}\"", escape(reason)))
        .unwrap_or_default()
}

/// It is held for longer than maintenance may take.
fn is_overlong(refused: &Refused, now: Now) -> bool {
    let lease = refused.lease.as_ref();
    lease.is_some_and(|lease| lease.flags(now).overlong)
}

/// The same user on another host, going by the `user@host` of default identities: one that they could say
/// to be.
fn is_same_user(holder: &str, caller: &str) -> bool {
    let user = |identity: &str| identity.split_once('@').map(|(user, _)| user.to_owned());
    let holder = identity::person(holder);
    holder != caller
        && user(holder).is_some()
        && user(holder) == user(caller)
        && identity::validate(holder).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_user_on_another_host_is_recognised() {
        assert!(is_same_user("alice@laptop", "alice@bastion"));
        assert!(is_same_user("kubeadm:alice@laptop", "alice@bastion"));
        assert!(!is_same_user("alice@bastion", "alice@bastion"));
        assert!(!is_same_user("bob@bastion", "alice@bastion"));
        assert!(!is_same_user("alice", "alice@bastion"));
        assert!(!is_same_user("alice@bastion ", "alice@bastion"));
    }
}
