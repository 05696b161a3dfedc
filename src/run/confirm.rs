//! Confirmations: what would be done, where, to whose locks, and the question.

use std::collections::HashMap;

use maintenance_lease::protocol::identity::hold_identity;
use maintenance_lease::protocol::{
    self, Caller, Instant, Names, Now, State, breaks, check_finished,
};
use maintenance_lease::{DryRun, NodeLease, NodeRow};
use pod_safety::fencing::is_of_fencing;

use super::targets::Targets;
use crate::args::change::ChangingArgs;
use crate::args::nodes::Selection;
use crate::error::{Failure, Unconfirmed, Verb};
use crate::run::session::Session;
use crate::ui::Terminal;
use crate::words::holder::person;
use crate::words::refusal::{fenced, why};
use crate::words::state::node_problem;
use crate::words::time::clock_and_utc;

/// How many holders are listed; of more, only their number is shown.
const SHOWN: usize = 20;

/// The number of nodes that a selector may put on hold without a confirmation.
const HELD_UNASKED: usize = 10;

/// Asks before a change of many nodes: of all of them, or of more holds than a selector was probably meant
/// for.
///
/// # Errors
/// If the answer is no, or if nobody can answer.
pub(crate) async fn many_nodes(
    session: &Session<'_>,
    args: &ChangingArgs,
    verb: Verb,
    selection: &Selection,
    targets: &Targets,
) -> Result<(), Failure> {
    let Some(change) = many(verb, selection, targets) else {
        return Ok(());
    };
    let facts = [format!("{}: {change}", session.place())];
    ask(session, args, &facts, &question(&change)).await
}

/// The change of many nodes, such as `release all 40 nodes`; `None` if they are not many.
fn many(verb: Verb, selection: &Selection, targets: &Targets) -> Option<String> {
    let count = targets.nodes.len();
    let all = match selection {
        Selection::All => "all ",
        Selection::Labelled(_) if verb == Verb::Hold && count > HELD_UNASKED => "",
        _ => return None,
    };
    Some(format!("{} {all}{}", verb.name(), nodes(count)))
}

/// Whether to make this change.
fn question(change: &str) -> String {
    format!("{}{}?", change[..1].to_uppercase(), &change[1..])
}

/// The locks of others that the operator has seen and wants to take over, by node. Only these exact
/// acquisitions may be taken over.
#[derive(Debug, Default)]
pub(crate) struct Confirmed(HashMap<String, NodeLease>);

impl Confirmed {
    /// The Lease of `node` as it was shown; `None` if there was no other's lock to take over.
    pub(crate) fn get(&self, node: &str) -> Option<&NodeLease> {
        self.0.get(node)
    }
}

/// Asks before locks of others in `targets` are taken over, or before a change of many nodes: shows who,
/// since when, until when and why. Returns what was shown.
///
/// # Errors
/// If the answer is no, or if nobody can answer.
pub(crate) async fn breaking(
    session: &Session<'_>,
    args: &ChangingArgs,
    verb: Verb,
    selection: &Selection,
    targets: &Targets,
) -> Result<Confirmed, Failure> {
    let now = session.locks.server_time().now();
    let broken = broken(session.locks.identity(), verb, targets, now);
    let (change, question) = match (many(verb, selection, targets), &broken[..]) {
        (None, []) => return Ok(Confirmed::default()),
        (Some(change), _) => (change.clone(), question(&change)),
        (None, [lease]) => (nodes(1), verb.breaks_one(lease.node(), &person(lease))),
        (None, leases) => (nodes(leases.len()), verb.breaks_many(leases.len())),
    };
    let mut facts = vec![format!("{}: {change}", session.place())];
    for lease in broken.iter().take(SHOWN) {
        facts.push(fact(lease, now));
        if is_of_fencing(lease, now) {
            let to_end = fenced::to_end(lease.node(), session.program);
            facts.push(format!("    {to_end}"));
        }
    }
    if broken.len() > SHOWN {
        facts.push(format!("  and {} more", broken.len() - SHOWN));
    }
    ask(session, args, &facts, &question).await?;
    let by_node = |lease: &NodeLease| (lease.node().to_owned(), lease.clone());
    Ok(Confirmed(broken.into_iter().map(by_node).collect()))
}

/// Asks before expired locks in `targets` are taken whose nodes are NotReady or cordoned, and returns what
/// was shown. Without a terminal, or with --yes, nobody is asked: the library refuses them.
///
/// # Errors
/// If the answer is no.
pub(crate) async fn unfinished(
    session: &Session<'_>,
    args: &ChangingArgs,
    verb: Verb,
    targets: &Targets,
) -> Result<Vec<NodeLease>, Failure> {
    let now = session.locks.server_time().now();
    let unfinished = targets.nodes.iter().filter_map(|target| {
        let seen = target.seen.as_ref()?;
        let (row, lease) = (seen.row.row()?, seen.lease.as_ref()?);
        let state = lease.state(now);
        let refused = check_finished(state, row.is_ready(), row.is_cordoned()).is_err();
        refused.then_some((lease, row))
    });
    let unfinished: Vec<(&NodeLease, &NodeRow)> = unfinished.collect();
    let question = match &unfinished[..] {
        [] => return Ok(Vec::new()),
        // --yes is for scripts, which say --take-expired if they mean it.
        _ if args.yes || args.nodes.reads_stdin() || !Terminal::can_ask() => return Ok(Vec::new()),
        [(lease, _)] => verb.question(lease.node()),
        leases => verb.question_many(leases.len()),
    };
    let mut facts = vec![format!("{}: {}", session.place(), nodes(unfinished.len()))];
    for (lease, row) in unfinished.iter().take(SHOWN) {
        let problem = node_problem(row.is_ready(), row.is_cordoned());
        facts.push(format!("{}; the node is {problem}", fact(lease, now)));
    }
    if unfinished.len() > SHOWN {
        facts.push(format!("  and {} more", unfinished.len() - SHOWN));
    }
    ask(session, args, &facts, &question).await?;
    Ok(unfinished
        .into_iter()
        .map(|(lease, _)| lease.clone())
        .collect())
}

/// The Leases in `targets` that `verb` can only end by a takeover.
fn broken<'a>(identity: &str, verb: Verb, targets: &'a Targets, now: Now) -> Vec<&'a NodeLease> {
    let mut names = Names::default();
    let caller = Caller {
        identity: names.id(identity),
        hold_identity: names.id(&hold_identity(identity)),
    };
    let is_unhold = verb == Verb::Unhold;
    let verb = match verb {
        Verb::Release => protocol::Verb::ForceRelease,
        Verb::Hold => protocol::Verb::Hold {
            nonce: names.id("unsent"),
            take_over: true,
        },
        Verb::Unhold => protocol::Verb::Unhold { another: true },
        Verb::Acquire
        | Verb::Renew
        | Verb::With
        | Verb::Verify
        | Verb::Wait
        | Verb::Fence
        | Verb::Unfence => return Vec::new(),
    };
    targets
        .leases()
        .filter(|lease| breaks(verb, caller, &lease.reduced(&mut names), now))
        // It is refused whatever the answer is.
        .filter(|lease| !(is_unhold && is_of_fencing(lease, now)))
        .collect()
}

/// Who holds a node, since when and until when, in local time and in UTC, and why.
fn fact(lease: &NodeLease, now: Now) -> String {
    let state = lease.state(now);
    let at = |instant: Instant| clock_and_utc(instant, now.latest);
    let is_of_fencing = is_of_fencing(lease, now);
    let has = match state {
        State::AdminHold if is_of_fencing => fenced::stands(lease),
        State::AdminHold => "is on hold by",
        State::Expired { .. } => "has an expired lock of",
        State::Held { .. } | State::Free => "is locked by",
    };
    let since = lease
        .acquired()
        .map(|acquired| format!(" since {}", at(acquired.into())))
        .unwrap_or_default();
    let until = match state {
        State::Held { until } => format!(" until {}", at(until)),
        State::Expired { since: Some(since) } => format!(", expired at {}", at(since)),
        State::AdminHold if is_of_fencing => format!(" {}", fenced::UNTIL),
        State::AdminHold => lease
            .hold_until()
            .map(|until| format!(", expected until {}", at(until.into())))
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

/// A dry run changes nothing and needs no confirmation: it reports the question instead.
async fn ask(
    session: &Session<'_>,
    args: &ChangingArgs,
    facts: &[String],
    question: &str,
) -> Result<(), Failure> {
    let yes = args.yes;
    if args.write.dry_run != DryRun::None {
        if !yes {
            session
                .terminal
                .remark(format!("without --dry-run, this asks first: {question}"));
        }
        return Ok(());
    }
    if args.nodes.reads_stdin() && !yes {
        for fact in facts {
            session.terminal.raw_stderr(fact);
        }
        return Err(Failure::Unconfirmed(Unconfirmed::StdinInUse));
    }
    session.terminal.confirm(facts, question, yes).await
}

/// So many nodes.
pub(crate) fn nodes(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
