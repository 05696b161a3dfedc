//! Which processes belong to a command.

use std::collections::HashSet;

use crate::unix::ps::{Identity, Process};

/// The processes of a command, as far as they can be found.
#[derive(Debug)]
pub(crate) struct Members {
    group: i32,
    /// Those found so far. They stay members if their parents end.
    known: HashSet<Identity>,
}

impl Members {
    pub(crate) fn new(group: i32) -> Self {
        Self {
            group,
            known: HashSet::new(),
        }
    }

    /// The living ones, parents before their children: those in the group, those found before, and all their
    /// descendants.
    pub(crate) fn among(&mut self, processes: &[Process]) -> Vec<Process> {
        let is_root =
            |process: &&Process| process.group == self.group || self.known.contains(&process.id);
        let mut found: Vec<Process> = processes.iter().filter(is_root).cloned().collect();
        let mut pids: HashSet<i32> = found.iter().map(|process| process.id.pid).collect();
        let mut next = 0;
        while let Some(parent) = found.get(next).map(|process| process.id.pid) {
            let children = processes.iter().filter(|process| process.parent == parent);
            for child in children {
                if pids.insert(child.id.pid) {
                    found.push(child.clone());
                }
            }
            next += 1;
        }
        found.retain(|process| !process.zombie);
        self.known
            .extend(found.iter().map(|process| process.id.clone()));
        found
    }
}
