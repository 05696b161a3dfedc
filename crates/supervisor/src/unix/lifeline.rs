//! Notices processes that are still running although they can't be found.

use std::io::{self, PipeReader, pipe};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, read};

/// The lowest number of the file in the command: scripts use small ones for their own files.
const LOWEST: i32 = 100;

/// The reading end of a pipe, whose other end the command and everything that it starts have open, unless they close
/// it.
#[derive(Debug)]
pub(crate) struct Lifeline(PipeReader);

/// Only one command is started at a time: another one would get this end, too.
static STARTING: Mutex<()> = Mutex::new(());

/// The other end, for the processes that are started while it exists.
pub(crate) struct OtherEnd {
    _writer: OwnedFd,
    _starting: MutexGuard<'static, ()>,
}

impl Lifeline {
    pub(crate) fn new() -> io::Result<(Self, OtherEnd)> {
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, writer) = pipe()?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        // A low limit of open files is no reason to fail.
        let writer = fcntl_dupfd_cloexec(&writer, LOWEST).unwrap_or_else(|_| writer.into());
        fcntl_setfd(&writer, FdFlags::empty())?;
        let other_end = OtherEnd {
            _writer: writer,
            _starting: starting,
        };
        Ok((Self(reader), other_end))
    }

    /// Whether some process still has the other end.
    pub(crate) fn is_held(&self) -> bool {
        matches!(read(&self.0, &mut [0; 64]), Err(Errno::AGAIN) | Ok(1..))
    }
}
