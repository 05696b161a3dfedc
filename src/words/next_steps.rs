//! The commands to run next, after `describe` or after nodes were locked.

use maintenance_lease::protocol::{Instant, Now, Span, State, check_finished};
use maintenance_lease::{Maintenance, NAMESPACE, NodeLease, NodeRow};
use pod_safety::fencing::{Attempt, is_of_fencing};
use pod_safety::node_health::Health;

use super::fencing::resuming;
use super::hint_command::{MANY, NO_REASON, Program};
use super::holder::HoldingCommand;
use super::refusal::running_command;
use super::time::{clock, remaining};
use super::verb::Outcomes;
use crate::error::Verb;

/// Precedes a command that ends somebody else's lock.
const IF_NOBODY: &str = "If nobody works there";

/// Precede a command that continues another run.
const FENCE_ENDED: &str = "If `fence` no longer runs, finish it";
const UNFENCE_ENDED: &str = "If `unfence` no longer runs, finish it";

/// Who reads it, and how they run this program.
pub(crate) struct Reader<'a> {
    pub(crate) locks: &'a Maintenance,
    pub(crate) program: &'a Program,
}

/// What can be done about `node`, and the command for it. `hook`: one that may be running for it.
pub(crate) fn all(
    node: &str,
    lease: Option<&NodeLease>,
    row: Option<&NodeRow>,
    health: Option<&Health>,
    hook: Option<&Attempt>,
    reader: &Reader<'_>,
    now: Now,
) -> Vec<(&'static str, String)> {
    let Reader { locks, program } = reader;
    let holder = lease.and_then(NodeLease::holder);
    let is_inside = holder.is_some_and(|holder| program.is_under(holder));
    let own = lease.is_some_and(|lease| locks.is_own(lease));
    let is_fenced = lease.is_some_and(NodeLease::is_fenced)
        || matches!(
            health,
            Some(Health::OutOfService { .. } | Health::Restarted { .. })
        );
    // Its hold is there before the record, and `fence` may have ended in between.
    let is_unfinished = lease.is_some_and(|lease| is_of_fencing(lease, now));
    let state = lease.map_or(State::Free, |lease| lease.state(now));
    let is_finished =
        row.is_none_or(|row| check_finished(state, row.is_ready(), row.is_cordoned()).is_ok());
    let acquire = format!("acquire {node} -m {NO_REASON}");
    let wait = format!("acquire {node} --wait -m {NO_REASON}");
    // Without this, both are refused while the hook may be running.
    let resume = hook.map(resuming).unwrap_or_default();
    let unfence = format!("unfence {node}{resume}");
    let fence = format!("fence {node}{resume} -- HOOK");
    let renew = format!("renew {node}");
    let release = format!("release {node}");
    let unhold = format!("unhold {node}");
    let mut commands: Vec<(&'static str, String)> = match (state, own) {
        _ if is_inside => Vec::new(),
        // Nobody can lock the node until the Lease is gone. Its finalizers show what blocks the deletion.
        _ if let Some(lease) = lease.filter(|lease| lease.is_deleting()) => {
            let command = format!("get lease {} -n {NAMESPACE} -o yaml", lease.node());
            return vec![(
                "See what blocks the deletion of its Lease",
                program.kubectl(command),
            )];
        }
        _ if is_fenced && hook.is_some() => vec![(UNFENCE_ENDED, unfence)],
        _ if matches!(health, Some(Health::Restarted { .. })) => {
            vec![("It has restarted: return it to service", unfence)]
        }
        _ if is_fenced => vec![("After its restart", unfence)],
        _ if is_unfinished => vec![
            (FENCE_ENDED, fence.clone()),
            ("If `fence` no longer runs, undo it", unfence),
        ],
        (State::Free, _) => vec![("Lock it", acquire)],
        (State::Held { .. }, true) => vec![("Extend it", renew), ("Release it", release)],
        (State::Held { .. }, false) if state.is_ending(now) => vec![("Wait for it", wait)],
        (State::Held { .. }, false) => vec![
            ("Wait for it", wait),
            (IF_NOBODY, format!("{release} --force -m {NO_REASON}")),
        ],
        (State::Expired { .. }, true) => vec![("Continue", renew), ("Release it", release)],
        (State::Expired { .. }, false) => vec![(
            "Check what is left to do, then",
            match is_finished {
                true => acquire,
                false => format!("{acquire} --take-expired"),
            },
        )],
        (State::AdminHold, true) => vec![("End the hold", unhold)],
        (State::AdminHold, false) => vec![("Wait for it", wait), (IF_NOBODY, unhold)],
    };
    if matches!(
        health,
        Some(Health::NotReady { .. } | Health::Unreachable { .. } | Health::OutOfService { .. })
    ) {
        commands.push(("See what is stuck there", format!("status --pods {node}")));
    }
    if health == Some(&Health::Gone) {
        commands.retain(|(_, command)| !command.starts_with("acquire "));
    }
    let is_others = state.is_locked() && !own;
    if matches!(health, Some(Health::Unreachable { .. }))
        && !is_fenced
        && !is_unfinished
        && !is_others
    {
        let what = match hook {
            Some(_) => FENCE_ENDED,
            None => "Power it off and move its pods",
        };
        commands.push((what, fence));
    }
    let running = holder.and_then(|holder| running_command(holder, locks.identity()));
    let is_own_with = matches!(running, Some((HoldingCommand::With, _))) && !is_inside;
    if is_own_with {
        // The `with` may still be running. When it ends, it releases the lock.
        commands.retain(|(what, _)| *what != IF_NOBODY);
    }
    let commands = commands.into_iter();
    let commands = commands.map(|(what, command)| (what, program.run(command)));
    let own_with = is_own_with.then(|| {
        let exit = "if its command still runs, exit it".to_owned();
        ("Release it", exit)
    });
    let inside = is_inside.then(|| {
        let exit = "exit the command of `with` to release it".to_owned();
        ("You run inside this lock", exit)
    });
    { inside.into_iter().chain(commands) }
        .chain(own_with)
        .collect()
}

/// The caller's holds of `nodes` were not ended, and how to end them.
pub(crate) fn own_holds_stay(nodes: &[String], program: &Program) -> String {
    let named = program.narrowed(nodes);
    let dry_run = program.dry_run();
    let unhold = program.run(format_args!("unhold {}{dry_run}", named.nodes(MANY)));
    match nodes {
        [node] => format!("your hold on node/{node} stays; to end it, run `{unhold}`"),
        _ => format!(
            "your holds on {} nodes stay; to end them, run `{unhold}`",
            nodes.len()
        ),
    }
}

/// No node has a lock that `release --all` could end. `keeps_holds`: the caller's holds stay.
pub(crate) fn nothing_to_release(keeps_holds: bool) -> &'static str {
    match keeps_holds {
        true => "nothing to release: no other node is locked",
        false => "nothing to release: no node is locked",
    }
}

/// What to do about the locks that `verb` got: all nodes that it was asked for, or those in `outcomes`. The
/// first lock `expires` at this time, after this many seconds. `is_fenced`: one of the nodes is.
pub(crate) fn next_step(
    verb: Verb,
    outcomes: &Outcomes,
    expires: Option<(Instant, u32)>,
    is_fenced: bool,
    program: &Program,
    now: Now,
) -> Option<String> {
    let Outcomes { done, left, open } = outcomes;
    let node = match &done[..] {
        [node] => node,
        _ => "NODE...",
    };
    let is_all = left.is_empty() && open.is_empty();
    let narrowed = (!is_all || !program.repeats_nodes()).then(|| program.narrowed(done));
    let program = narrowed.as_ref().unwrap_or(program);
    let nodes = program.nodes(node);
    // `release` and `unhold` refuse while the node is fenced.
    let unfence = is_fenced.then(|| {
        // It takes one node.
        let node = if done.len() == 1 { node } else { "NODE" };
        program.run(format_args!("unfence {node}"))
    });
    match verb {
        Verb::Acquire => {
            let why = program.why();
            let expires = expires.map(|(end, duration)| {
                let duration = remaining(Span::seconds(duration));
                format!("Expires {} (in {duration}). ", clock(end, now.latest))
            });
            let (to, unfence) = match unfence {
                Some(unfence) => ("To unfence and release", format!("\n  {unfence}")),
                None => ("To release", String::new()),
            };
            Some(format!(
                "{}{to}, extend or hold:{unfence}\n  {release}\n  {renew}\n  {hold}",
                expires.unwrap_or_default(),
                release = program.run(format_args!("release {nodes}")),
                renew = program.run(format_args!("renew {nodes}")),
                hold = program.run(format_args!("hold {nodes} -m {why}{}", program.ticket()))
            ))
        }
        Verb::Hold => {
            let (does, them) = match done.len() {
                1 => ("A hold does not expire", "it"),
                _ => ("Holds do not expire", "them"),
            };
            let unfence = match unfence {
                Some(unfence) => format!(", unfence first:\n  {unfence}"),
                None => ":".to_owned(),
            };
            Some(format!(
                "{does}, and `kubectl drain` still evicts pods. To end {them}{unfence}\n  {}",
                program.run(format_args!("unhold {nodes}"))
            ))
        }
        _ => None,
    }
}
