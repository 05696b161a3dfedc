//! Starts a command as a process group.

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;

use boot_clock::now;
use rustix::process::Pid;
use tokio::signal::unix::{SignalKind, signal};

use crate::job_control::JobControl;
use crate::plan::Plan;
use crate::tty::Tty;
use crate::unix::inherited_pipe::InheritedPipe;
use crate::unix::job::Job;
use crate::unix::running::Running;
use crate::{Command, Limits, StartError, Terminal, not_started};

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

/// Starts `command` as the leader of a process group.
pub(crate) fn start(command: &Command, limits: Limits) -> Result<Running, StartError> {
    let (program, arguments) = command.argv.split_first().ok_or(StartError::NoCommand)?;
    let grace = i64::try_from(command.grace.as_micros()).unwrap_or(i64::MAX);
    let mut plan = Plan::new(limits, grace);
    // Listens before the command can end. Then it can be waited for even if this process ignored SIGCHLD when
    // it was started.
    let children = signal(SignalKind::child()).map_err(StartError::Spawn)?;
    let mut tty = (command.terminal == Terminal::Auto)
        .then(Tty::open)
        .flatten();
    let is_foreground = tty.as_ref().is_some_and(Tty::is_ours) && Job::own_is_alone();
    let mut process = std::process::Command::new(program);
    process.args(arguments).process_group(0);
    command.set_up(&mut process).map_err(StartError::Spawn)?;
    let (pipe, write_end) = InheritedPipe::new().map_err(StartError::Spawn)?;
    if plan.due(now()).is_some() {
        return Err(StartError::TooLate);
    }
    let child = process.spawn();
    drop(write_end);
    let child = match child {
        Ok(child) => child,
        Err(error) if is_of_system(&error) => return Err(StartError::Spawn(error)),
        Err(error) => {
            return Ok(Running::not_run(not_started::exit(
                command, program, &error,
            )));
        }
    };
    let group = Pid::from_child(&child);
    if let Some(tty) = tty.as_mut().filter(|_| is_foreground) {
        tty.give(group);
    }
    let mut job = JobControl::new(tty);
    job.started(group);
    Ok(Running::new(group, plan, job, pipe, children))
}

/// Whether the system could not create any process, regardless of the command.
fn is_of_system(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory)
}
