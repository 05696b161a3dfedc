//! The supervisor of a command, as seen by the process that starts it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, child_subreaper, getpid, kill_process,
    set_child_subreaper, waitid, waitpid,
};

use crate::linux::channel::{Channel, send_file};
use crate::linux::supervise;
use crate::{Command, StartError};

/// The pid of this process's supervisor: 0 if there is none, −1 while it is being started.
static SUPERVISOR: AtomicI32 = AtomicI32::new(0);

/// The supervisor, a child of this process. There is only one at a time.
///
/// Dropping this does not wait. The supervisor ends because the channel is closed.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pid: Option<Pid>,
    was_reaper: bool,
}

impl Supervisor {
    pub(crate) fn start(command: &Command) -> Result<(Self, Channel), StartError> {
        SUPERVISOR
            .compare_exchange(0, -1, Ordering::AcqRel, Ordering::Acquire)
            .map_err(|_| StartError::Busy)?;
        let mut supervisor = Self {
            pid: None,
            was_reaper: child_subreaper().is_ok_and(|reaper| reaper.is_some()),
        };
        let channel = supervisor.spawn(command).map_err(StartError::Supervisor)?;
        Ok((supervisor, channel))
    }

    fn spawn(&mut self, command: &Command) -> io::Result<Channel> {
        set_child_subreaper(Some(getpid()))?;
        let (ours, theirs) = UnixStream::pair()?;
        send_file(&ours, io::stdin().as_fd())?;
        let channel = Channel::new(ours)?;
        let mut supervisor = std::process::Command::new("/proc/self/exe");
        command.set_up(&mut supervisor)?;
        let child = supervisor
            .arg0(supervise::NAME)
            .arg(supervise::ARGUMENT)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        SUPERVISOR.store(pid.as_raw_pid(), Ordering::Release);
        self.pid = Some(pid);
        Ok(channel)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // The signal fails if the supervisor has ended. It was not waited for yet, so the pid is still
            // its own.
            let _result = kill_process(pid, signal);
        }
    }

    /// Continues the supervisor if somebody has stopped it. A stopped supervisor could not report what
    /// happened to its command, even if the limits are extended.
    pub(crate) fn keep_going(&self) {
        let stops = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if let Some(pid) = self.pid
            && let Ok(Some(_)) = waitid(WaitId::Pid(pid), stops)
        {
            self.signal(Signal::CONT);
        }
    }

    /// Whether it has ended. From then on, its pid may belong to another process.
    pub(crate) fn has_ended(&mut self) -> bool {
        if let Some(pid) = self.pid
            && !matches!(
                waitpid(Some(pid), WaitOptions::NOHANG),
                Ok(None) | Err(Errno::INTR)
            )
        {
            self.pid = None;
            SUPERVISOR.store(-1, Ordering::Release);
        }
        self.pid.is_none()
    }

    /// Whether `pid` is the supervisor, for which this process waits separately.
    pub(crate) fn is(pid: i32) -> bool {
        SUPERVISOR.load(Ordering::Acquire) == pid
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if !self.was_reaper {
            let _result = set_child_subreaper(None);
        }
        self.has_ended();
        SUPERVISOR.store(0, Ordering::Release);
    }
}
