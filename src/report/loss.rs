//! The loss of a lock while a command runs under it, in two lines: what happened, and what next.

use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Lost, LostBy, NodeLease};
use under_lease::Stage;

use super::refusal::{about, person, why};
use super::time::{clock, length};
use crate::cli::holder::whose_process;
use crate::cli::program::Program;
use crate::terminal::escape;

/// The two lines, the second without its `hint:`; `caller` is who held it, and `stage` where the command
/// was when the loss was noticed.
pub(crate) fn lines(
    lost: &Lost,
    caller: &str,
    stage: Stage,
    now: Now,
    program: &Program,
) -> (String, String) {
    let command = match (&lost.by, stage) {
        (_, Stage::NotBegun) => "the command was not run",
        // It has its limit from before, and may have heard of it before this process did.
        (LostBy::Expiry, _) => "the command is ended before its lease runs out",
        (_, Stage::AtWork) => "the command is being ended",
        (_, Stage::Over) => "the command has ended",
    };
    (
        message(lost, caller, now),
        format!("{command}; {}", to_see(lost, program)),
    )
}

fn message(lost: &Lost, caller: &str, now: Now) -> String {
    let node = &lost.node;
    let lease = lost.lease.as_ref();
    let holder =
        || lease.map(|lease| format!("{}{}", person(lease), about(lease, lease.state(now), now)));
    match &lost.by {
        LostBy::Expiry => match &lost.problem {
            Some(problem) => format!(
                "node/{node} could not be renewed in time ({})",
                escape(problem)
            ),
            // No request failed: the Lease was to end sooner than it was asked for, or time passed
            // in which nothing here ran.
            None => format!(
                "node/{node} was not renewed in time{}; was it edited, or this process or its \
                 machine stopped?",
                lease.map_or_else(String::new, |lease| format!(": {}", end(lease, now)))
            ),
        },
        LostBy::TakeOver(by) if by == caller || whose_process(caller) == Some(by) => format!(
            "node/{node} has another acquisition in the same name, {}: its Lease was edited, or \
             released and acquired again",
            escape(by)
        ),
        LostBy::TakeOver(by) => format!(
            "node/{node} was taken over by {}",
            holder().unwrap_or_else(|| escape(by))
        ),
        LostBy::Replacement(Some(by)) => format!(
            "the Lease of node/{node} was deleted and made again, for {}",
            holder().unwrap_or_else(|| escape(by))
        ),
        LostBy::Release => match lease.and_then(|lease| Some((lease, lease.released_by()?))) {
            Some((lease, by)) => format!(
                "node/{node} was released by {} while the command had it{}",
                escape(by),
                why(lease)
            ),
            None => format!("node/{node} was released while the command had it"),
        },
        LostBy::Deletion | LostBy::Replacement(None) | LostBy::Election => lost.to_string(),
    }
}

/// What a Lease says of its own end.
fn end(lease: &NodeLease, now: Now) -> String {
    let duration = Span::seconds(lease.duration_seconds());
    match lease.renewed() {
        Some(renewed) => format!(
            "its Lease was to end at {}, {} after its last renewal",
            clock(Instant::from(renewed) + duration, now.latest),
            length(duration)
        ),
        None => "its Lease has no readable renewal".to_owned(),
    }
}

fn to_see(lost: &Lost, program: &Program) -> String {
    let node = &lost.node;
    match lost.by {
        // The command may well have released it by itself.
        LostBy::Release | LostBy::TakeOver(_) => {
            format!(
                "if somebody broke it, an Event says who and why: {} describe node {node}",
                program.kubectl()
            )
        }
        _ => format!("to see: {program} status {node}"),
    }
}

/// What a command left running behind it.
pub(crate) fn left(processes: usize) -> String {
    match processes {
        1 => "the command left a process behind, which is being ended".to_owned(),
        _ => format!("the command left {processes} processes behind, which are being ended"),
    }
}
