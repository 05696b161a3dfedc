//! The implementation for Linux.

mod alarm;
mod channel;
mod children;
mod cleanup;
mod command_processes;
mod freeze;
mod job;
mod launch;
mod message;
mod orphans;
mod process;
mod running;
mod start;
mod supervise;
mod supervisor;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::Exit;

pub use orphans::reap_orphans;
pub use running::Running;
pub use start::check;
pub use tree::kill_tree;

/// If the first argument says so, makes this process a supervisor or a command. Otherwise returns `None`, and
/// the program continues. Call it first in `main`, with all arguments.
///
/// The first arguments `__supervise` and `__exec` are reserved for this. Users never type them: only
/// [`Command::start`](crate::Command::start) passes them.
pub fn entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    let first = arguments.next()?;
    if first == launch::ARGUMENT {
        return Some(launch::launch(arguments));
    }
    if first != supervise::ARGUMENT {
        return None;
    }
    Some(match supervise::supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the error can't be reported.
            let _result = writeln!(
                io::stderr(),
                "error: a command's supervisor failed: {error}"
            );
            ExitCode::from(Exit::OF_WRAPPER)
        }
    })
}
