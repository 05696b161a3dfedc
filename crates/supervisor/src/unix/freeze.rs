//! Stops a command for a while, and then continues it as it was before.

use rustix::process::Signal as Number;

use crate::Signal;
use crate::deferred_signals::DeferredSignals;
use crate::unix::ps::{Process, Sent};

/// For this many lists, a process is not stopped while its parent still runs. A parent that waits in vfork
/// stops only after its child has executed another program, and a stopped child never does. A parent that has
/// not stopped by then hangs in the kernel, so its children are stopped anyway.
const PATIENT_LISTS: u32 = 12;

/// Processes that are to be stopped.
#[derive(Debug, Default)]
pub(crate) struct Freeze {
    /// The processes that were stopped here, parents first. Processes that a user stopped are not included
    /// and stay stopped.
    stopped: Vec<Process>,
    lists: u32,
    deferred: DeferredSignals,
    complete: bool,
    /// The whole group was stopped, because its processes could not be listed.
    group: bool,
}

impl Freeze {
    /// Stops the running processes among `members`, parents before their children. Returns true the first
    /// time that all processes that can be stopped are stopped.
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

    /// Records that the whole group is stopped instead, because its processes could not be listed. Returns
    /// true the first time.
    pub(crate) fn stop_group(&mut self) -> bool {
        self.group = true;
        !std::mem::replace(&mut self.complete, true)
    }

    /// Whether the group was stopped as a whole.
    pub(crate) fn is_of_group(&self) -> bool {
        self.group
    }

    /// Whether all processes that can be stopped were stopped.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Keeps `signal` until the command continues, if it must be kept. Returns whether it was kept.
    pub(crate) fn holds_back(&mut self, signal: Signal) -> bool {
        self.deferred.keeps(signal)
    }

    /// Continues the processes that were stopped here, children before their parents. Returns the kept
    /// signals.
    pub(crate) fn thaw(self) -> Vec<Signal> {
        for process in self.stopped.iter().rev() {
            process.send(&[Number::CONT]);
        }
        self.deferred.into_signals()
    }
}
