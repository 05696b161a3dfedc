//! Stops a command for a while, and continues it as it was.

use rustix::process::Signal as Number;

use crate::Signal;
use crate::deferred_signals::DeferredSignals;
use crate::unix::ps::{Process, Sent};

/// For this many lists, no process is stopped whose parent still runs. A parent that waits in vfork stops only after its
/// child has become another program, which a stopped child never does. One that has not stopped by then hangs in the
/// kernel, and its children don't wait for it.
const PATIENT_LISTS: u32 = 12;

/// Processes that are to be stopped.
#[derive(Debug, Default)]
pub(crate) struct Freeze {
    /// The processes that this stopped, parents first. Those that a user stopped stay as they are.
    stopped: Vec<Process>,
    lists: u32,
    deferred: DeferredSignals,
    complete: bool,
    /// The group was stopped, because its processes could not be listed.
    group: bool,
}

impl Freeze {
    /// Stops the running ones of `members`, parents before their children. True the first time that all that can be
    /// stopped are stopped.
    pub(crate) fn stop(&mut self, members: &[Process]) -> bool {
        self.lists += 1;
        let is_running = |pid| {
            let mut members = members.iter();
            members.any(|member| member.id.pid == pid && !member.stopped && !member.zombie)
        };
        let mut running = 0;
        for process in members.iter().filter(|process| !process.stopped) {
            if self.lists <= PATIENT_LISTS && is_running(process.parent) {
                running += 1;
                continue;
            }
            if process.send(&[Number::STOP]) == Sent::Delivered {
                running += 1;
                if !self.stopped.iter().any(|before| before.id == process.id) {
                    self.stopped.push(process.clone());
                }
            }
        }
        running == 0 && !std::mem::replace(&mut self.complete, true)
    }

    /// The processes could not be listed: the group is stopped instead. True the first time.
    pub(crate) fn stop_group(&mut self) -> bool {
        self.group = true;
        !std::mem::replace(&mut self.complete, true)
    }

    /// Whether the group was stopped as a whole.
    pub(crate) fn is_of_group(&self) -> bool {
        self.group
    }

    /// Whether every process was stopped.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether `signal` is kept until the command continues.
    pub(crate) fn holds_back(&mut self, signal: Signal) -> bool {
        self.deferred.keeps(signal)
    }

    /// Continues all processes that this stopped, children before their parents. Returns the signals that were
    /// held back.
    pub(crate) fn thaw(self) -> Vec<Signal> {
        for process in self.stopped.iter().rev() {
            process.send(&[Number::CONT]);
        }
        self.deferred.into_signals()
    }
}
