//! The job object of a command on Windows, and the events of the console.

use std::io::{self, ErrorKind};
use std::process::ExitStatus;
use std::sync::Arc;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CommandWrapper, JobObject, KillOnDrop};
use tokio::process::{Child, Command};
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};
use win32job::Job;

use crate::{Event, Exit, Signal};

/// The exit code of a program that was ended by Ctrl-C: `STATUS_CONTROL_C_EXIT`.
const CONTROL_C_EXIT: u32 = 0xC000_013A;

/// ERROR_BAD_EXE_FORMAT: the file is not a program. ERROR_EXE_MACHINE_TYPE_MISMATCH: it is for another
/// processor. ERROR_ELEVATION_REQUIRED: only an administrator may run it.
const NOT_EXECUTABLE: [i32; 3] = [193, 216, 740];

/// A command with all processes that it starts. No process can leave the job object.
#[derive(Debug)]
pub(crate) struct Processes {
    job: Box<dyn ChildWrapper>,
    counted: CountedJob,
}

impl Processes {
    pub(crate) fn start(command: std::process::Command) -> io::Result<Self> {
        let counted = CountedJob(Arc::new(Job::create().map_err(io::Error::other)?));
        let job = CommandWrap::from(Command::from(command))
            .wrap(KillOnDrop)
            .wrap(counted.clone())
            .wrap(JobObject)
            .spawn()?;
        Ok(Self { job, counted })
    }

    /// The command's process id; `None` if it has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.job.id()
    }

    /// Waits until the command itself ends. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Event> {
        let status = self.job.inner_mut().wait().await?;
        Ok(Event::Exited(exit(status)))
    }

    /// Kills all processes: Windows cannot ask them to end.
    pub(crate) fn ask(&mut self) {
        self.kill();
    }

    pub(crate) fn kill(&mut self) {
        // If this fails, the processes do not end, which is noticed later.
        let _result = self.job.start_kill();
    }

    /// Does nothing: the command receives the events of the console itself.
    pub(crate) fn signal(&mut self, _: Signal) {}

    /// The number of running processes. If it is unknown, it counts as one.
    pub(crate) fn left(&self) -> usize {
        self.counted
            .0
            .query_process_id_list()
            .map_or(1, |ids| ids.len())
    }

    /// Does nothing: Windows has no stopped jobs.
    pub(crate) fn suspend(&mut self, _: impl FnOnce()) -> (bool, bool) {
        (false, false)
    }
}

/// A second job object with the same processes. The one that kills them does not report how many there are.
#[derive(Debug, Clone)]
struct CountedJob(Arc<Job>);

impl CommandWrapper for CountedJob {
    /// Assigns the command while it is still suspended, because it also gets the other job object.
    fn post_spawn(
        &mut self,
        _: &mut Command,
        child: &mut Child,
        _: &CommandWrap,
    ) -> io::Result<()> {
        let handle = child.raw_handle().ok_or(ErrorKind::NotFound)?;
        let assigned = self.0.assign_process(handle.addr().cast_signed());
        assigned.map_err(io::Error::other)
    }
}

fn exit(status: ExitStatus) -> Exit {
    match status.code().unwrap_or(1).cast_unsigned() {
        CONTROL_C_EXIT => Exit::Signal(Signal::INT),
        code => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Whether the error is about this program, so that another program could be started.
pub(crate) fn is_of_program(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::InvalidInput,
    ];
    let code = error.raw_os_error();
    kinds.contains(&error.kind()) || code.is_some_and(|code| NOT_EXECUTABLE.contains(&code))
}

/// The events of the console: Ctrl-C (INT), Ctrl-Break (QUIT), closing the window (HUP), and the shutdown of
/// Windows (TERM).
///
/// The command receives them from the console itself. While a `Signals` exists, Ctrl-C and Ctrl-Break do not
/// end this process.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    quit: CtrlBreak,
    hang_up: CtrlClose,
    terminate: CtrlShutdown,
}

impl Signals {
    /// Starts to listen. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// If Windows refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            quit: ctrl_break()?,
            hang_up: ctrl_close()?,
            terminate: ctrl_shutdown()?,
        })
    }

    /// The next signal. Dropping the future loses no signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::INT,
            Some(()) = self.quit.recv() => Signal::QUIT,
            Some(()) = self.hang_up.recv() => Signal::HUP,
            Some(()) = self.terminate.recv() => Signal::TERM,
            else => std::future::pending().await,
        }
    }
}

/// Completes at Ctrl-C or Ctrl-Break, if the console is closed, or if Windows shuts down.
pub async fn termination() {
    match Signals::new() {
        Ok(mut signals) => drop(signals.next().await),
        Err(_) => std::future::pending().await,
    }
}

/// Windows has no signal numbers. Exit codes use those of Linux.
pub(crate) mod signal_numbers {
    pub(crate) const HUP: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const QUIT: i32 = 3;
    pub(crate) const KILL: i32 = 9;
    pub(crate) const USR1: i32 = 10;
    pub(crate) const USR2: i32 = 12;
    pub(crate) const TERM: i32 = 15;
    pub(crate) const CONT: i32 = 18;
    pub(crate) const STOP: i32 = 19;
    pub(crate) const TSTP: i32 = 20;
    pub(crate) const TTIN: i32 = 21;
    pub(crate) const TTOU: i32 = 22;
}
