//! The job that this process belongs to, as a shell sees it: its process group.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, getpgrp, getpid, getsid};

use crate::unix::ps::{Process, processes};

/// How long [`Job::own_is_controlled`] waits for the list of processes. The limits are not applied during
/// this time.
const SHORT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long [`Job::own_is_alone`] waits for the list of processes. It is called before the command starts.
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Job {
    processes: Vec<Process>,
    group: i32,
}

impl Job {
    fn own(timeout: Duration) -> io::Result<Self> {
        Ok(Self {
            processes: processes(timeout)?,
            group: getpgrp().as_raw_pid(),
        })
    }

    /// Whether the job of this process is [controlled](Job::is_controlled).
    pub(crate) fn own_is_controlled() -> bool {
        Self::own(SHORT_TIMEOUT).is_ok_and(|job| job.is_controlled())
    }

    /// Whether the job of this process is [alone](Job::is_alone).
    pub(crate) fn own_is_alone() -> bool {
        Self::own(TIMEOUT).is_ok_and(|job| job.is_alone())
    }

    fn members(&self) -> impl Iterator<Item = &Process> {
        let in_group = |process: &&Process| process.group == self.group && !process.zombie;
        self.processes.iter().filter(in_group)
    }

    /// Whether the job contains only this process and its children, so it is no pipeline or script.
    fn is_alone(&self) -> bool {
        let own = getpid().as_raw_pid();
        self.members()
            .all(|member| member.id.pid == own || member.parent == own)
    }

    /// Whether a shell could continue the job after a stop. This is true if the parent of a member is in the
    /// same session but in another group.
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
