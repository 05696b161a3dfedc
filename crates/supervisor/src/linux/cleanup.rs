//! What a caller does when its supervisor is gone: it ends the rest itself.

use nix::unistd::getpgid;
use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use crate::linux::alarm::now;
use crate::linux::children::Children;
use crate::linux::family::{Family, Head, LONGEST_PAUSE};
use crate::linux::plan::{Due, Plan};
use crate::linux::process::{Table, own_group};
use crate::linux::start::Supervisor;
use crate::linux::supervise::exit;
use crate::{Exit, Limits, Over};

/// Ends what the supervisor left to this process.
#[derive(Debug)]
pub(crate) struct Cleanup {
    plan: Plan,
    family: Family,
    /// When to look again whether the last children are gone, whom `/proc` doesn't show, or this
    /// process's own, whom somebody else waits for.
    look_at: Option<i64>,
}

impl Cleanup {
    pub(crate) fn new(limits: Limits, grace: i64) -> Self {
        let mut plan = Plan::new(limits, grace);
        plan.abandon(now());
        Self {
            plan,
            family: Family::new(Head::Cleanup),
            look_at: None,
        }
    }

    pub(crate) fn limits(&mut self, limits: Limits) {
        self.plan.limits(limits);
    }

    /// Does what is to be done now; says so when it is over.
    pub(crate) fn turn(&mut self) -> Option<Over> {
        let now = now();
        let members = self.family.members();
        self.look_at = None;
        if !self.plan.killing() && members.is_ok_and(|members| members.is_empty()) {
            if Children::now() == Children::None {
                return Some(self.family.over(0));
            }
            self.look_at = Some(now + LONGEST_PAUSE);
        }
        if self.plan.due(now) == Some(Due::Ask) {
            self.family.ask();
        }
        if self.plan.killing() && self.family.look_at().is_none_or(|at| now >= at) {
            return self.family.kill(now);
        }
        None
    }

    /// When [`Cleanup::turn`] is to be called though no child has ended.
    pub(crate) fn next(&self) -> Option<i64> {
        if self.plan.killing() {
            self.family.look_at()
        } else {
            self.plan.next().into_iter().chain(self.look_at).min()
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
    let mut reap = |number| {
        let pid = Pid::from_raw(number);
        if let Ok(Some((_, status))) = waitpid(pid, WaitOptions::NOHANG)
            && pid == command
        {
            ended = Some(exit(status));
        }
    };
    let table = Table::read().ok()?;
    let adopted = |group, number| group != own_group && !Supervisor::is(number);
    for process in table.all().filter(|process| {
        process.zombie && process.parent == own && adopted(process.group, process.id.pid)
    }) {
        reap(process.id.pid);
    }
    // Those that `/proc` doesn't show, unless one that is left to others is found before them.
    while let Children::Ended(pid) = Children::now()
        && getpgid(Some(pid)).is_ok_and(|group| adopted(group.as_raw(), pid.as_raw()))
    {
        reap(pid.as_raw());
    }
    ended
}
