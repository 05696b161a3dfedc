//! What the kernel knows about this process's children, including those that `/proc` doesn't show:
//! mounted with `hidepid`, it hides processes with other rights, such as those of `sudo`.

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// The children as a wait would find them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    None,
    /// There are some, and none has ended.
    Alive,
    /// There are some, and this one has ended.
    Ended(Pid),
}

impl Children {
    /// The present children. It takes no exit status away from code that waits for it.
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
