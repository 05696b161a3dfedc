//! What a caller does when its supervisor is gone: it ends the rest itself.

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use crate::linux::alarm::now;
use crate::linux::family::{Family, Head};
use crate::linux::plan::{Due, Plan};
use crate::linux::process::{Table, own_group};
use crate::linux::start::Supervisor;
use crate::linux::supervise::exit;
use crate::{Exit, Limits, Over};

/// Ends what the supervisor left to this process.
#[derive(Debug)]
pub(crate) struct Heir {
    plan: Plan,
    family: Family,
}

impl Heir {
    pub(crate) fn new(limits: Limits, grace: i64) -> Self {
        let mut plan = Plan::new(limits, grace);
        plan.abandon(now());
        Self {
            plan,
            family: Family::new(Head::Heir),
        }
    }

    pub(crate) fn limits(&mut self, limits: Limits) {
        self.plan.limits(limits);
    }

    /// Does what is to be done now; says so when it is over.
    pub(crate) fn turn(&mut self) -> Option<Over> {
        if !self.plan.killing()
            && self
                .family
                .members()
                .is_ok_and(|members| members.is_empty())
        {
            return Some(self.family.over(0));
        }
        let now = now();
        if self.plan.due(now) == Some(Due::Ask) {
            self.family.ask();
        }
        if self.plan.killing() && self.family.look_at().is_none_or(|at| now >= at) {
            return self.family.kill(now);
        }
        None
    }

    /// When [`Heir::turn`] is to be called though no child has ended.
    pub(crate) fn next(&self) -> Option<i64> {
        if self.plan.killing() {
            self.family.look_at()
        } else {
            self.plan.next()
        }
    }

    /// Kills what is there at this moment, for somebody who won't wait.
    pub(crate) fn kill_now(&mut self) {
        self.family.kill(now());
    }
}

/// Waits for the children that came to this process and have ended. Those that it started itself,
/// in its own process group, and its supervisor are left to those who wait for them. Says how
/// `command` ended, if it is one of them.
pub(crate) fn reap_adopted(command: Option<Pid>) -> Option<Exit> {
    let own = getpid().as_raw_pid();
    let own_group = own_group();
    let mut ended = None;
    let table = Table::read().ok()?;
    for process in table.all().filter(|process| {
        process.zombie
            && process.parent == own
            && process.group != own_group
            && !Supervisor::is(process.id.pid)
    }) {
        let pid = Pid::from_raw(process.id.pid);
        if let Ok(Some((_, status))) = waitpid(pid, WaitOptions::NOHANG)
            && pid == command
        {
            ended = Some(exit(status));
        }
    }
    ended
}
