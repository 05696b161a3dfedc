//! The children of this process as the kernel knows them. This includes children that `/proc` does not show:
//! with `hidepid`, it hides processes with other rights, such as those of `sudo`.

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use rustix::process;

use crate::{Exit, Signal};

/// The children as `waitid` reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    None,
    /// There are children, and none of them has ended.
    Alive,
    /// There are children, and this one has ended.
    Ended(Pid),
}

impl Children {
    /// The current children. Does not consume an exit status that other code waits for.
    pub(crate) fn now() -> Self {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::All, look) {
                Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => {
                    return Self::Ended(pid);
                }
                Err(Errno::ECHILD) => return Self::None,
                Err(Errno::EINTR) => {}
                Ok(_) | Err(_) => return Self::Alive,
            }
        }
    }
}

impl Exit {
    /// How the child ended.
    pub(crate) fn of(status: process::WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signal(Signal(signal)),
            None => {
                let code = status.exit_status().unwrap_or_default();
                Self::Code(u8::try_from(code).unwrap_or(u8::MAX))
            }
        }
    }
}
