//! Starts a command in a job object.

use std::io::{self, ErrorKind};

use boot_clock::now;
use process_wrap::tokio::{CommandWrap, JobObject, KillOnDrop};

use crate::windows::Running;
use crate::windows::processes::Processes;
use crate::{Command, Limits, StartError, find_program, not_started};

/// ERROR_BAD_EXE_FORMAT: the file is not a program. ERROR_EXE_MACHINE_TYPE_MISMATCH: it is for another
/// processor. ERROR_ELEVATION_REQUIRED: only an administrator may run it.
const NOT_EXECUTABLE: [i32; 3] = [193, 216, 740];

/// Whether the error is about this program, so that another program could be started.
fn is_of_program(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::InvalidInput,
    ];
    let code = error.raw_os_error();
    kinds.contains(&error.kind()) || code.is_some_and(|code| NOT_EXECUTABLE.contains(&code))
}

impl Command {
    /// Starts the command with `limits`. Needs a tokio runtime with time, of any kind.
    ///
    /// # Errors
    ///
    /// [`StartError`] says what failed. In that case, no process of the command runs. A command that does not
    /// exist or can't be executed is no error here: it has the exit code 127 or 126.
    pub async fn start(self, limits: Limits) -> Result<Running, StartError> {
        let (program, arguments) = self.argv.split_first().ok_or(StartError::NoCommand)?;
        let mut process = std::process::Command::new(find_program(program));
        process.args(arguments);
        self.set_up(&mut process).map_err(StartError::Spawn)?;
        if now() >= limits.term_at.min(limits.kill_at) {
            return Err(StartError::TooLate);
        }
        let processes = Processes::new().map_err(StartError::Spawn)?;
        let job = CommandWrap::from(tokio::process::Command::from(process))
            .wrap(KillOnDrop)
            .wrap(processes.clone())
            .wrap(JobObject)
            .spawn();
        match job {
            Ok(job) => Ok(Running::new(job, processes, limits)),
            Err(error) if !is_of_program(&error) => Err(StartError::Spawn(error)),
            Err(error) => Ok(Running::not_run(not_started::exit(&self, program, &error))),
        }
    }
}
