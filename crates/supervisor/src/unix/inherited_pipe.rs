//! Detects processes that still run but cannot be found.

use std::io::{self, PipeReader, pipe};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, read};

/// The lowest file descriptor for the write end, because scripts use small descriptors themselves.
const LOWEST: i32 = 100;

/// The read end of a pipe. The command and all processes that it starts have the write end open, unless they
/// close it.
#[derive(Debug)]
pub(crate) struct InheritedPipe(PipeReader);

/// Locked while a command starts. Otherwise a second command would inherit this write end too.
static STARTING: Mutex<()> = Mutex::new(());

/// The write end. Processes that are started while it exists inherit it.
pub(crate) struct WriteEnd {
    _writer: OwnedFd,
    _starting: MutexGuard<'static, ()>,
}

impl InheritedPipe {
    pub(crate) fn new() -> io::Result<(Self, WriteEnd)> {
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, writer) = pipe()?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        // If the limit on open files is too low, any descriptor is used.
        let writer = fcntl_dupfd_cloexec(&writer, LOWEST).unwrap_or_else(|_| writer.into());
        fcntl_setfd(&writer, FdFlags::empty())?;
        let write_end = WriteEnd {
            _writer: writer,
            _starting: starting,
        };
        Ok((Self(reader), write_end))
    }

    /// Whether a process still has the write end open.
    pub(crate) fn has_writer(&self) -> bool {
        matches!(read(&self.0, &mut [0; 64]), Err(Errno::AGAIN) | Ok(1..))
    }
}
