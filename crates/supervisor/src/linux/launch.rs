//! The last stage before the command: settings that only the process that becomes the command can make.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::signal::SigSet;
use rustix::process::{Signal, getpid, set_parent_process_death_signal};

use crate::linux::process::parent;
use crate::not_run::{self, NOT_EXECUTABLE};
use crate::unix::tty;

/// The hidden first argument that selects this stage.
pub(crate) const ARGUMENT: &str = "__exec";

/// The arguments of this stage. The command's arguments follow them.
pub(crate) fn arguments(foreground: bool) -> [OsString; 3] {
    [
        ARGUMENT.into(),
        getpid().as_raw_pid().to_string().into(),
        if foreground {
            "foreground"
        } else {
            "background"
        }
        .into(),
    ]
}

/// Becomes the command. Returns only if this fails.
pub(crate) fn launch(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let supervisor = arguments.next();
    let foreground = arguments.next().is_some_and(|place| place == "foreground");
    let Some(program) = arguments.next() else {
        return ExitCode::from(NOT_EXECUTABLE);
    };
    if let Err(error) = prepare(supervisor.as_ref(), foreground) {
        return failed(&program, &error, NOT_EXECUTABLE);
    }
    let error = Command::new(&program).args(arguments).exec();
    failed(&program, &error, not_run::code(&error))
}

fn prepare(supervisor: Option<&OsString>, foreground: bool) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if supervisor.is_none_or(|pid| *pid != *parent().to_string()) {
        return Err(io::Error::other("its supervisor has ended"));
    }
    SigSet::empty().thread_set_mask()?;
    if foreground {
        let terminal = File::open(tty::CONTROLLING)?;
        tty::set_foreground(&terminal, getpid())?;
    }
    Ok(())
}

fn failed(program: &OsString, error: &io::Error, code: u8) -> ExitCode {
    // If stderr is closed, the error can't be reported.
    let _result = not_run::report(&mut io::stderr(), program, error);
    ExitCode::from(code)
}
