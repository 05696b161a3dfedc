//! Counts the processes of a command that still run.

use std::io;
use std::sync::Arc;

use process_wrap::tokio::{CommandWrap, CommandWrapper};
use tokio::process::{Child, Command};
use win32job::Job;

/// A job object with the command and all processes that it starts. It contains the job object that kills
/// them, which does not report its processes.
#[derive(Debug, Clone)]
pub(crate) struct Processes(Arc<Job>);

impl Processes {
    /// Creates the job object of a command that is about to start.
    pub(crate) fn new() -> io::Result<Self> {
        Job::create()
            .map(Arc::new)
            .map(Self)
            .map_err(io::Error::other)
    }

    /// The number of running processes.
    pub(crate) fn count(&self) -> io::Result<usize> {
        let processes = self.0.query_process_id_list();
        processes.map(|ids| ids.len()).map_err(io::Error::other)
    }
}

impl CommandWrapper for Processes {
    /// Assigns the command while it is still suspended, because it also gets the other job object.
    fn post_spawn(
        &mut self,
        _command: &mut Command,
        child: &mut Child,
        _core: &CommandWrap,
    ) -> io::Result<()> {
        let handle = child.raw_handle().ok_or(io::ErrorKind::NotFound)?;
        let assigned = self.0.assign_process(handle.addr().cast_signed());
        assigned.map_err(io::Error::other)
    }
}
