//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::time::Duration;

use boot_clock::now;

use crate::elsewhere::system::{Processes, is_of_program};
use crate::plan::{Due, Plan};
use crate::{Command, Event, Exit, Limits, Signal, StartError, find_program, not_run};

/// How long killed processes may take to disappear, in microseconds.
const SETTLE: i64 = 5_000_000;

/// How long processes may take to end after the command before they count as left behind, in microseconds.
const AFTERMATH: i64 = 100_000;

/// The pause between two checks of the remaining processes, in microseconds.
const PAUSE: i64 = 10_000;

/// The maximum sleep, in microseconds. While the machine sleeps, the runtime's clock may stand still, but the
/// limits do not.
const LONGEST_SLEEP: i64 = 200_000;

/// A running or ended command, with its limits.
///
/// Keep polling [`Running::next`], because it applies the limits. No other process does. On macOS, nothing ends the
/// command if this process is killed. Windows kills the job object then.
///
/// If you drop this before [`Event::Ended`], the process group or the job object is killed.
#[derive(Debug)]
pub struct Running {
    state: State,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum State {
    Running(Box<Supervised>),
    /// The number of processes that may still run.
    Ended(usize),
}

#[cfg(not(target_os = "linux"))]
impl Command {
    /// Starts the command with `limits`. Needs a tokio runtime with I/O and time, of any kind.
    ///
    /// # Errors
    ///
    /// [`StartError`] says what failed. In that case, no process of the command runs. A command that does not
    /// exist or can't be executed is no error here: it has the exit code 127 or 126.
    pub async fn start(self, limits: Limits) -> Result<Running, StartError> {
        start(&self, limits)
    }
}

pub(crate) fn start(command: &Command, limits: Limits) -> Result<Running, StartError> {
    let (program, arguments) = command.argv.split_first().ok_or(StartError::NoCommand)?;
    let mut process = std::process::Command::new(find_program(program));
    process.args(arguments);
    command.set_up(&mut process).map_err(StartError::Spawn)?;
    let mut plan = Plan::new(limits, command.grace_in_micros());
    if plan.due(now()).is_some() {
        return Err(StartError::TooLate);
    }
    let state = match Processes::start(process) {
        Ok(processes) => State::Running(Box::new(Supervised {
            processes,
            plan,
            exited_at: None,
            give_up_at: None,
        })),
        Err(error) if is_of_program(&error) => {
            let exit = not_started(command, program, &error);
            return Ok(Running {
                state: State::Ended(0),
                events: VecDeque::from([Event::Exited(exit)]),
            });
        }
        Err(error) => return Err(StartError::Spawn(error)),
    };
    Ok(Running {
        state,
        events: VecDeque::new(),
    })
}

/// Prints why the `program` of `command` could not be started, and returns its exit.
fn not_started(command: &Command, program: &OsStr, error: &io::Error) -> Exit {
    // If stderr is closed, the error can't be reported.
    let _result = match &command.output {
        Some(output) => not_run::report(&mut &**output, program, error),
        None => not_run::report(&mut io::stderr(), program, error),
    };
    Exit::Code(not_run::code(error))
}

impl Running {
    fn supervised(&mut self) -> Option<&mut Supervised> {
        match &mut self.state {
            State::Running(supervised) => Some(supervised),
            State::Ended(_) => None,
        }
    }

    /// The command's process id; `None` if all processes have ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Running(supervised) => supervised.processes.pid(),
            State::Ended(_) => None,
        }
    }

    /// Sets new limits, which may be earlier or later. Later limits do not give more time to processes that
    /// have already been asked to end. Does not wait.
    pub fn limits(&mut self, limits: Limits) {
        if let Some(supervised) = self.supervised() {
            supervised.plan.limits(limits);
        }
    }

    /// Ends all processes: TERM at once, KILL at `limits.kill_at`. On Windows, they are killed at once. Does not
    /// wait.
    pub fn end(&mut self, limits: Limits) {
        if let Some(supervised) = self.supervised() {
            supervised.plan.end(limits);
        }
    }

    /// Forwards a signal to the command's process group. With CONT, the command gets the terminal again, if
    /// it used the terminal and this process has it. Does not wait. Does nothing on Windows, where the command
    /// receives the events of the console itself.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(supervised) = self.supervised() {
            supervised.signal(signal);
        }
    }

    /// Does nothing: these systems cannot stop all processes of a command.
    pub fn freeze(&mut self) {}

    /// Does nothing.
    pub fn thaw(&mut self) {}

    /// Stops this process if its stopped command requires that, so that both continue together, as a shell
    /// expects of a job. Call it at [`Event::Stopped`]. It returns after this process was continued, for
    /// example by `fg` or `bg`. It then continues the command too, with the terminal if this process has it
    /// again. Returns true if this process was stopped; `announce` is called right before that.
    ///
    /// If somebody stopped only the command (`kill -STOP`) and the terminal is not involved, the command
    /// stays stopped. If no shell could continue this process, the command is continued at once.
    ///
    /// # Caveats
    ///
    /// While this process is stopped, nothing applies the limits. They are applied when it continues.
    pub fn suspend(&mut self, announce: impl FnOnce()) -> bool {
        let Some(supervised) = self.supervised() else {
            return false;
        };
        let (continues, suspended) = supervised.processes.suspend(announce);
        // Once a limit has passed, the command must not run before it is asked to end.
        let is_late = supervised.plan.next().is_some_and(|at| now() >= at);
        if continues && !is_late {
            supervised.signal(Signal::CONT);
        }
        suspended
    }

    /// The next event. [`Event::Ended`] is returned again by every later call. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    ///
    /// If waiting for the command fails. Then drop this.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let supervised = match &mut self.state {
                State::Running(supervised) => supervised,
                State::Ended(unkillable) => {
                    let unkillable = *unkillable;
                    return Ok(Event::Ended { unkillable });
                }
            };
            if let Some(unkillable) = supervised.turn(&mut self.events) {
                self.state = State::Ended(unkillable);
            } else if self.events.is_empty() {
                supervised.wait(&mut self.events).await?;
            }
        }
    }
}

/// The processes of a command, and when they must end.
#[derive(Debug)]
struct Supervised {
    processes: Processes,
    plan: Plan,
    /// When the command itself was waited for.
    exited_at: Option<i64>,
    /// When to stop waiting for killed processes.
    give_up_at: Option<i64>,
}

impl Supervised {
    /// Does what is due now. Returns the number of remaining processes once there is nothing to wait for.
    fn turn(&mut self, events: &mut VecDeque<Event>) -> Option<usize> {
        let now = now();
        let left = self.processes.left();
        if let Some(exited_at) = self.exited_at {
            if left == 0 {
                return Some(0);
            }
            if now >= exited_at.saturating_add(AFTERMATH) && self.plan.left(now) {
                events.push_back(Event::Left(left));
            }
        }
        if self.give_up_at.is_some_and(|at| now >= at) {
            return Some(left.max(1));
        }
        let due = self.plan.due(now);
        self.report_out_of_time(events);
        match due {
            Some(Due::Ask) => self.processes.ask(),
            Some(Due::Kill) => self.give_up_at = Some(now.saturating_add(SETTLE)),
            None => {}
        }
        if self.plan.killing() {
            self.processes.kill();
        }
        None
    }

    /// Waits until something happens or is due.
    async fn wait(&mut self, events: &mut VecDeque<Event>) -> io::Result<()> {
        let is_ending = self.exited_at.is_some() || self.plan.killing();
        let check_at = is_ending.then(|| now().saturating_add(PAUSE));
        let deadlines = [self.plan.next(), self.give_up_at, check_at];
        let next = deadlines.into_iter().flatten().min().unwrap_or(i64::MAX);
        let left = next.saturating_sub(now()).clamp(0, LONGEST_SLEEP);
        tokio::select! {
            biased;
            event = self.processes.next(), if self.exited_at.is_none() => {
                let event = event?;
                if matches!(event, Event::Exited(_)) {
                    let now = now();
                    self.exited_at = Some(now);
                    self.plan.exited(now);
                    self.report_out_of_time(events);
                }
                events.push_back(event);
            }
            () = tokio::time::sleep(Duration::from_micros(left.unsigned_abs())) => {}
        }
        Ok(())
    }

    fn report_out_of_time(&mut self, events: &mut VecDeque<Event>) {
        if self.plan.ran_out() {
            events.push_back(Event::OutOfTime);
        }
    }

    /// A command that has ended or is being killed gets no signals.
    fn signal(&mut self, signal: Signal) {
        if self.exited_at.is_none() && !self.plan.killing() {
            self.processes.signal(signal);
        }
    }
}
