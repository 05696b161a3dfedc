//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use boot_clock::now;
use process_wrap::tokio::ChildWrapper;

use crate::windows::processes::Processes;
use crate::{Ended, Event, Exit, Limits, Signal};

/// The exit code of a program that was ended by Ctrl-C: `STATUS_CONTROL_C_EXIT`.
const CONTROL_C_EXIT: u32 = 0xC000_013A;

/// How long killed processes may take to disappear, in microseconds.
const SETTLE: i64 = 5_000_000;

/// The pause between two checks of the remaining processes.
const PAUSE: Duration = Duration::from_millis(10);

/// The maximum sleep, in microseconds. While the machine sleeps, the runtime's clock may stand still, but the
/// limits do not.
const LONGEST_SLEEP: i64 = 1_000_000;

/// A running or ended command, with its limits.
///
/// Keep polling [`Running::next`], because it applies the limits. At the first limit, the job object is
/// killed, because Windows cannot ask a process to end. If this process is killed, Windows kills the job
/// object.
///
/// If you drop this before [`Event::Ended`], the job object is killed.
#[derive(Debug)]
pub struct Running {
    state: State,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum State {
    Running(Box<Job>),
    Ended(Ended),
}

/// The job object of a command.
#[derive(Debug)]
struct Job {
    job: Box<dyn ChildWrapper>,
    processes: Processes,
    kill_at: i64,
    /// When to stop waiting for the end of the job object; set once it was killed.
    killed_until: Option<i64>,
    /// The command itself has ended.
    exited: bool,
}

impl Running {
    pub(crate) fn new(job: Box<dyn ChildWrapper>, processes: Processes, limits: Limits) -> Self {
        Self {
            state: State::Running(Box::new(Job {
                job,
                processes,
                kill_at: first(limits),
                killed_until: None,
                exited: false,
            })),
            events: VecDeque::new(),
        }
    }

    /// The state of a command that was not run.
    pub(crate) fn not_run(exit: Exit) -> Self {
        Self {
            state: State::Ended(Ended::default()),
            events: VecDeque::from([Event::Exited(exit)]),
        }
    }

    /// The command's process id; `None` if it has ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Running(job) => job.job.id(),
            State::Ended(_) => None,
        }
    }

    /// Sets new limits, which may be earlier or later. Does not wait.
    pub fn limits(&mut self, limits: Limits) {
        if let State::Running(job) = &mut self.state {
            job.kill_at = first(limits);
        }
    }

    /// Kills the job object. Does not wait.
    pub fn end(&mut self, _limits: Limits) {
        if let State::Running(job) = &mut self.state
            && job.killed_until.is_none()
        {
            job.kill();
        }
    }

    /// Does nothing: the command receives the events of the console itself.
    pub fn signal(&mut self, _signal: Signal) {}

    /// Does nothing: Windows cannot stop a job object for a while.
    pub fn freeze(&mut self) {}

    /// Does nothing.
    pub fn thaw(&mut self) {}

    /// Does nothing: Windows has no stopped jobs.
    pub fn suspend(&mut self, _announce: impl FnOnce()) -> bool {
        false
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
            let state = &mut self.state;
            let running = match state {
                State::Running(running) => running,
                State::Ended(over) => return Ok(Event::Ended(*over)),
            };
            let deadline = running.killed_until.unwrap_or(running.kill_at);
            if running.exited {
                // If the number of remaining processes is unknown, it counts as one.
                let left = running.processes.count().unwrap_or(1);
                if left == 0 || now() >= deadline {
                    let unkillable = left;
                    *state = State::Ended(Ended {
                        unkillable,
                        ..Ended::default()
                    });
                } else {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            }
            let left = deadline.saturating_sub(now()).clamp(0, LONGEST_SLEEP);
            tokio::select! {
                biased;
                // Waits for the command itself. Other processes in the job object may outlive it.
                status = running.job.inner_mut().wait() => {
                    // If the machine was suspended, nobody knows whether it ended before its limit.
                    if running.killed_until.is_none() && now() >= deadline {
                        self.events.push_back(Event::OutOfTime);
                    }
                    self.events.push_back(Event::Exited(exit(status?)));
                    running.exited = true;
                    // Processes that the command left running are killed.
                    running.kill();
                }
                () = tokio::time::sleep(Duration::from_micros(left.unsigned_abs())) => {
                    if now() < deadline {
                        continue;
                    }
                    if running.killed_until.is_some() {
                        let unkillable = 1;
                        *state = State::Ended(Ended { unkillable, ..Ended::default() });
                    } else {
                        self.events.push_back(Event::OutOfTime);
                        running.kill();
                    }
                }
            }
        }
    }
}

impl Job {
    /// Kills all processes of the job object. They end shortly after.
    fn kill(&mut self) {
        // If this fails, the processes do not end, which is noticed later.
        let _result = self.job.start_kill();
        let until = now().saturating_add(SETTLE);
        self.killed_until.get_or_insert(until);
    }
}

fn first(limits: Limits) -> i64 {
    limits.term_at.min(limits.kill_at)
}

fn exit(status: ExitStatus) -> Exit {
    let code = status.code().unwrap_or(1).cast_unsigned();
    match code {
        CONTROL_C_EXIT => Exit::Signal(Signal::INT),
        code => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}
