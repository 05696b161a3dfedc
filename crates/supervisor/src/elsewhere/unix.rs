//! The process group of a command on macOS.

use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::io::Errno;
use rustix::process::{
    Pid, WaitId, WaitIdOptions, getpgid, getpgrp, getppid, getsid, test_kill_process_group, waitid,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::unix::job_control::JobControl;
use crate::unix::tty::Tty;
use crate::{Event, Exit, Signal};

/// A command with all processes in its process group. A process that has left the group is not found.
#[derive(Debug)]
pub(crate) struct Processes {
    group: Box<dyn ChildWrapper>,
    /// The process id of the command, which is also the number of its group.
    id: Pid,
    children: tokio::signal::unix::Signal,
    job: JobControl,
}

impl Processes {
    pub(crate) fn start(command: std::process::Command) -> io::Result<Self> {
        let children = signal(SignalKind::child())?;
        let group = CommandWrap::from(tokio::process::Command::from(command))
            .wrap(ProcessGroup::leader())
            .spawn()?;
        let id = group.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or(ErrorKind::NotFound)?;
        // Whether this process is part of a pipeline is unknown. So the command gets the terminal only when it
        // first uses it.
        let mut job = JobControl::new(Tty::open());
        job.started(id);
        Ok(Self {
            group,
            id,
            children,
            job,
        })
    }

    /// The command's process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        Some(self.id.as_raw_pid().unsigned_abs())
    }

    /// Waits until the command itself stops or ends. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Event> {
        loop {
            tokio::select! {
                biased;
                status = self.group.inner_mut().wait() => {
                    let exit = exit(status?);
                    self.job.ended(Some(exit));
                    return Ok(Event::Exited(exit));
                }
                _child = self.children.recv() => {}
            }
            let stops = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
            // This fails if the command has ended in the meantime.
            if let Ok(Some(status)) = waitid(WaitId::Pid(self.id), stops)
                && let Some(signal) = status.stopping_signal()
            {
                if self.job.stopped(Signal(signal)) {
                    return Ok(Event::Stopped(Signal(signal)));
                }
                self.signal(Signal::CONT);
            }
        }
    }

    /// Asks all processes to end. A stopped process must continue to receive this.
    pub(crate) fn ask(&mut self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    pub(crate) fn kill(&mut self) {
        self.send(Signal::KILL);
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.job.forwards(signal);
        self.send(signal);
    }

    fn send(&self, Signal(number): Signal) {
        // If this fails, the processes do not end, which is noticed later.
        let _result = self.group.signal(number);
    }

    /// 0 if no process is left in the group, otherwise 1, because they can't be counted.
    pub(crate) fn left(&self) -> usize {
        usize::from(test_kill_process_group(self.id) != Err(Errno::SRCH))
    }

    /// Stops this process together with the command, as [`JobControl::suspend`].
    pub(crate) fn suspend(&mut self, announce: impl FnOnce()) -> (bool, bool) {
        self.job.suspend(is_controlled, announce)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Another group may have the number of an empty one.
        if self.left() > 0 {
            self.kill();
        }
        self.job.ended(None);
    }
}

/// Whether a shell could continue this process after a stop. This is true if its parent is in the same session
/// but in another group.
fn is_controlled() -> bool {
    let Some(parent) = getppid() else {
        return false;
    };
    getsid(Some(parent)) == getsid(None)
        && getpgid(Some(parent)).is_ok_and(|group| group != getpgrp())
}

fn exit(status: ExitStatus) -> Exit {
    match status.signal() {
        Some(signal) => Exit::Signal(Signal(signal)),
        None => Exit::Code(u8::try_from(status.code().unwrap_or(1)).unwrap_or(u8::MAX)),
    }
}

/// Whether the error is about this program, so that another program could be started.
pub(crate) fn is_of_program(error: &io::Error) -> bool {
    !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory)
}
