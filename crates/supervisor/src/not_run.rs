//! Exit code and error message of a command that cannot be run, as in a shell.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};

/// The exit code if the command does not exist.
const NOT_FOUND: u8 = 127;
/// The exit code if the command can't be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;

/// The exit code of a command that was not run because of `error`.
pub(crate) fn code(error: &io::Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}

/// Prints why `program` was not run.
pub(crate) fn report(into: &mut impl Write, program: &OsStr, error: &io::Error) -> io::Result<()> {
    let error = error.to_string().to_lowercase();
    let error = error.split(" (os error").next().unwrap_or_default();
    writeln!(into, "error: failed to run {program:?}: {error}")
}
