//! Job control of the command: which process has the terminal, and how to handle a stop (Ctrl-Z).

use rustix::process::{Pid, Signal as Number, getpid, kill_current_process_group, kill_process};

use crate::unix::tty::Tty;
use crate::{Exit, Signal};

/// The job control of a command.
#[derive(Debug)]
pub(crate) struct JobControl {
    /// The process id of the command; `None` before it is known and after the command has ended.
    command: Option<Pid>,
    tty: Option<Tty>,
    /// The command uses the terminal, so it gets the terminal again whenever it continues.
    uses_terminal: bool,
    stopped: Option<Signal>,
    /// Its stop was requested by a signal that was forwarded to it.
    stop_forwarded: bool,
}

impl JobControl {
    /// Creates the job control of a command that is about to start. The command uses `tty` if it has been
    /// given it.
    pub(crate) fn new(tty: Option<Tty>) -> Self {
        Self {
            command: None,
            uses_terminal: tty.as_ref().is_some_and(Tty::is_given),
            tty,
            stopped: None,
            stop_forwarded: false,
        }
    }

    /// Records that the command has started.
    pub(crate) fn started(&mut self, command: Pid) {
        self.command = Some(command);
    }

    /// Records that the command was stopped. Returns false if it only needed the terminal and has it now.
    pub(crate) fn stopped(&mut self, signal: Signal) -> bool {
        let wants_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        if let Some(tty) = &mut self.tty {
            if wants_terminal && self.command.is_some_and(|command| tty.give(command)) {
                self.uses_terminal = true;
                return false;
            }
            tty.take_back();
        }
        self.stopped = Some(signal);
        true
    }

    /// Records that the command has ended, or that no more is done for it.
    pub(crate) fn ended(&mut self, exit: Option<Exit>) {
        self.command = None;
        if let Some(tty) = &mut self.tty
            && tty.is_given()
        {
            tty.take_back();
            if matches!(exit, Some(Exit::Signal(_))) {
                tty.restore();
            }
        }
    }

    /// Prepares for a `signal` that is about to be forwarded.
    pub(crate) fn forwards(&mut self, signal: Signal) {
        match signal {
            Signal::CONT if self.uses_terminal => {
                if let (Some(tty), Some(command)) = (&mut self.tty, self.command) {
                    tty.give(command);
                }
            }
            Signal::TSTP => self.stop_forwarded = true,
            _ => {}
        }
    }

    /// Stops this process together with its command, after `announce`. It does so only if the stop is a stop
    /// of the job and a shell can continue it (`is_controlled`). Returns whether to continue the command, and
    /// whether this process was stopped.
    pub(crate) fn suspend(
        &mut self,
        is_controlled: impl FnOnce() -> bool,
        announce: impl FnOnce(),
    ) -> (bool, bool) {
        let wants_terminal = self.wants_terminal();
        let as_job = self.uses_terminal || wants_terminal || self.stop_forwarded;
        self.stop_forwarded = false;
        if self.stopped.is_none() || !as_job {
            return (false, false);
        }
        let controlled = is_controlled();
        if controlled {
            announce();
            self.uses_terminal |= wants_terminal;
            // Ctrl-Z stops every process of a job. A signal to this process stops only this process.
            let _result = match self.uses_terminal {
                true => kill_current_process_group(Number::STOP),
                false => kill_process(getpid(), Number::STOP),
            };
        }
        // If the command needs the terminal and nobody can give it the terminal, it would only be stopped
        // again.
        (controlled || !wants_terminal, controlled)
    }

    /// Whether the command was stopped because another process group has the terminal.
    fn wants_terminal(&self) -> bool {
        self.tty.is_some() && matches!(self.stopped, Some(Signal::TTIN | Signal::TTOU))
    }
}
