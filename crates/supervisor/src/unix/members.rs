//! Which processes belong to a command.

use std::collections::HashSet;

use crate::unix::ps::{Identity, Process, add_descendants};

/// The processes of a command, as far as they can be found.
#[derive(Debug)]
pub(crate) struct Members {
    /// `None` once the command has ended and its group was empty. Another group may then get the same number.
    group: Option<i32>,
    /// The processes found so far. They stay members even if their parents end.
    known: HashSet<Identity>,
}

impl Members {
    pub(crate) fn new(group: i32) -> Self {
        Self {
            group: Some(group),
            known: HashSet::new(),
        }
    }

    /// Whether signals for the group still reach the command.
    pub(crate) fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// Whether `process` gets the signals for the group.
    pub(crate) fn is_in_group(&self, process: &Process) -> bool {
        self.group == Some(process.group)
    }

    /// The living members, parents before their children: the processes in the group, those found before, and
    /// all their descendants. `exited`: the command had been waited for before the processes were listed.
    pub(crate) fn among(&mut self, processes: &[Process], exited: bool) -> Vec<Process> {
        let is_root =
            |process: &&Process| self.is_in_group(process) || self.known.contains(&process.id);
        let mut found: Vec<Process> = processes.iter().filter(is_root).cloned().collect();
        add_descendants(&mut found, processes);
        if exited && !found.iter().any(|process| self.is_in_group(process)) {
            self.group = None;
        }
        found.retain(|process| !process.zombie);
        self.known
            .extend(found.iter().map(|process| process.id.clone()));
        found
    }
}
