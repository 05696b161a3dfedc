//! Stops a command with all its descendants for a while, and then continues them as they were before.

use std::collections::{HashMap, HashSet};

use rustix::process::Signal as Number;

use crate::Signal;
use crate::linux::command_processes::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::linux::process::{Identity, Process, Sent};

/// For this many checks, a process is not stopped while its parent still runs. A shell that sees one of its
/// jobs stop would take this for Ctrl-Z. A parent that has not stopped by then hangs in the kernel, so its
/// children are stopped anyway.
const PATIENT_CHECKS: u32 = 12;

/// Processes that are to be stopped.
///
/// They are checked repeatedly, because new processes appear until their parents have stopped, and anyone may
/// continue a process. Processes of another user can't be stopped, and continue.
#[derive(Debug)]
pub(crate) struct Freeze {
    /// The processes that were stopped here. Processes that a user stopped are not included and stay stopped.
    stopped: HashSet<Identity>,
    /// Signals that would wake stopped processes, or that these would lose. The kernel keeps all others.
    deferred: Vec<Signal>,
    check_at: i64,
    pause: i64,
    checks: u32,
    complete: bool,
}

impl Freeze {
    pub(crate) fn new(now: i64) -> Self {
        Self {
            stopped: HashSet::new(),
            deferred: Vec::new(),
            check_at: now,
            pause: FIRST_PAUSE,
            checks: 0,
            complete: false,
        }
    }

    /// When to call [`Freeze::stop`] next.
    pub(crate) fn check_at(&self) -> i64 {
        self.check_at
    }

    /// Stops all running processes of `members`, parents before their children. Returns true the first time
    /// that all processes that can be stopped are stopped.
    pub(crate) fn stop(&mut self, members: &[Process], now: i64) -> bool {
        self.checks += 1;
        self.check_at = now.saturating_add(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let stands: HashMap<i32, bool> = members
            .iter()
            .map(|process| (process.id.pid, process.stopped))
            .collect();
        let mut running = 0;
        for process in members.iter().filter(|process| !process.stopped) {
            let has_turn = stands.get(&process.parent).copied().unwrap_or(true);
            if !has_turn && self.checks <= PATIENT_CHECKS {
                running += 1;
                continue;
            }
            if process.send(&[Number::STOP]) == Sent::Delivered {
                self.stopped.insert(process.id);
                running += 1;
            }
        }
        running == 0 && !std::mem::replace(&mut self.complete, true)
    }

    /// Whether all processes that can be stopped were stopped.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Keeps `signal` until the command continues, if it must be kept. Returns whether it was kept.
    pub(crate) fn holds_back(&mut self, signal: Signal) -> bool {
        let keeps = matches!(signal, Signal::CONT | Signal::TSTP);
        if keeps {
            self.deferred.push(signal);
        }
        keeps
    }

    /// Continues the processes that were stopped here, children before their parents, so that no parent sees
    /// a stopped child. Returns the kept signals.
    pub(crate) fn thaw(self, members: &[Process]) -> Vec<Signal> {
        for process in members.iter().rev() {
            if self.stopped.contains(&process.id) {
                process.send(&[Number::CONT]);
            }
        }
        self.deferred
    }
}
