//! The result of a verb for a node, in words.

use maintenance_lease::protocol::{Instant, LockId, Now, Span, State};
use maintenance_lease::{Change, Done, NodeLease, SideEffect};

use super::holder_name::{named, person};
use super::lock::{about, why};
use super::state::node_problem;
use super::time::{clock, length, remaining};
use crate::error::Verb;
use crate::text::escape;
use crate::words::hint_command::{MANY, Program};
use crate::words::refusal::possible_extension;

/// The suffix of messages, which shows a dry run.
pub(crate) fn dry_run_suffix(is_dry_run: bool) -> &'static str {
    match is_dry_run {
        true => " (dry run)",
        false => "",
    }
}

/// What to know about a change to report it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeContext {
    pub(crate) now: Now,
    pub(crate) is_dry_run: bool,
    /// Whether it was another's lock.
    pub(crate) broken: bool,
    /// Whether the node was not named: then the message says what was released.
    pub(crate) unnamed: bool,
}

/// The result, in one line.
pub(crate) fn line(change: &Change, context: ChangeContext) -> String {
    format!(
        "node/{} {}{}",
        change.node,
        what(change, context),
        dry_run_suffix(context.is_dry_run)
    )
}

fn what(change: &Change, context: ChangeContext) -> String {
    let ChangeContext { now, broken, .. } = context;
    let holder = |lease: &Option<NodeLease>| lease.as_ref().map(person).unwrap_or_default();
    let by = |what: &str| {
        let (holder, until) = (holder(&change.lease), until(change, now));
        format!("{what} by {holder}{until}")
    };
    let lease = change.lease.as_ref();
    let is_hold = lease.is_some_and(|lease| lease.state(now) == State::AdminHold);
    let (ended, was) = match change.state_before {
        State::AdminHold => ("hold ended", "on hold"),
        _ => ("released", "locked"),
    };
    let has_expired = matches!(change.state_before, State::Expired { .. });
    match change.done {
        Done::Acquired if is_hold => {
            by("on hold") + &instead_of(change, broken, now) + &removed_ticket(change, broken)
        }
        Done::Renewed if is_hold => by("hold updated") + &date_before(change, now),
        Done::Acquired => by("acquired"),
        Done::Renewed if change.unused_duration().is_some() => {
            let updated = match has_new_reason(change) {
                true => "reason updated; ",
                false => "",
            };
            by(&format!(
                "{updated}not extended, because the lock already lasts longer: locked"
            ))
        }
        Done::Renewed => by("renewed"),
        Done::AlreadyHeld => "already on hold by you".to_owned(),
        Done::Released if broken && has_expired => {
            format!("{ended} (expired lock of {})", holder(&change.before))
        }
        Done::Released if broken => format!("{ended} (was {was} by {})", holder(&change.before)),
        Done::Released => ended.to_owned() + &released_lock(change, was, context),
        Done::AlreadyFree => "already free".to_owned(),
    }
}

/// What was released, if the node was not named.
fn released_lock(change: &Change, locked: &str, context: ChangeContext) -> String {
    let Some(before) = change.before.as_ref().filter(|_| context.unnamed) else {
        return String::new();
    };
    let since = before
        .acquired()
        .map(|acquired| format!(" since {}", clock(acquired.into(), context.now.latest)))
        .unwrap_or_default();
    format!(" ({locked}{since}{})", why(before))
}

/// What a hold replaced: another's lock, or the caller's own lease.
fn instead_of(change: &Change, broken: bool, now: Now) -> String {
    match (&change.before, change.state_before) {
        (Some(before), _) if broken => format!(", taken over from {}", person(before)),
        (_, State::Held { until }) => {
            format!(
                "; this replaces your lock, which would have expired at {}",
                clock(until, now.latest)
            )
        }
        _ => String::new(),
    }
}

/// The date that a hold had before, if it has another date now.
fn date_before(change: &Change, now: Now) -> String {
    let date = |lease: &Option<NodeLease>| lease.as_ref().and_then(NodeLease::hold_until);
    match (date(&change.before), date(&change.lease)) {
        (Some(before), after) if after != Some(before) => {
            format!(" (was {})", clock(before.into(), now.latest))
        }
        _ => String::new(),
    }
}

/// The ticket of the caller's own lock, if a hold without one replaced it.
fn removed_ticket(change: &Change, broken: bool) -> String {
    let ticket = |lease: &Option<NodeLease>| {
        let ticket = lease.as_ref().and_then(NodeLease::ticket);
        ticket.map(escape)
    };
    let holder = |lease: &Option<NodeLease>| lease.as_ref().map(person);
    let is_own = !broken && holder(&change.before) == holder(&change.lease);
    match (ticket(&change.before), ticket(&change.lease)) {
        (Some(before), None) if is_own => format!("; ticket {before} removed"),
        _ => String::new(),
    }
}

/// The lock was released because its result could not be written.
pub(crate) fn released_unwritten(node: &str) -> String {
    format!("node/{node} was released, because the result could not be written")
}

/// The lock stays, although its result could not be written.
pub(crate) fn kept_unwritten(node: &str, lock_id: Option<LockId>) -> String {
    let id = lock_id.map(|id| format!("; its lock id is {id}"));
    format!(
        "node/{node} stays locked, although the result could not be written{}",
        id.unwrap_or_default()
    )
}

/// The hold stays, although its command was interrupted.
pub(crate) fn kept_interrupted(node: &str) -> String {
    format!("node/{node} stays on hold, because the hold replaced another lock")
}

/// How to add the requested time to what is left of these locks, which a renewal did not extend.
pub(crate) fn how_to_extend(changes: &[Change], now: Now, program: &Program) -> Option<String> {
    let first = changes.first()?;
    let requested = Span::from(first.unused_duration()?);
    let most = { changes.iter() }.filter_map(|change| change.longest_extension(now));
    let most = most.min()?;
    let nodes: Vec<String> = changes.iter().map(|change| change.node.clone()).collect();
    let named = program.narrowed(&nodes);
    Some(match requested <= most {
        true => {
            let (requested, nodes) = (length(requested), named.nodes(MANY));
            format!(
                "to add {requested}, run `{}`",
                program.run(format_args!("renew {nodes} --duration +{requested}"))
            )
        }
        false => possible_extension(most, &named, first.lease.as_ref()),
    })
}

/// Whether the reason was replaced.
fn has_new_reason(change: &Change) -> bool {
    let reason = |lease: &Option<NodeLease>| {
        let reason = lease.as_ref().and_then(NodeLease::reason);
        reason.unwrap_or_default().to_owned()
    };
    reason(&change.before) != reason(&change.lease)
}

/// Until when it is locked, or on hold. For a lock from this call it is the time in the Lease: what has
/// passed since is less than the error of the clock.
fn until(change: &Change, now: Now) -> String {
    let Some(lease) = &change.lease else {
        return String::new();
    };
    let is_hold = lease.state(now) == State::AdminHold;
    match (is_hold, lease.hold_until(), change.until()) {
        (true, Some(until), _) => format!(", expected until {}", clock(until.into(), now.latest)),
        (false, _, Some(until)) => format!(
            " until {} ({})",
            clock(until, now.latest),
            remaining(Span::seconds(lease.duration_seconds()))
        ),
        _ => String::new(),
    }
}

/// Whose lock had expired: the one that was taken over, or the caller's own that was renewed late. `None`
/// if nothing had expired. With `names_cordon`, another line says that the node is cordoned.
pub(crate) fn expired(change: &Change, now: Now, names_cordon: bool) -> Option<String> {
    let before = change.before.as_ref()?;
    if !matches!(change.state_before, State::Expired { .. }) {
        return None;
    }
    let about = about(before, change.state_before, now);
    match change.done {
        Done::Acquired => Some(format!(
            "node/{} had an expired lock of {}{about}; their work may be unfinished{}",
            change.node,
            person(before),
            node_words(change, names_cordon)
        )),
        Done::Renewed => Some(format!(
            "your lock on node/{} had expired{about}; nobody else acquired it",
            change.node
        )),
        Done::AlreadyHeld | Done::Released | Done::AlreadyFree => None,
    }
}

/// Whose expired lock a command replaced and then released.
pub(crate) fn replaced(change: &Change, is_held: bool, now: Now) -> Option<String> {
    let expired = expired(change, now, false)?;
    let is_free = if is_held {
        ""
    } else {
        "; the node is free now"
    };
    Some(format!("{expired}{is_free}"))
}

/// The node that was locked is fenced.
pub(crate) fn fenced(change: &Change, program: &Program) -> Option<String> {
    let node = &change.node;
    (change.is_fenced() && change.done == Done::Acquired).then(|| {
        format!(
            "node/{node} is fenced: it is off or cut off, and stays out of service until you run \
             `{}`",
            program.run(format_args!("unfence {node}"))
        )
    })
}

/// The flags that had no effect, because `--reentry` does not change the caller's hold; `None` if none was given. `cordons`:
/// whether the node was to be labeled, and cordoned too.
pub(crate) fn hold_unchanged(
    node: &str,
    program: &Program,
    cordons: Option<bool>,
) -> Option<String> {
    let flags = [
        ("-m", program.has_reason()),
        ("--ticket", !program.ticket().is_empty()),
        ("--cordon", cordons == Some(true)),
        ("--opt-outs", cordons == Some(false)),
    ];
    let flags = flags.into_iter().filter(|(_, is_given)| *is_given);
    let flags: Vec<&str> = flags.map(|(flag, _)| flag).collect();
    let have = match &flags[..] {
        [] => return None,
        [_] => "has",
        _ => "have",
    };
    Some(format!(
        "you already have node/{node} on hold, and --reentry does not change a hold: {} {have} no effect",
        flags.join(", ")
    ))
}

/// How to change the hold in `lease` instead; `flag` is added.
pub(crate) fn change_hold(lease: Option<&NodeLease>, flag: &str, program: &Program) -> String {
    let hold = program.of_verb(Verb::Hold.name(), lease);
    format!("change the hold with `{}`", hold.same_command(flag))
}

/// The reason of a release was not stored.
pub(crate) fn reason_not_stored(node: &str) -> String {
    format!("node/{node} was already free: -m was not stored")
}

/// The problems of the node that the last holder left.
fn node_words(change: &Change, names_cordon: bool) -> String {
    let Some(row) = &change.row else {
        return String::new();
    };
    match (row.is_ready(), row.is_cordoned() && !names_cordon) {
        (true, false) => String::new(),
        (is_ready, is_cordoned) => {
            format!("; the node is {}", node_problem(is_ready, is_cordoned))
        }
    }
}

/// The note that the last holder left on a node that was free.
pub(crate) fn note(change: &Change) -> Option<String> {
    let before = change.before.as_ref()?;
    let reason = before.reason().filter(|reason| !reason.is_empty())?;
    let is_new = change.done == Done::Acquired && change.state_before == State::Free;
    let who = before.released_by().or(before.last_holder())?;
    is_new.then(|| {
        format!(
            "{} left a note on node/{}: \"{}\"",
            named(who),
            change.node,
            escape(reason)
        )
    })
}

/// Until when the holder whose lock was taken over may still act; `None` if it had expired.
pub(crate) fn may_act_until(change: &Change, now: Now) -> Option<String> {
    let (before, state) = (change.before.as_ref()?, change.state_before);
    let warning = || may_still_act(&person(before), &change.node, state.end(), now);
    state.is_locked().then(warning)
}

/// Until when `who`, whose lock of `node` was taken over, may still act: until the end of the lease,
/// `until`, or without a limit for a hold (`None`).
pub(crate) fn may_still_act(who: &str, node: &str, until: Option<Instant>, now: Now) -> String {
    let may = format!("{who} may still act on node/{node}");
    match until {
        Some(until) if until != Instant::UNREADABLE => {
            format!("{may} until {} at the latest", clock(until, now.latest))
        }
        _ => format!(
            "{who} may still be working on node/{node}: tell them that their lock has ended"
        ),
    }
}

/// The message about a side effect on these nodes.
pub(crate) fn side_effect(side_effect: SideEffect, nodes: &[String]) -> String {
    let (node, more, whether) = match nodes {
        [] => return String::new(),
        [node] => (node, String::new(), "it exists, is"),
        [node, rest @ ..] => (node, format!(" and {} more", rest.len()), "they exist, are"),
    };
    match side_effect {
        SideEffect::NamespaceCreated => {
            format!("namespace/{} created", maintenance_lease::NAMESPACE)
        }
        SideEffect::LeaseCreated => format!("lease/{node}{more} created"),
        SideEffect::NodeUnreadable => format!(
            "no permission to read node/{node}{more}: did not check whether {whether} ready or cordoned"
        ),
        SideEffect::AnswerLost => format!(
            "node/{node}{more}: the API server's answer was lost, but a second read shows that the \
             write succeeded"
        ),
    }
}
