//! A refusal in two lines: holder, since when, until when and why; and the next command.

pub(crate) mod fenced;

use std::time::Duration;

use maintenance_lease::protocol::{
    Instant, Now, Refusal, Span, State, identity, longest_extension,
};
use maintenance_lease::{NAMESPACE, NodeLease, Refused};

use super::holder_name::{behind, named, person};
use super::lock::{about, why};
use super::request::RequestContext;
use super::state::node_problem;
use super::time::{clock, length, longest_lock, remaining};
use crate::error::Verb;
use crate::error::lock_state::LockState;
use crate::text::{escape, for_shell};
use crate::words::hint_command::{MANY, NO_REASON, Program};
use crate::words::holder::HoldingCommand;

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
        Refusal::Expired if request.verb == Verb::Verify => format!("it has expired{about}"),
        Refusal::Expired => expired,
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
        Refusal::Foreign => format!(
            "{its_lease} lacks the labels of kubectl maint, so it may belong to another application"
        ),
        Refusal::TooLong { left, added } => format!(
            "{} left; with {} more, the lock would last longer than {}",
            remaining(left),
            length(added),
            longest_lock()
        ),
    }
}

/// What to do about `nodes`, which were all refused like the one in `refused`.
pub(super) fn hint(refused: &Refused, nodes: &[String], request: RequestContext<'_>) -> String {
    let fenced = fenced::hold(refused, request);
    if let Some(hint) = fenced.and_then(|lease| fenced::hint(refused, lease, nodes, request)) {
        return hint;
    }
    let RequestContext { verb, program, .. } = request;
    let named = program.narrowed(nodes);
    // A set is locked as a whole. Other verbs act on each node by itself.
    let same = match verb {
        Verb::Acquire | Verb::With => program,
        _ => &named,
    };
    let to_lock = match verb {
        Verb::Acquire | Verb::With | Verb::Hold => same.clone(),
        _ => named.of_verb(Verb::Acquire.name(), None),
    };
    let node = named.nodes(MANY);
    let (it, lock) = match nodes.len() {
        1 => ("it", "lock"),
        _ => ("them", "locks"),
    };
    let lease = refused.lease.as_ref();
    let holder = lease.and_then(NodeLease::holder);
    let whom = holder.map_or_else(|| "the holder".to_owned(), behind);
    let why = match verb {
        Verb::Release | Verb::Renew => program.why(),
        _ => NO_REASON,
    };
    let by_force = format!(
        "`{}`",
        program.run(format_args!(
            "release {node}{} --force -m {why}",
            program.dry_run()
        ))
    );
    let waits = request.waited || program.waits();
    let longer = "to wait longer, increase --timeout or remove it";
    // Don't suggest waiting for a lock that lasts longer than maintenance may take.
    let overlong = is_overlong(refused, request.now);
    let can_wait = !waits && !overlong;
    let if_nobody = format!("if nobody works there, release {it} with {by_force}");
    // A fenced node is unfenced first.
    let is_by_force = overlong && verb != Verb::Unfence;
    let or_by_force = match is_by_force {
        true => format!(", or release {it} with {by_force}"),
        false => String::new(),
    };
    let others = matches!(
        refused.refusal,
        Refusal::Held | Refusal::NotHolder | Refusal::AdminHold
    );
    if let Some(holder) = holder.filter(|holder| others && program.is_under(holder)) {
        return under(holder, verb, same);
    }
    if let Some((running, words)) = holder
        .filter(|_| others)
        .and_then(|holder| running_command(holder, request.caller))
    {
        let how = match verb {
            Verb::Acquire | Verb::With | Verb::Hold if !waits => same.with("--wait"),
            _ => format!("with `{}`", program.run(format_args!("wait {node}"))),
        };
        return match running {
            HoldingCommand::With if request.waited && verb != Verb::Wait => {
                format!("{words}; exit its command if it still runs; {longer}")
            }
            HoldingCommand::With => {
                format!("{words}; exit its command if it still runs, or wait for the lock {how}")
            }
            HoldingCommand::ForceDelete => format!("{words}; wait for the lock {how}"),
        };
    }
    if let Some(holder) =
        holder.filter(|holder| others && identity::is_same_user(holder, request.caller))
    {
        let person = identity::person(holder);
        let as_holder = same.as_holder(person);
        let what = match verb {
            Verb::Hold => as_holder.run_with(""),
            Verb::With => as_holder.run_with("--reentry"),
            Verb::Fence | Verb::Unfence => format!(
                "add `--holder {}`{}",
                for_shell(person),
                program.place_of_flags()
            ),
            Verb::Renew if refused.state == State::AdminHold => {
                let hold = to_expect(&as_holder, lease);
                return format!(
                    "a hold does not expire; if you are {whom}, set its expected end with `{hold}`"
                );
            }
            _ => {
                let verb = verb_of_same_user(verb, refused.state);
                format!("run `{}`", as_holder.run(format_args!("{verb} {node}")))
            }
        };
        return match is_by_force {
            true => format!("if you are {whom}, {what}; {if_nobody}"),
            false => format!("if you are {whom}, {what}"),
        };
    }
    let release = || {
        let command = program.run(format_args!("release {node}"));
        format!("release {it} with `{command}`")
    };
    let ask_to_unhold = || {
        let by_unhold = by_unhold(program, "it", node);
        format!("ask {whom} to end the hold; {by_unhold}")
    };
    let ask_to_release = || format!("ask {whom} to release {it}; {if_nobody}");
    match (refused.refusal, verb) {
        (_, Verb::Verify) => stop(nodes),
        (Refusal::Held | Refusal::NotHolder, Verb::Release | Verb::Renew)
            if refused.state.is_ending(request.now) =>
        {
            format!("acquire {it} {}", to_lock.with("--wait"))
        }
        // This is another lock than the one that was confirmed.
        (Refusal::Held | Refusal::AdminHold, Verb::Hold) if program.takes_over() => {
            "to take over the lock as it is now, run the command again".to_owned()
        }
        (Refusal::Held | Refusal::AdminHold, Verb::Hold) => {
            let take_over = same.with("--take-over");
            match can_wait {
                true => format!(
                    "wait for {it} {}; if nobody works there, take {it} over {take_over}",
                    same.with("--wait")
                ),
                false if request.waited && !overlong => {
                    format!("{longer}; if nobody works there, take {it} over {take_over}")
                }
                false => format!("if nobody works there, take {it} over {take_over}{or_by_force}"),
            }
        }
        (Refusal::Held | Refusal::AdminHold, Verb::Fence | Verb::Unfence) => {
            let ask = match (verb, refused.refusal) {
                // The lock of a fenced node only ends with its fencing.
                (Verb::Unfence, _) => "unfence the node",
                (_, Refusal::AdminHold) => "end the hold",
                _ => "release it",
            };
            format!(
                "ask {whom} to {ask}; if nobody works there, take the lock over first with `{}`{or_by_force}",
                named
                    .of_verb(Verb::Hold.name(), None)
                    .same_command("--take-over")
            )
        }
        (Refusal::AdminHold, Verb::Acquire | Verb::With) if can_wait => format!(
            "wait for {it} {}; {}",
            same.with("--wait"),
            by_unhold(program, "the hold", node)
        ),
        (Refusal::AdminHold, _) => ask_to_unhold(),
        (Refusal::NotHolder, _) if refused.state == State::AdminHold => ask_to_unhold(),
        (Refusal::HeldByCaller, Verb::Wait) => release(),
        (Refusal::NotAHold, _) if holder == Some(request.caller) => release(),
        (Refusal::NotHolder, Verb::Release) if matches!(refused.state, State::Expired { .. }) => {
            format!(
                "acquire {it} {}, or only end the {lock} with {by_force}",
                to_lock.with("")
            )
        }
        (Refusal::NotHolder, Verb::Release) | (Refusal::NotAHold, _) => ask_to_release(),
        (Refusal::Held | Refusal::NotHolder, _) if overlong => ask_to_release(),
        (Refusal::Held | Refusal::NotHolder, _) => match refused.state {
            State::Held { .. } if verb == Verb::Wait => {
                wait_longer(LockState::Free, nodes, program)
            }
            State::Held { .. } if request.waited => longer.to_owned(),
            State::Held { .. } => format!("wait for {it} {}", to_lock.with("--wait")),
            _ => format!("acquire {it} {}", to_lock.with("")),
        },
        (Refusal::HeldByCaller | Refusal::OwnHold, Verb::With) => {
            let whose = identity::person(holder.unwrap_or_default());
            let is_caller = HoldingCommand::of(request.caller).is_some_and(|(_, own)| own == whose);
            let same = match is_caller {
                true => same.clone(),
                false => same.as_holder(whose),
            };
            format!("work under it {}", same.with("--reentry"))
        }
        (Refusal::HeldByCaller, _) => format!(
            "extend {it} with `{}`, or add --reentry to keep working under {it}",
            program.run(format_args!("renew {node}"))
        ),
        (Refusal::Unfinished { .. }, _) => format!(
            "check what was left unfinished, then {}",
            to_lock.run_with("--take-expired")
        ),
        // Only then is an expired lock refused.
        (Refusal::Expired, _) => {
            "check what was left unfinished, then run the command without --free-only".to_owned()
        }
        (Refusal::OwnHold, Verb::Acquire) => format!(
            "end {it} with `{}`, or add --reentry to keep working under {it}",
            program.run(format_args!("unhold {node}"))
        ),
        (Refusal::OwnHold, Verb::Renew) => {
            let hold = to_expect(&named, lease);
            format!("a hold does not expire; set its expected end with `{hold}`")
        }
        (Refusal::OwnHold, _) => format!(
            "end the hold with `{}`",
            program.run(format_args!("unhold {node}"))
        ),
        (Refusal::ChangedHands, Verb::Renew) => stop(nodes),
        (Refusal::ChangedHands, _) => {
            format!(
                "show the current lock with `{}`",
                program.run(format_args!("status {node}"))
            )
        }
        (Refusal::NotHeld, _) => format!("acquire {it} {}", to_lock.with("")),
        (Refusal::TooLong { left, .. }, _) => {
            possible_extension(longest_extension(left), &named, lease)
        }
        (Refusal::Elected | Refusal::Foreign, _) => format!(
            "inspect {it} with `{}`",
            program.kubectl(format_args!("get lease -n {NAMESPACE} {node} -o yaml"))
        ),
        (Refusal::Deleting, _) => {
            format!(
                "retry when the Lease is gone; check with `{}`",
                program.run(format_args!("status {node}"))
            )
        }
    }
}

/// The command that sets the expected end of the hold in `lease`.
fn to_expect(named: &Program, lease: Option<&NodeLease>) -> String {
    let hold = named.of_verb(Verb::Hold.name(), lease);
    hold.same_command("--expect-until TIME")
}

/// The flags that [`flag`] may name. If several are needed, the hint is that for the first.
pub(super) const FLAGS: [&str; 3] = ["--reentry", "--take-expired", "--wait"];

/// The flag with which the same command would lock the refused node of a set, if there is one.
pub(super) fn flag(refused: &Refused, request: RequestContext<'_>) -> Option<&'static str> {
    let RequestContext { verb, program, .. } = request;
    let holder = refused.lease.as_ref().and_then(NodeLease::holder);
    let is_set = matches!(verb, Verb::Acquire | Verb::With);
    if !is_set || fenced::hold(refused, request).is_some() {
        return None;
    }
    match refused.refusal {
        Refusal::Unfinished { .. } => Some("--take-expired"),
        Refusal::Held | Refusal::AdminHold if holder.is_some_and(|it| program.is_under(it)) => {
            Some("--reentry")
        }
        Refusal::Held if is_overlong(refused, request.now) => None,
        Refusal::Held | Refusal::AdminHold | Refusal::Deleting => Some("--wait"),
        _ => None,
    }
}

/// How to wait for `nodes` once more, after a wait that timed out.
pub(super) fn wait_longer(awaited: LockState, nodes: &[String], program: &Program) -> String {
    let named = program.narrowed(nodes);
    let condition = match awaited {
        LockState::Free => "",
        LockState::Locked => " --for=locked",
        LockState::Expired => " --for=expired",
        LockState::OnHold => " --for=on-hold",
    };
    let nodes = named.nodes(MANY);
    format!(
        "wait longer with `{}`",
        program.run(format_args!("wait {nodes}{condition}"))
    )
}

/// What to do after losing the locks of `nodes` that the work depends on.
fn stop(nodes: &[String]) -> String {
    let locks = if nodes.len() == 1 {
        "this lock"
    } else {
        "these locks"
    };
    format!("stop the work that relied on {locks}")
}

/// What to do about the lock of the `with` that this runs under. `same` is the same command.
fn under(holder: &str, verb: Verb, same: &Program) -> String {
    let holder = identity::person(holder);
    let flag = match verb {
        Verb::Hold => {
            return "this runs inside `with`, which has the lock; exit the command of `with` first"
                .to_owned();
        }
        Verb::Release => {
            return "this runs inside `with`, which releases the lock when its command ends: exit that command"
                .to_owned();
        }
        Verb::Wait => {
            return "this runs inside `with`, which has the lock until its command ends; do not wait \
                    for it here"
                .to_owned();
        }
        Verb::Acquire | Verb::With => "--reentry",
        // A hook is not repeated.
        Verb::Fence | Verb::Unfence => {
            return format!(
                "this runs inside `with`, which has the lock; act as its holder: add `--holder {}`{}",
                for_shell(holder),
                same.place_of_flags()
            );
        }
        _ => "",
    };
    format!(
        "this runs inside `with`, which has the lock; act as its holder {}",
        same.as_holder(holder).with(flag)
    )
}

/// The `with` or similar command that `holder` belongs to, in words, if its user is the caller or has the
/// same name.
pub(crate) fn running_command(holder: &str, caller: &str) -> Option<(HoldingCommand, String)> {
    let (running, whose) = HoldingCommand::of(holder)?;
    let name = running.name();
    (whose == caller || identity::is_same_user(holder, caller)).then(|| {
        let words = format!("a `{name}` of {} has the lock", named(whose));
        (running, words)
    })
}

/// How to end a hold of somebody else, which is `called` so in the sentence.
fn by_unhold(program: &Program, called: &str, node: &str) -> String {
    format!(
        "if nobody works there, end {called} with `{}`",
        program.run(format_args!("unhold {node}"))
    )
}

/// What to do if the holder is the same user on another host.
fn verb_of_same_user(verb: Verb, state: State) -> &'static str {
    match (verb, state) {
        (Verb::Acquire | Verb::Release | Verb::Wait, State::AdminHold) => "unhold",
        (Verb::Acquire, _) => "renew",
        (Verb::Wait, _) => "release",
        (verb, _) => verb.name(),
    }
}

/// Whether it is locked for longer than maintenance may take.
fn is_overlong(refused: &Refused, now: Now) -> bool {
    let lease = refused.lease.as_ref();
    lease.is_some_and(|lease| lease.flags(now).overlong)
}

/// How to add `most` to the locks of the nodes of `named`, or to lock them for longer, with the reason in `lease` if
/// there is no new one.
pub(super) fn possible_extension(most: Span, named: &Program, lease: Option<&NodeLease>) -> String {
    let hold = named.of_verb(Verb::Hold.name(), lease).same_command("");
    let longer = format!("to keep it for longer, run `{hold}`");
    let possible = match most.to_duration().as_secs() {
        // Seconds are not worth a command.
        0..60 => return longer,
        seconds => seconds / 60 * 60,
    };
    let possible = length(Duration::from_secs(possible).into());
    let nodes = named.nodes(MANY);
    format!(
        "add at most {possible} with `{}`; {longer}",
        named.run(format_args!("renew {nodes} --duration +{possible}"))
    )
}
