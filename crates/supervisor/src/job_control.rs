//! The command as a job: who has the terminal, and what a stop (Ctrl-Z) means.

use rustix::process::{Pid, Signal as Number, getpid, kill_current_process_group, kill_process};

use crate::tty::Tty;
use crate::{Exit, Signal};

/// The job control of a command.
#[derive(Debug)]
pub(crate) struct JobControl {
    /// `None` until it is known, and after its end.
    command: Option<Pid>,
    tty: Option<Tty>,
    /// The command uses the terminal: it gets the terminal again whenever it continues.
    uses_terminal: bool,
    stopped: Option<Signal>,
    /// Its stop was requested by a signal that was forwarded.
    stop_forwarded: bool,
}

impl JobControl {
    /// Of a command that is about to start, and that uses `tty` if it has been given it.
    pub(crate) fn new(tty: Option<Tty>) -> Self {
        Self {
            command: None,
            uses_terminal: tty.as_ref().is_some_and(Tty::is_given),
            tty,
            stopped: None,
            stop_forwarded: false,
        }
    }

    /// The command has started.
    pub(crate) fn started(&mut self, command: Pid) {
        self.command = Some(command);
    }

    /// The command was stopped. False if it only wanted the terminal, and now has it.
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

    /// The command continues. False if no stop was reported.
    pub(crate) fn continued(&mut self) -> bool {
        self.stopped.take().is_some()
    }

    /// The command has ended, or nothing more is done for it.
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

    /// `signal` is about to be passed on.
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

    /// Stops this process with its command, if that is a stop of the job and a shell can continue it
    /// (`is_controlled`), after `announce`. Returns whether the command is to be continued, and whether this process was
    /// stopped.
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
            // Ctrl-Z stops every process of a job; a signal to this one stops this one.
            let _result = match self.uses_terminal {
                true => kill_current_process_group(Number::STOP),
                false => kill_process(getpid(), Number::STOP),
            };
        }
        // If it wants a terminal that nobody can give it, it would only be stopped again.
        (controlled || !wants_terminal, controlled)
    }

    /// Whether it was stopped because the terminal is another's.
    fn wants_terminal(&self) -> bool {
        self.tty.is_some() && matches!(self.stopped, Some(Signal::TTIN | Signal::TTOU))
    }
}
