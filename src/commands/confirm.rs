//! Confirmations: what would be done, where, to whom, and the question.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};

use super::targets::Targets;
use crate::cli::nodes::Selection;
use crate::failure::Failure;
use crate::report::refusal::about;
use crate::session::Session;
use crate::terminal::escape;

/// Holders that are shown one by one; of more, their number.
const SHOWN: usize = 20;

/// Asks before `--all` changes all nodes.
///
/// # Errors
/// Where the answer is no, or nobody can be asked.
pub(crate) fn all_nodes(
    session: &Session<'_>,
    selection: &Selection,
    targets: &Targets,
    verb: &str,
    yes: bool,
) -> Result<(), Failure> {
    if *selection != Selection::All {
        return Ok(());
    }
    let facts = [format!(
        "{}: all {} nodes",
        session.place(),
        targets.nodes.len()
    )];
    let question = format!("{verb} all {} nodes?", targets.nodes.len());
    session.terminal.confirm(&facts, &question, yes)
}

/// Asks before the locks of others are broken: shows who, since when, until when and why.
///
/// # Errors
/// Where the answer is no, or nobody can be asked.
pub(crate) fn breaking(
    session: &Session<'_>,
    leases: &[&NodeLease],
    question: &str,
    now: Now,
    yes: bool,
) -> Result<(), Failure> {
    if leases.is_empty() {
        return Ok(());
    }
    let mut facts = vec![format!(
        "{}: {} node{}",
        session.place(),
        leases.len(),
        if leases.len() == 1 { "" } else { "s" }
    )];
    facts.extend(leases.iter().take(SHOWN).map(|lease| {
        let state = lease.state(now);
        let how = match state {
            State::AdminHold => "on hold by",
            _ => "held by",
        };
        format!(
            "  node/{} is {how} {}{}",
            lease.node(),
            lease.holder().map(escape).unwrap_or_default(),
            about(lease, state, now)
        )
    }));
    if leases.len() > SHOWN {
        facts.push(format!("  and {} more", leases.len() - SHOWN));
    }
    session.terminal.confirm(&facts, question, yes)
}
