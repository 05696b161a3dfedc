//! The job of this process, as a shell sees it.

use std::io;

use rustix::process::getpid;

use crate::linux::process::{Process, Table, own_group, own_session};

/// The job that this process belongs to: its process group.
#[derive(Debug)]
pub(crate) struct Job {
    table: Table,
    group: i32,
}

impl Job {
    pub(crate) fn own() -> io::Result<Self> {
        Ok(Self {
            table: Table::read()?,
            group: own_group(),
        })
    }

    /// Whether the job of this process is [controlled](Job::is_controlled).
    pub(crate) fn own_is_controlled() -> bool {
        Self::own().is_ok_and(|job| job.is_controlled())
    }

    fn members(&self) -> impl Iterator<Item = &Process> {
        self.table
            .all()
            .filter(|process| process.group == self.group && !process.zombie)
    }

    /// Whether the job contains only this process and its descendants, so it is no pipeline or script.
    pub(crate) fn is_alone(&self) -> bool {
        let own = getpid().as_raw_pid();
        let below = self.table.below(own, |_| true);
        self.members()
            .all(|member| member.id.pid == own || below.contains(member))
    }

    /// Whether a shell could continue the job after a stop. This is true if the parent of a member is in the
    /// same session but in another group.
    fn is_controlled(&self) -> bool {
        let session = own_session();
        self.members()
            .filter_map(|member| self.table.get(member.parent))
            .any(|parent| parent.session == session && parent.group != self.group)
    }
}
