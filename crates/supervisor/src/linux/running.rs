//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::io;

use boot_clock::now;
use rustix::process::Pid;
use tokio::signal::unix::{SignalKind, signal};

use crate::linux::alarm::Alarm;
use crate::linux::channel::Channel;
use crate::linux::cleanup::{Cleanup, reap_adopted};
use crate::linux::job::Job;
use crate::linux::message::{Order, SupervisorReport};
use crate::linux::supervisor::Supervisor;
use crate::unix::job_control::JobControl;
use crate::unix::tty::Tty;
use crate::{Event, Exit, Limits, Signal, StartError};

/// How late a supervisor may be before its caller takes over, in microseconds.
const LATE: i64 = 200_000;

/// How long the supervisor may take to kill all processes once it has announced this, in microseconds. Longer
/// than the supervisor's own limit.
const KILLING: i64 = 6_000_000;

/// How soon to check again whether the supervisor is gone, in microseconds.
const DEPARTURE: i64 = 1_000;

/// A running or ended command, with its limits.
///
/// Keep polling [`Running::next`]: it notices a supervisor that was killed or stopped, and takes the terminal
/// back. The limits themselves apply even without polling.
///
/// If you drop this before [`Event::Ended`], all processes are ended in the background. The supervisor sends
/// TERM at once, and KILL after the grace period or at the limit.
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
    /// `None` until the supervisor has reported the pid.
    command: Option<Pid>,
    not_started: Option<StartError>,
    exited: bool,
    out_of_time: bool,
    job: JobControl,
}

#[derive(Debug)]
enum State {
    Supervised,
    /// The supervisor is ending. If it has not reported the end of the command, this process takes over once
    /// the supervisor is gone.
    Departing(Option<usize>),
    /// The supervisor is gone, and this process ends the remaining processes.
    Cleanup(Cleanup),
    Ended(usize),
}

/// What the caller does next if a supervisor does not act. The caller also continues the supervisor whenever
/// it stops.
#[derive(Debug, Clone, Copy)]
enum Checks {
    /// At the first limit, continue the supervisor.
    AtTerm,
    /// At the second limit, continue it again.
    AtKill,
    /// After that, take over.
    Late,
    /// The supervisor is killing the remaining processes, and has until this time.
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

    /// Waits until the command has started or the supervisor is lost. A lost supervisor may have started the
    /// command.
    pub(crate) async fn started(&mut self) -> Result<(), StartError> {
        while self.command.is_none() && matches!(self.state, State::Supervised) {
            self.supervised().await.map_err(StartError::Supervisor)?;
            if let Some(error) = self.not_started.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The command's process id; `None` if the supervisor was lost before it reported the pid.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        Some(self.command?.as_raw_pid().unsigned_abs())
    }

    /// Sets new limits, which may be earlier or later. Later limits do not give more time to processes that
    /// have already been asked to end. Does not wait.
    pub fn limits(&mut self, limits: Limits) {
        self.change(limits, &Order::Limits(limits));
    }

    /// Ends all processes: TERM at once, KILL at `limits.kill_at`. Does not wait.
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

    /// Forwards a signal to the command's process group. With CONT, the command gets the terminal again, if
    /// it used the terminal and this process has it. Does not wait.
    pub fn signal(&mut self, signal: Signal) {
        self.job.forwards(signal);
        self.channel.send(&Order::Signal(signal));
    }

    /// Stops the command and all its descendants until [`Running::thaw`]. Reports [`Event::Frozen`] once all
    /// are stopped. Does not wait.
    ///
    /// This is not a stop of a job: the terminal keeps its owner, and a shell that is part of the command
    /// does not notice. Processes that a user stopped before stay stopped afterwards. Signals that are
    /// forwarded in the meantime arrive when the command continues. The limits still apply: to end the
    /// command, it is first continued. A command that is already being ended is not stopped.
    ///
    /// # Caveats
    ///
    /// Processes of another user (`sudo`) continue, and anyone may continue a process that they own.
    pub fn freeze(&mut self) {
        self.channel.send(&Order::Freeze);
    }

    /// Continues the processes that [`Running::freeze`] stopped. Does not wait.
    pub fn thaw(&mut self) {
        self.channel.send(&Order::Thaw);
    }

    /// The next event. [`Event::Ended`] is returned again by every later call. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    ///
    /// Only if the system refuses a timer or a wait. Then all processes are ended, as on drop.
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
                State::Ended(unkillable) => {
                    let unkillable = *unkillable;
                    return Ok(Event::Ended { unkillable });
                }
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

    /// Handles a limit that has passed. The supervisor handles it itself, unless it was stopped.
    fn check(&mut self) {
        self.checks = match self.checks {
            Checks::AtTerm => Checks::AtKill,
            Checks::AtKill => Checks::Late,
            Checks::Late | Checks::Killing(_) => {
                if now() >= self.limits.term_at {
                    // The supervisor, which should have reported this, was stopped.
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

    /// Kills the supervisor, because there is nothing more to wait for from it.
    fn depart(&mut self, over: Option<usize>) {
        self.supervisor.signal(rustix::process::Signal::KILL);
        self.state = State::Departing(over);
    }

    /// Waits until the supervisor is gone. Only then has this process adopted all remaining processes.
    async fn departing(&mut self, over: Option<usize>) -> io::Result<()> {
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

    /// Stops this process if its stopped command requires that, so that both continue together, as a shell
    /// expects of a job. Call it at [`Event::Stopped`]. It returns after this process was continued, for
    /// example by `fg` or `bg`. It then continues the command too, with the terminal if this process has it
    /// again. Returns true if this process was stopped; `announce` is called right before that.
    ///
    /// If somebody stopped only the command (`kill -STOP`) and the terminal is not involved, the command
    /// stays stopped. If no shell could continue this process, the command is continued at once.
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
