//! What a confirmation shows about the locks that are at stake.

use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{NodeLease, NodeRow};
use pod_safety::fencing::is_of_fencing;

use super::hint_command::Program;
use super::holder_name::person;
use super::lock::why;
use super::refusal::fenced;
use super::state::node_problem;
use super::time::clock_and_utc;

/// The question if the namespace of the locks is missing, and what is shown before it.
pub(crate) const NO_NAMESPACE: &str = "namespace kube-node-maintenance does not exist";
pub(crate) const CREATE_NAMESPACE: &str = "Create the namespace?";

/// How many locks are listed; of more, only their number is shown.
const SHOWN: usize = 20;

/// Who holds a node, since when and until when, in local time and in UTC, and why.
fn fact(lease: &NodeLease, now: Now) -> String {
    let state = lease.state(now);
    let at = |instant: Instant| clock_and_utc(instant, now.latest);
    let is_of_fencing = is_of_fencing(lease, now);
    let has = match state {
        State::AdminHold if is_of_fencing => fenced::state(lease),
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

/// What a confirmation shows: the cluster and what would change there, and a line for each lock.
pub(crate) fn facts(
    place: &str,
    change: &str,
    lines: impl ExactSizeIterator<Item = String>,
) -> Vec<String> {
    let count = lines.len();
    let mut facts = vec![format!("{place}: {change}")];
    facts.extend(lines.take(SHOWN));
    if count > SHOWN {
        facts.push(format!("  and {} more", count - SHOWN));
    }
    facts
}

/// Somebody else's lock that the question is about. `undoes`: ending it also undoes what it set on the node. A hold of a
/// fencing is better ended with `unfence`.
pub(crate) fn taken_over(lease: &NodeLease, undoes: bool, now: Now, program: &Program) -> String {
    let mut lines = fact(lease, now);
    if undoes {
        lines += "\n    ending it also undoes what it set on the node, such as a cordon";
    }
    if is_of_fencing(lease, now) {
        let to_end = fenced::to_end(lease.node(), lease.is_fenced(), program);
        lines += &format!("\n    {to_end}");
    }
    lines
}

/// The expired lock at stake, and the node that its holder left.
pub(crate) fn unfinished(lease: &NodeLease, row: &NodeRow, now: Now) -> String {
    let problem = node_problem(row.is_ready(), row.is_cordoned());
    format!("{}; the node is {problem}", fact(lease, now))
}

/// Whether to change many nodes.
pub(crate) fn question(change: &str) -> String {
    format!("{}{}?", change[..1].to_uppercase(), &change[1..])
}

/// What a dry run reports instead of asking.
pub(crate) fn dry_run_question(question: &str) -> String {
    format!("without --dry-run, this asks first: {question}")
}
