//! What `with` is about to do, in one line.

use std::ffi::OsString;

use maintenance_lease::{Change, Done};

use super::holder::person;
use super::refusal::why;
use crate::text::for_shell;

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
            let nodes: Vec<String> = changes
                .map(|change| format!("node/{}", change.node))
                .collect();
            (!nodes.is_empty()).then(|| format!("{} {what}", nodes.join(", ")))
        });
        parts.collect::<Vec<_>>().join("; ")
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
