//! A command that this process could not start. On Linux, the supervisor starts commands instead.

use std::ffi::OsStr;
use std::io;

use crate::{Command, Exit, not_run};

/// Prints why the `program` of `command` was not run, and returns its exit.
pub(crate) fn exit(command: &Command, program: &OsStr, error: &io::Error) -> Exit {
    // If stderr is closed, the error can't be reported.
    let _result = match &command.output {
        Some(output) => not_run::report(&mut &**output, program, error),
        None => not_run::report(&mut io::stderr(), program, error),
    };
    Exit::Code(not_run::code(error))
}
