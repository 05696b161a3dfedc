//! The loss of a lock while a command runs under it, in two lines: what happened, and what next.

use maintenance_lease::protocol::Now;
use maintenance_lease::{Lost, LostBy};
use under_lease::Stage;

use super::refusal::{about, person};
use crate::cli::program::Program;
use crate::terminal::escape;

/// The two lines, the second without its `hint:`; `stage` is where the command was when the loss was
/// noticed.
pub(crate) fn lines(lost: &Lost, stage: Stage, now: Now, program: &Program) -> (String, String) {
    let command = match (&lost.by, stage) {
        (_, Stage::NotBegun) => "the command was not run",
        // It has its limit from before, and may have heard of it before this process did.
        (LostBy::Expiry, _) => "the command is ended before anybody else can have the node",
        (_, Stage::AtWork) => "the command is being ended",
        (_, Stage::Over) => "the command has ended",
    };
    (
        message(lost, now),
        format!("{command}; {}", to_see(lost, program)),
    )
}

fn message(lost: &Lost, now: Now) -> String {
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
            None => format!("node/{node} could not be renewed in time"),
        },
        LostBy::TakeOver(by) => format!(
            "node/{node} was taken over by {}",
            holder().unwrap_or_else(|| escape(by))
        ),
        LostBy::Replacement(Some(by)) => format!(
            "the Lease of node/{node} was deleted and made again, for {}",
            holder().unwrap_or_else(|| escape(by))
        ),
        LostBy::Release | LostBy::Deletion | LostBy::Replacement(None) | LostBy::Election => {
            lost.to_string()
        }
    }
}

fn to_see(lost: &Lost, program: &Program) -> String {
    let node = &lost.node;
    match lost.by {
        LostBy::Release | LostBy::TakeOver(_) => {
            format!(
                "who broke it, and why: {} describe node {node}",
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
