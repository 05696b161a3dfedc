//! The job that this process belongs to, as a shell sees it: its process group.

use std::io;

use rustix::process::{Pid, getpgrp, getpid, getsid};

use crate::unix::ps::{Process, processes};

#[derive(Debug)]
pub(crate) struct Job {
    processes: Vec<Process>,
    group: i32,
}

impl Job {
    pub(crate) fn own() -> io::Result<Self> {
        Ok(Self {
            processes: processes()?,
            group: getpgrp().as_raw_pid(),
        })
    }

    /// Whether the job of this process is [controlled](Job::is_controlled).
    pub(crate) fn own_is_controlled() -> bool {
        Self::own().is_ok_and(|job| job.is_controlled())
    }

    fn members(&self) -> impl Iterator<Item = &Process> {
        let in_group = |process: &&Process| process.group == self.group && !process.zombie;
        self.processes.iter().filter(in_group)
    }

    /// Whether it contains only this process and what it started itself: no pipeline, no script.
    pub(crate) fn is_alone(&self) -> bool {
        let own = getpid().as_raw_pid();
        self.members()
            .all(|member| member.id.pid == own || member.parent == own)
    }

    /// Whether somebody, a shell, could continue it after a stop: some parent is in the same session and another
    /// group.
    fn is_controlled(&self) -> bool {
        let session = getsid(None).ok();
        let parents = self.members().filter_map(|member| {
            self.processes
                .iter()
                .find(|process| process.id.pid == member.parent)
        });
        parents
            .filter(|parent| parent.group != self.group)
            .any(|parent| {
                let pid = Pid::from_raw(parent.id.pid);
                pid.is_some() && getsid(pid).ok() == session
            })
    }
}
