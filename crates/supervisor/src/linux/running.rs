//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::io;

use boot_clock::now;
use rustix::process::Pid;
use tokio::signal::unix::{SignalKind, signal};

use crate::job_control::JobControl;
use crate::linux::alarm::Alarm;
use crate::linux::channel::Channel;
use crate::linux::cleanup::{Cleanup, reap_adopted};
use crate::linux::job::Job;
use crate::linux::message::{Order, SupervisorReport};
use crate::linux::supervisor::Supervisor;
use crate::tty::Tty;
use crate::{Ended, Event, Exit, Limits, Signal, StartError};

/// How late a supervisor may be before its caller takes over, in microseconds.
const LATE: i64 = 200_000;

/// How long the supervisor may take to kill everything once it has announced that: longer than its own limit.
const KILLING: i64 = 6_000_000;

/// How soon to check again whether the supervisor is gone.
const DEPARTURE: i64 = 1_000;

/// A command that runs, or has run, within its limits.
///
/// Poll [`Running::next`] all the time: it notices a supervisor that was killed or stopped, and takes the
/// terminal back. The limits themselves apply without it.
///
/// Dropping this before [`Event::Ended`] ends everything in the background: the supervisor sends
/// TERM at once, and KILL after the grace or at the limit.
#[derive(Debug)]
pub struct Running {
    state: State,
    channel: Channel,
    supervisor: Supervisor,
    alarm: Alarm,
    children: tokio::signal::unix::Signal,
    events: VecDeque<Event>,
    limits: Limits,
    grace: i64,
    checks: Checks,
    /// `None` until the supervisor has reported the number.
    command: Option<Pid>,
    not_started: Option<StartError>,
    exited: bool,
    out_of_time: bool,
    job: JobControl,
}

#[derive(Debug)]
enum State {
    Supervised,
    /// The supervisor is about to be gone. If it has not reported the end, more has to be done then.
    Departing(Option<Ended>),
    /// This process does the supervisor's work.
    Cleanup(Cleanup),
    Ended(Ended),
}

/// What is done if a supervisor still does not act, although it is continued whenever it stops.
#[derive(Debug, Clone, Copy)]
enum Checks {
    /// It is continued at the first limit,
    AtTerm,
    /// and at the second;
    AtKill,
    /// and then it isn't waited for any longer.
    Late,
    /// It is doing its last task, and has until then.
    Killing(i64),
}

impl Running {
    pub(crate) fn new(
        supervisor: Supervisor,
        channel: Channel,
        tty: Option<Tty>,
        limits: Limits,
        grace: i64,
    ) -> io::Result<Self> {
        Ok(Self {
            state: State::Supervised,
            channel,
            supervisor,
            alarm: Alarm::new()?,
            children: signal(SignalKind::child())?,
            events: VecDeque::new(),
            limits,
            grace,
            checks: Checks::AtTerm,
            command: None,
            not_started: None,
            exited: false,
            out_of_time: false,
            job: JobControl::new(tty),
        })
    }

    /// Waits until the command has started, or until the supervisor is lost: it may have started the command
    /// before.
    pub(crate) async fn started(&mut self) -> Result<(), StartError> {
        while self.command.is_none() && matches!(self.state, State::Supervised) {
            self.supervised().await.map_err(StartError::Supervisor)?;
            if let Some(error) = self.not_started.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The command's process id; `None` if its supervisor was lost before it reported the number.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        Some(self.command?.as_raw_pid().unsigned_abs())
    }

    /// Sets new limits, earlier or later ones. If the processes have already been asked to end, later limits
    /// don't give them more time. Doesn't wait.
    pub fn limits(&mut self, limits: Limits) {
        self.change(limits, &Order::Limits(limits));
    }

    /// Ends everything: TERM at once, KILL at `limits.kill_at`. Doesn't wait.
    pub fn end(&mut self, limits: Limits) {
        self.change(limits, &Order::End(limits));
    }

    fn change(&mut self, limits: Limits, order: &Order) {
        self.limits = limits;
        if !matches!(self.checks, Checks::Killing(_)) {
            self.checks = Checks::AtTerm;
        }
        match &mut self.state {
            State::Supervised => self.channel.send(order),
            State::Cleanup(cleanup) => cleanup.limits(limits),
            State::Departing(_) | State::Ended(_) => {}
        }
    }

    /// Passes a signal on to the command's process group. With CONT the command gets the terminal again, if it
    /// used it and this process has it. Doesn't wait.
    pub fn signal(&mut self, signal: Signal) {
        self.job.forwards(signal);
        self.channel.send(&Order::Signal(signal));
    }

    /// Stops the command and all its descendants until [`Running::thaw`], and reports [`Event::Frozen`] once
    /// all are stopped. Doesn't wait.
    ///
    /// This is not a stop of a job: the terminal keeps its owner, and a shell that is part of the command
    /// does not notice. Processes that a user stopped before stay stopped afterwards. Signals that are
    /// passed on in the meantime arrive when the command continues. The limits still apply: to end the
    /// command, it is continued first. A command that is already being ended is not stopped.
    ///
    /// # Caveats
    ///
    /// Processes of another user (`sudo`) continue, and anybody may continue a process that they own.
    pub fn freeze(&mut self) {
        self.channel.send(&Order::Freeze);
    }

    /// Continues what [`Running::freeze`] stopped. Doesn't wait.
    pub fn thaw(&mut self) {
        self.channel.send(&Order::Thaw);
    }

    /// The next event. After [`Event::Ended`] it is returned again. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// Only if the system refuses a timer or a wait. Everything is then ended, as it is on drop.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            match &mut self.state {
                State::Supervised => self.supervised().await?,
                State::Departing(over) => {
                    let over = *over;
                    self.departing(over).await?;
                }
                State::Cleanup(_) => self.inherit().await?,
                State::Ended(over) => return Ok(Event::Ended(*over)),
            }
        }
    }

    async fn supervised(&mut self) -> io::Result<()> {
        let check_at = match self.checks {
            Checks::AtTerm => self.limits.term_at.min(self.limits.kill_at),
            Checks::AtKill => self.limits.kill_at,
            Checks::Late => self.limits.kill_at.saturating_add(LATE),
            Checks::Killing(until) => until,
        };
        self.alarm.set(Some(check_at))?;
        self.supervisor.keep_going();
        tokio::select! {
            biased;
            report = self.channel.receive() => match report {
                Some(report) => self.receive(report),
                None => self.depart(None),
            },
            _child = self.children.recv() => {}
            fired = self.alarm.fired() => {
                fired?;
                self.check();
            }
        }
        Ok(())
    }

    /// A limit has passed. The supervisor knows that itself, unless it was stopped.
    fn check(&mut self) {
        self.checks = match self.checks {
            Checks::AtTerm => Checks::AtKill,
            Checks::AtKill => Checks::Late,
            Checks::Late | Checks::Killing(_) => {
                if now() >= self.limits.term_at {
                    // The process that should have reported it was stopped.
                    self.out_of_time();
                }
                return self.depart(None);
            }
        };
        self.supervisor.signal(rustix::process::Signal::CONT);
    }

    fn receive(&mut self, report: SupervisorReport) {
        match report {
            SupervisorReport::Stopped(signal) => self.stopped(signal),
            SupervisorReport::Continued => {
                if self.job.continued() {
                    self.events.push_back(Event::Continued);
                }
            }
            SupervisorReport::OutOfTime => self.out_of_time(),
            SupervisorReport::Frozen => self.events.push_back(Event::Frozen),
            SupervisorReport::Thawed => self.events.push_back(Event::Thawed),
            SupervisorReport::Exited(exit) => self.exited(exit),
            SupervisorReport::Left(count) => self.events.push_back(Event::Left(count)),
            SupervisorReport::Killing => self.checks = Checks::Killing(now() + KILLING),
            SupervisorReport::Ended(over) => self.depart(Some(over)),
            SupervisorReport::Started { pid } => self.started_as(pid),
            SupervisorReport::TooLate => self.not_started = Some(StartError::TooLate),
            SupervisorReport::Failed { errno } => {
                let error = io::Error::from_raw_os_error(errno);
                self.not_started = Some(StartError::Spawn(error));
            }
        }
    }

    fn started_as(&mut self, pid: i32) {
        self.command = Pid::from_raw(pid);
        if let Some(command) = self.command {
            self.job.started(command);
        }
    }

    fn out_of_time(&mut self) {
        if !std::mem::replace(&mut self.out_of_time, true) {
            self.events.push_back(Event::OutOfTime);
        }
    }

    fn exited(&mut self, exit: Exit) {
        self.exited = true;
        self.job.ended(Some(exit));
        self.events.push_back(Event::Exited(exit));
    }

    /// There is nothing more to wait for from the supervisor.
    fn depart(&mut self, over: Option<Ended>) {
        self.supervisor.signal(rustix::process::Signal::KILL);
        self.state = State::Departing(over);
    }

    /// Waits until the supervisor is gone: only then this process has adopted everything.
    async fn departing(&mut self, over: Option<Ended>) -> io::Result<()> {
        if !self.supervisor.has_ended() {
            self.alarm.set(Some(now() + DEPARTURE))?;
            return self.alarm.fired().await;
        }
        if let Some(over) = over {
            self.state = State::Ended(over);
        } else {
            self.events.push_back(Event::SupervisorLost);
            self.state = State::Cleanup(Cleanup::new(self.limits, self.grace));
        }
        Ok(())
    }

    async fn inherit(&mut self) -> io::Result<()> {
        let State::Cleanup(cleanup) = &mut self.state else {
            return Ok(());
        };
        let command = self.command.filter(|_| !self.exited);
        let exit = reap_adopted(command);
        let over = cleanup.turn();
        let next = cleanup.next();
        if let Some(exit) = exit {
            self.exited(exit);
        }
        if let Some(over) = over {
            self.job.ended(None);
            self.state = State::Ended(over);
            return Ok(());
        }
        self.alarm.set(next)?;
        tokio::select! {
            biased;
            _child = self.children.recv() => Ok(()),
            fired = self.alarm.fired() => fired,
        }
    }

    fn stopped(&mut self, signal: Signal) {
        if self.job.stopped(signal) {
            self.events.push_back(Event::Stopped(signal));
        } else {
            self.channel.send(&Order::Signal(Signal::CONT));
        }
    }

    /// Stops this process if its stopped command requires that, and lets both continue together, as a shell
    /// expects of a job. Call it at [`Event::Stopped`]. It returns after this process was continued, for
    /// example by `fg` or `bg`, and then continues the command too, with the terminal if this process has it
    /// again. True if this process was stopped meanwhile; `announce` is called right before that.
    ///
    /// A command that somebody stopped by itself (`kill -STOP`), without the terminal being involved, is left
    /// as it is. If no shell could continue this process, the command is continued at once.
    ///
    /// The limits apply all the time.
    pub fn suspend(&mut self, announce: impl FnOnce()) -> bool {
        let (continues, suspended) = self.job.suspend(Job::own_is_controlled, announce);
        if continues {
            self.signal(Signal::CONT);
        }
        suspended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let State::Cleanup(cleanup) = &mut self.state {
            cleanup.kill_now();
        }
        self.job.ended(None);
    }
}
