//! What `with` is about to do, and what happens to its locks.

use std::ffi::OsString;
use std::fmt::Display;

use maintenance_lease::protocol::{LockId, Now};
use maintenance_lease::{Change, Done, Error, NodeLease};

use super::hint_command::Program;
use super::holder_name::person;
use super::lock::why;
use super::time::clock;
use crate::text::{escape, for_shell};

/// How many characters of the command are shown.
const MOST: usize = 200;

/// The locked nodes, and the command that runs under the locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct With<'a> {
    pub(crate) changes: &'a [Change],
    pub(crate) command: &'a [OsString],
}

impl With<'_> {
    /// Before the command begins.
    pub(crate) fn begins(self) -> String {
        format!(
            "{}; running on this machine: {}",
            self.nodes(&format!("locked until the command ends{}", self.by())),
            command_line(self.command)
        )
    }

    /// In a dry run.
    pub(crate) fn would(self) -> String {
        format!(
            "{}; would run on this machine: {}",
            self.nodes("would be locked"),
            command_line(self.command)
        )
    }

    /// The holder of the new locks, and the reason.
    fn by(self) -> String {
        let taken = self
            .changes
            .iter()
            .find(|change| change.done == Done::Acquired);
        let lease = taken.and_then(|change| change.lease.as_ref());
        lease.map_or_else(String::new, |lease| {
            format!(", by {}{}", person(lease), why(lease))
        })
    }

    fn nodes(self, locked: &str) -> String {
        let parts = [
            (Done::Acquired, locked),
            (
                Done::Renewed,
                "already locked by you: renewed, and not released at the end",
            ),
            (
                Done::AlreadyHeld,
                "already on hold by you, and not released at the end",
            ),
        ];
        let parts = parts.iter().filter_map(|(done, what)| {
            let changes = self.changes.iter().filter(|change| change.done == *done);
            let nodes: Vec<&String> = changes.map(|change| &change.node).collect();
            (!nodes.is_empty()).then(|| format!("{} {what}", listed(&nodes)))
        });
        parts.collect::<Vec<_>>().join("; ")
    }
}

pub(crate) const PAUSED: &str = "this machine may have been paused: the command is suspended (SIGSTOP) until its lock has been checked";
pub(crate) const RESUMED: &str = "the lock is still yours: the command continues";
pub(crate) const SUPERVISOR_LOST: &str =
    "the command's supervisor was killed or stopped: ending the command";

/// What the command does is not known any more.
pub(crate) fn not_followed(error: impl Display) -> String {
    format!("could not follow the command: {error}")
}

/// A renewal succeeded after others had failed.
pub(crate) fn renewed_again(node: &str) -> String {
    format!("node/{node} renewed again")
}

/// These nodes were released after the command.
pub(crate) fn released(nodes: &[&str]) -> String {
    format!("{} released", listed(nodes))
}

/// These nodes, such as `node/a, node/b`.
pub(crate) fn listed(nodes: &[impl Display]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| format!("node/{node}")).collect();
    nodes.join(", ")
}

/// Ctrl-C during the release of these nodes.
pub(crate) fn release_interrupted(nodes: &[String]) -> String {
    let expires = match nodes.len() {
        1 => "the lock expires",
        _ => "the locks expire",
    };
    let nodes = listed(nodes);
    format!("interrupted: the release of {nodes} may still take effect; if not, {expires}")
}

/// A lock is left to expire, because `processes` of the command could not be ended; `None` if their number is
/// unknown.
pub(crate) fn left_to_expire(lease: &NodeLease, processes: Option<usize>, now: Now) -> String {
    let processes = match processes {
        Some(1) => "1 process".to_owned(),
        Some(processes) => format!("{processes} processes"),
        None => "processes".to_owned(),
    };
    format!(
        "{processes} of the command could not be ended and may still be running: node/{} is not released, but {}",
        lease.node(),
        expires(lease, now)
    )
}

/// Said before the locks are released again.
pub(crate) const NOT_RUN: &str = "the command was not run";

/// A release took longer than the lock lasted.
pub(crate) fn released_too_late(node: &str) -> String {
    format!("could not release node/{node} before its lock expired")
}

/// A release failed: message and hint.
pub(crate) fn not_released(
    lease: &NodeLease,
    lock_id: Option<&LockId>,
    error: &Error,
    program: &Program,
    now: Now,
) -> (String, String) {
    let node = lease.node();
    let program = program.as_holder(lease.holder().unwrap_or_default());
    let lock_id = lock_id.map(|id| format!(" --lock-id {id}"));
    (
        format!(
            "could not release node/{node}: {}",
            escape(&error.to_string())
        ),
        format!(
            "{}; release it now with `{}`",
            expires(lease, now),
            program.run(format_args!(
                "release {node}{}",
                lock_id.unwrap_or_default()
            ))
        ),
    )
}

/// When others can acquire it.
fn expires(lease: &NodeLease, now: Now) -> String {
    match lease.end() {
        Some(end) => format!("it expires at {}", clock(end, now.latest)),
        None => "it expires by itself".to_owned(),
    }
}

/// A command quoted for a shell; a long one is cut.
pub(crate) fn command_line(command: &[OsString]) -> String {
    let words = command
        .iter()
        .map(|word| for_shell(&word.to_string_lossy()));
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
