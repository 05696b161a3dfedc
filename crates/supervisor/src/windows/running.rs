//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use boot_clock::now;
use process_wrap::tokio::ChildWrapper;

use crate::{Ended, Event, Exit, Limits, Signal};

/// The exit code of a program that Ctrl-C has ended: `STATUS_CONTROL_C_EXIT`.
const CONTROL_C_EXIT: u32 = 0xC000_013A;

/// How long a killed command may take to disappear, in microseconds.
const SETTLE: i64 = 5_000_000;

/// How long to sleep at most: the runtime's clock may stand still while the machine sleeps, and the limits don't.
const LONGEST_SLEEP: i64 = 1_000_000;

/// A command that runs, or has run, within its limits.
///
/// Poll [`Running::next`] all the time: it applies the limits. At the first one, the job object is killed: nothing
/// can be asked to end. If this process is killed, Windows kills the job object.
///
/// Dropping this before [`Event::Ended`] kills the job object.
#[derive(Debug)]
pub struct Running {
    state: State,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum State {
    Running {
        job: Box<dyn ChildWrapper>,
        kill_at: i64,
        /// Set when it was killed: when to stop waiting for it.
        killed_until: Option<i64>,
    },
    Ended(Ended),
}

impl Running {
    pub(crate) fn new(job: Box<dyn ChildWrapper>, limits: Limits) -> Self {
        Self {
            state: State::Running {
                job,
                kill_at: first(limits),
                killed_until: None,
            },
            events: VecDeque::new(),
        }
    }

    /// A command that was not run.
    pub(crate) fn not_run(exit: Exit) -> Self {
        Self {
            state: State::Ended(Ended::default()),
            events: VecDeque::from([Event::Exited(exit)]),
        }
    }

    /// Sets new limits, earlier or later ones. Doesn't wait.
    pub fn limits(&mut self, limits: Limits) {
        if let State::Running { kill_at, .. } = &mut self.state {
            *kill_at = first(limits);
        }
    }

    /// Kills the job object. Doesn't wait.
    pub fn end(&mut self, _limits: Limits) {
        if let State::Running {
            job, killed_until, ..
        } = &mut self.state
            && killed_until.is_none()
        {
            *killed_until = Some(kill_and_wait(job));
        }
    }

    /// Does nothing: the command gets the events of the console itself.
    pub fn signal(&mut self, _signal: Signal) {}

    /// Does nothing: Windows cannot stop a job object for a while.
    pub fn freeze(&mut self) {}

    /// Does nothing.
    pub fn thaw(&mut self) {}

    /// Does nothing: Windows has no stopped jobs.
    pub fn suspend(&mut self, _announce: impl FnOnce()) -> bool {
        false
    }

    /// The next event. After [`Event::Ended`] it is returned again. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// If waiting for the command fails. Then drop this.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let (job, kill_at, killed_until) = match &mut self.state {
                State::Running {
                    job,
                    kill_at,
                    killed_until,
                } => (job, kill_at, killed_until),
                State::Ended(over) => return Ok(Event::Ended(*over)),
            };
            let deadline = killed_until.unwrap_or(*kill_at);
            let left = deadline.saturating_sub(now()).clamp(0, LONGEST_SLEEP);
            tokio::select! {
                biased;
                // The command itself: the job object may go on without it.
                status = job.inner_mut().wait() => {
                    self.events.push_back(Event::Exited(exit(status?)));
                    // What the command left running ends with it.
                    let unkillable = usize::from(kill(job).is_err());
                    self.state = State::Ended(Ended { unkillable, ..Ended::default() });
                }
                () = tokio::time::sleep(Duration::from_micros(left.unsigned_abs())) => {
                    if now() < deadline {
                        continue;
                    }
                    match killed_until {
                        Some(_) => {
                            let unkillable = 1;
                            self.state = State::Ended(Ended { unkillable, ..Ended::default() });
                        }
                        None => {
                            self.events.push_back(Event::OutOfTime);
                            *killed_until = Some(kill_and_wait(job));
                        }
                    }
                }
            }
        }
    }
}

fn first(limits: Limits) -> i64 {
    limits.term_at.min(limits.kill_at)
}

/// Kills the job object, and returns until when to wait for it.
fn kill_and_wait(job: &mut Box<dyn ChildWrapper>) -> i64 {
    // A failure is noticed because it does not end.
    let _result = kill(job);
    now().saturating_add(SETTLE)
}

/// Kills the job object. Its processes end a moment later.
fn kill(job: &mut Box<dyn ChildWrapper>) -> io::Result<()> {
    job.start_kill()
}

fn exit(status: ExitStatus) -> Exit {
    let code = status.code().unwrap_or(1).cast_unsigned();
    match code {
        CONTROL_C_EXIT => Exit::Signal(Signal::INT),
        code => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}
