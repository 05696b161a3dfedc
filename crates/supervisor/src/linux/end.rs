//! Ends this process by a signal that it has caught.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::signal::{SigSet, Signal as Number, raise};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{Exit, Signal};

/// The hidden first argument that makes a process end by a signal.
pub(crate) const ARGUMENT: &str = "__end";

/// Ends this process by `signal`, even if it has caught the signal so far. A shell shows the same code for
/// this as for an exit with 128 plus the number. But a script or loop that is interrupted by Ctrl-C continues
/// unless it sees that its command died of SIGINT.
///
/// No destructors run. Returns only if it fails, with the reason.
pub fn end_by(Signal(number): Signal) -> io::Error {
    Command::new("/proc/self/exe")
        .args([ARGUMENT, &number.to_string()])
        .exec()
}

/// Ends this process by the signal, which has its default effect again after `exec`.
pub(crate) fn end(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let number = arguments
        .next()
        .and_then(|word| word.to_str()?.parse().ok())
        .unwrap_or_default();
    // A core dump would contain nothing useful.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _result = setrlimit(Resource::Core, none);
    let _result = SigSet::empty().thread_set_mask();
    if let Ok(signal) = Number::try_from(number) {
        let _result = raise(signal);
    }
    // The signal was ignored when the process was started.
    ExitCode::from(Exit::Signal(Signal(number)).code())
}
