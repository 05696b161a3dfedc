//! The command as a job: who has the terminal, and what a stop (Ctrl-Z) means.

use rustix::process::{Pid, Signal as Number, getpid, kill_current_process_group, kill_process};

use crate::tty::Tty;
use crate::unix::job::Job;
use crate::{Exit, Signal};

/// The job control of a command.
#[derive(Debug)]
pub(crate) struct JobControl {
    command: Pid,
    tty: Option<Tty>,
    /// The command uses the terminal: it gets the terminal again whenever it continues.
    uses_terminal: bool,
    stopped: Option<Signal>,
    /// Its stop was requested by a signal that was forwarded.
    stop_forwarded: bool,
}

impl JobControl {
    /// Gives the command the terminal, if it is in the `foreground`.
    pub(crate) fn new(command: Pid, mut tty: Option<Tty>, foreground: bool) -> Self {
        let uses_terminal = foreground && tty.as_mut().is_some_and(|tty| tty.give(command));
        Self {
            command,
            tty,
            uses_terminal,
            stopped: None,
            stop_forwarded: false,
        }
    }

    /// The command was stopped. False if it only wanted the terminal, and now has it.
    pub(crate) fn stopped(&mut self, signal: Signal) -> bool {
        let wants_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        if let Some(tty) = &mut self.tty {
            if wants_terminal && tty.give(self.command) {
                self.uses_terminal = true;
                return false;
            }
            tty.take_back();
        }
        self.stopped = Some(signal);
        true
    }

    /// The command continues. False if no stop was reported.
    pub(crate) fn continued(&mut self) -> bool {
        self.stopped.take().is_some()
    }

    /// The command has ended, or nothing more is done for it.
    pub(crate) fn ended(&mut self, exit: Option<Exit>) {
        if let Some(tty) = &mut self.tty
            && tty.is_given()
        {
            tty.take_back();
            if matches!(exit, Some(Exit::Signal(_))) {
                tty.restore();
            }
        }
    }

    /// `signal` is about to be passed on.
    pub(crate) fn forwards(&mut self, signal: Signal) {
        match signal {
            Signal::CONT if self.uses_terminal => {
                if let Some(tty) = &mut self.tty {
                    tty.give(self.command);
                }
            }
            Signal::TSTP => self.stop_forwarded = true,
            _ => {}
        }
    }

    /// Whether [`JobControl::suspend`] would stop this process now.
    pub(crate) fn suspends(&self) -> bool {
        self.is_stop_meant() && Job::own().is_ok_and(|job| job.is_controlled())
    }

    /// Stops this process with its command, if that is a stop of the job and a shell can continue it. Returns whether
    /// the command is to be continued, and whether this process was stopped.
    pub(crate) fn suspend(&mut self) -> (bool, bool) {
        let is_meant = self.is_stop_meant();
        self.stop_forwarded = false;
        if !is_meant {
            return (false, false);
        }
        let wants_terminal = self.wants_terminal();
        let controlled = Job::own().is_ok_and(|job| job.is_controlled());
        if controlled {
            self.uses_terminal |= wants_terminal;
            // Ctrl-Z stops every process of a job; a signal to this one stops this one.
            let _result = match self.uses_terminal {
                true => kill_current_process_group(Number::STOP),
                false => kill_process(getpid(), Number::STOP),
            };
        }
        // If it wants a terminal that nobody can give it, it would only be stopped again.
        (controlled || !wants_terminal, controlled)
    }

    /// Whether the command was stopped as a job, and not by itself.
    fn is_stop_meant(&self) -> bool {
        let as_job = self.uses_terminal || self.wants_terminal() || self.stop_forwarded;
        self.stopped.is_some() && as_job
    }

    /// Whether it was stopped because the terminal is another's.
    fn wants_terminal(&self) -> bool {
        self.tty.is_some() && matches!(self.stopped, Some(Signal::TTIN | Signal::TTOU))
    }
}
