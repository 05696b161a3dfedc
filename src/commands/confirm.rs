//! Confirmations: what would be done, where, to whom, and the question.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, State};

use super::targets::Targets;
use crate::cli::changing::ChangingArgs;
use crate::cli::nodes::Selection;
use crate::cli::writing::DryRunMode;
use crate::failure::Failure;
use crate::report::refusal::{person, why};
use crate::report::time::clock_and_utc;
use crate::report::verb::Verb;
use crate::session::Session;

/// Holders that are shown one by one; of more, their number.
const SHOWN: usize = 20;

/// A selector may put so many nodes on hold unasked.
const HELD_UNASKED: usize = 10;

/// Asks before many nodes change: all of them, or more put on hold than a selector may have been
/// meant for.
///
/// # Errors
/// Where the answer is no, or nobody can be asked.
pub(crate) fn many_nodes(
    session: &Session<'_>,
    args: &ChangingArgs,
    verb: Verb,
    selection: &Selection,
    targets: &Targets,
) -> Result<(), Failure> {
    let count = targets.nodes.len();
    let nodes = match selection {
        Selection::All => format!("all {}", nodes(count)),
        Selection::Labelled(_) if verb == Verb::Hold && count > HELD_UNASKED => nodes(count),
        _ => return Ok(()),
    };
    let verb = verb.name();
    let facts = [format!("{}: {verb} {nodes}", session.place())];
    let first = verb[..1].to_uppercase();
    ask(
        session,
        args,
        &facts,
        &format!("{first}{} {nodes}?", &verb[1..]),
    )
}

/// Asks before the locks of others are broken: shows who, since when, until when and why.
///
/// # Errors
/// Where the answer is no, or nobody can be asked.
pub(crate) fn breaking(
    session: &Session<'_>,
    args: &ChangingArgs,
    verb: Verb,
    leases: &[&NodeLease],
) -> Result<(), Failure> {
    let question = match leases {
        [] => return Ok(()),
        [lease] => verb.breaks_one(lease.node(), &person(lease)),
        leases => verb.breaks_many(leases.len()),
    };
    let now = session.locks.server_time().now();
    let mut facts = vec![format!("{}: {}", session.place(), nodes(leases.len()))];
    facts.extend(leases.iter().take(SHOWN).map(|lease| fact(lease, now)));
    if leases.len() > SHOWN {
        facts.push(format!("  and {} more", leases.len() - SHOWN));
    }
    ask(session, args, &facts, &question)
}

/// Who has a node, since when and until when, here and in UTC, and why.
fn fact(lease: &NodeLease, now: Now) -> String {
    let state = lease.state(now);
    let at = |instant: Instant| clock_and_utc(instant, now.latest);
    let has = match state {
        State::AdminHold => "is on hold by",
        State::Expired { .. } => "has an expired lease of",
        State::Held { .. } | State::Free => "is held by",
    };
    let since = lease
        .acquired()
        .map(|acquired| format!(" since {}", at(acquired.into())))
        .unwrap_or_default();
    let until = match state {
        State::Held { until } => format!(" until {}", at(until)),
        State::Expired { since: Some(since) } => format!(", expired at {}", at(since)),
        State::AdminHold => lease
            .hold_until()
            .map(|until| format!(", meant until {}", at(until.into())))
            .unwrap_or_default(),
        State::Expired { since: None } | State::Free => String::new(),
    };
    format!(
        "  node/{} {has} {}{since}{until}{}",
        lease.node(),
        person(lease),
        why(lease)
    )
}

/// A dry run changes nothing, so that there is nothing to confirm: it says what would be asked.
fn ask(
    session: &Session<'_>,
    args: &ChangingArgs,
    facts: &[String],
    question: &str,
) -> Result<(), Failure> {
    let yes = args.write.yes;
    if args.write.dry_run != DryRunMode::None {
        if !yes {
            session
                .terminal
                .remark(format!("without --dry-run it asks first: {question}"));
        }
        return Ok(());
    }
    if args.nodes.reads_stdin() && !yes {
        for fact in facts {
            session.terminal.raw_stderr(fact);
        }
        return Err(Failure::Unconfirmed(
            "not confirmed: --nodes-from - leaves nothing to ask on".to_owned(),
        ));
    }
    session.terminal.confirm(facts, question, yes)
}

/// So many nodes.
pub(crate) fn nodes(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
