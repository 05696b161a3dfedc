//! A command with all its descendants, and how to end them.

use std::collections::HashMap;
use std::io;

use rustix::process::{Pid, Signal, getpid, kill_process_group};

use crate::linux::children::Children;
use crate::linux::process::{Process, Sent, Table, own_group};

/// How long killed processes may take to disappear, in microseconds. Only processes that hang in the kernel
/// take this long.
const SETTLE: i64 = 5_000_000;

/// The pauses between two checks for remaining processes, while they are killed or stopped, in microseconds.
pub(crate) const FIRST_PAUSE: i64 = 1_000;
pub(crate) const LONGEST_PAUSE: i64 = 100_000;

/// After this many checks, whole process groups are killed too. This also ends processes that fork and exit
/// faster than they can be found.
const CHECKS_BEFORE_GROUPS: u32 = 3;

/// The process whose descendants are the command's processes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RootProcess {
    /// All descendants of this process, because the supervisor starts nothing but the command.
    Supervisor,
    /// The descendants that this process adopted when the supervisor died. Unlike those, processes that it
    /// started itself share its process group.
    Cleanup,
}

/// A command and all its descendants, which are being ended.
#[derive(Debug)]
pub(crate) struct CommandProcesses {
    root: RootProcess,
    killing: Option<Killing>,
}

#[derive(Debug)]
struct Killing {
    give_up_at: i64,
    check_at: i64,
    pause: i64,
    checks: u32,
}

impl CommandProcesses {
    pub(crate) fn new(root: RootProcess) -> Self {
        Self {
            root,
            killing: None,
        }
    }

    /// The living processes, parents before their children.
    pub(crate) fn members(&self) -> io::Result<Vec<Process>> {
        Ok(self.living(&Table::read()?))
    }

    fn living(&self, table: &Table) -> Vec<Process> {
        let own_group = own_group();
        table.below(getpid().as_raw_pid(), |child| match self.root {
            RootProcess::Supervisor => true,
            RootProcess::Cleanup => child.group != own_group,
        })
    }

    /// Sends TERM to all processes, parents first. Otherwise a script would continue with its next line
    /// because its current command ended. A stopped process must be continued to receive the signal.
    pub(crate) fn ask(&self) {
        for process in self.members().unwrap_or_default() {
            process.send(&[Signal::TERM, Signal::CONT]);
        }
    }

    /// When to call [`CommandProcesses::kill`] again after the first call.
    pub(crate) fn check_at(&self) -> Option<i64> {
        self.killing.as_ref().map(|killing| killing.check_at)
    }

    /// Kills all processes that are found. Returns the number of remaining processes once none is left, or none
    /// that can be killed.
    pub(crate) fn kill(&mut self, now: i64) -> Option<usize> {
        let table = Table::read();
        let living = table.as_ref().map(|table| self.living(table));
        let killing = self.killing.get_or_insert(Killing {
            give_up_at: now.saturating_add(SETTLE),
            check_at: now,
            pause: FIRST_PAUSE,
            checks: 0,
        });
        killing.checks += 1;
        killing.check_at = now + killing.pause;
        killing.pause = (killing.pause * 2).min(LONGEST_PAUSE);
        let (Ok(table), Ok(living)) = (&table, living) else {
            return (now >= killing.give_up_at).then_some(1);
        };
        let mut refused = 0;
        for process in &living {
            if process.send(&[Signal::KILL]) == Sent::Refused {
                refused += 1;
            }
        }
        if killing.checks > CHECKS_BEFORE_GROUPS {
            kill_groups(table, &living);
        }
        // When a parent ends, this process adopts its children. So a process that `/proc` does not show
        // becomes a child sooner or later.
        let hidden = living.is_empty() && Children::now() != Children::None;
        let left = if hidden { 1 } else { living.len() };
        let hopeless = refused > 0 && refused == living.len() && killing.checks > 1;
        (left == 0 || hopeless || now >= killing.give_up_at).then_some(left)
    }
}

/// Kills the groups that contain only processes of the command.
fn kill_groups(table: &Table, living: &[Process]) {
    let mut members: HashMap<i32, usize> = HashMap::new();
    for process in living {
        *members.entry(process.group).or_default() += 1;
    }
    for (group, count) in members {
        let all = table
            .all()
            .filter(|process| process.group == group && !process.zombie)
            .count();
        if all == count
            && let Some(group) = Pid::from_raw(group)
        {
            // If the group is gone or the signal is refused, the next check shows it.
            let _result = kill_process_group(group, Signal::KILL);
        }
    }
}
