//! Ends the remaining processes in the caller, if the supervisor is gone.

use boot_clock::now;
use nix::unistd::getpgid;
use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use crate::linux::children::Children;
use crate::linux::command_processes::{CommandProcesses, LONGEST_PAUSE, RootProcess};
use crate::linux::process::{Table, own_group};
use crate::linux::supervisor::Supervisor;
use crate::plan::{Due, Plan};
use crate::{Exit, Limits};

/// Ends the processes that this process adopted from the supervisor.
#[derive(Debug)]
pub(crate) struct Cleanup {
    plan: Plan,
    processes: CommandProcesses,
    /// When to check again whether the last children are gone. They are children that `/proc` does not show,
    /// or this process's own children that other code waits for.
    check_at: Option<i64>,
}

impl Cleanup {
    pub(crate) fn new(limits: Limits, grace: i64) -> Self {
        let mut plan = Plan::new(limits, grace);
        plan.abandon(now());
        Self {
            plan,
            processes: CommandProcesses::new(RootProcess::Cleanup),
            check_at: None,
        }
    }

    pub(crate) fn limits(&mut self, limits: Limits) {
        self.plan.limits(limits);
    }

    /// Does what is due now. Returns the number of remaining processes once there is nothing to wait for.
    pub(crate) fn turn(&mut self) -> Option<usize> {
        let now = now();
        let members = self.processes.members();
        self.check_at = None;
        if !self.plan.killing() && members.is_ok_and(|members| members.is_empty()) {
            if Children::now() == Children::None {
                return Some(0);
            }
            self.check_at = Some(now + LONGEST_PAUSE);
        }
        if self.plan.due(now) == Some(Due::Ask) {
            self.processes.ask();
        }
        if self.plan.killing() && self.processes.check_at().is_none_or(|at| now >= at) {
            return self.processes.kill(now);
        }
        None
    }

    /// When to call [`Cleanup::turn`] even if no child has ended.
    pub(crate) fn next(&self) -> Option<i64> {
        if self.plan.killing() {
            self.processes.check_at()
        } else {
            self.plan.next().into_iter().chain(self.check_at).min()
        }
    }

    /// Kills the current processes, for a caller that does not wait.
    pub(crate) fn kill_now(&mut self) {
        self.processes.kill(now());
    }
}

/// Waits for ended children that this process adopted. Children in its own process group, which it started
/// itself, and its supervisor are left to the code that waits for them. Returns how `command` ended, if it is
/// one of the adopted children.
pub(crate) fn reap_adopted(command: Option<Pid>) -> Option<Exit> {
    let own = getpid().as_raw_pid();
    let own_group = own_group();
    let mut ended = None;
    let mut reap = |number| {
        let pid = Pid::from_raw(number);
        if let Ok(Some((_, status))) = waitpid(pid, WaitOptions::NOHANG)
            && pid == command
        {
            ended = Some(Exit::of(status));
        }
    };
    let table = Table::read().ok()?;
    let adopted = |group, number| group != own_group && !Supervisor::is(number);
    for process in table.all().filter(|process| {
        process.zombie && process.parent == own && adopted(process.group, process.id.pid)
    }) {
        reap(process.id.pid);
    }
    // Waits for children that `/proc` does not show. Stops early if it finds a child that is left to other
    // code.
    while let Children::Ended(pid) = Children::now()
        && getpgid(Some(pid)).is_ok_and(|group| adopted(group.as_raw(), pid.as_raw()))
    {
        reap(pid.as_raw());
    }
    ended
}
