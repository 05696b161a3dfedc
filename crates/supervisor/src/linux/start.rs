//! Starts a command from the caller.

use crate::linux::job::Job;
use crate::linux::message::{Order, Start};
use crate::linux::process::check_proc;
use crate::linux::running::Running;
use crate::linux::supervisor::Supervisor;
use crate::unix::tty::Tty;
use crate::{Command, Limits, StartError};

/// Checks whether commands can be run here. Call it before you lock anything for a command.
///
/// # Errors
///
/// [`StartError::NoProc`] if the processes of a command could not be found.
pub fn check() -> Result<(), StartError> {
    check_proc().map_err(StartError::NoProc)
}

impl Command {
    /// Starts the command with `limits`. Needs a tokio runtime with I/O, of any kind.
    ///
    /// # Caveats
    ///
    /// Dropping the future leaves no processes behind. If the command was already started, its supervisor
    /// ends it, as when [`Running`] is dropped.
    ///
    /// # Errors
    ///
    /// [`StartError`] says what failed. In that case, no process of the command runs. A command that does not
    /// exist or can't be executed is no error here: it has the exit code 127 or 126. A supervisor that ends
    /// at once is no error either: it may have started the command, and [`Running`] ends the remaining
    /// processes.
    pub async fn start(self, limits: Limits) -> Result<Running, StartError> {
        if self.argv.is_empty() {
            return Err(StartError::NoCommand);
        }
        check()?;
        let mut tty = Tty::open();
        let foreground = tty.as_ref().is_some_and(Tty::is_ours)
            && Job::own().map_err(StartError::NoProc)?.is_alone();
        let (supervisor, mut channel) = Supervisor::start(&self)?;
        let grace = self.grace_in_micros();
        channel.send(&Order::Start(Start {
            argv: self.argv,
            limits,
            grace,
            foreground,
        }));
        if foreground && let Some(tty) = &mut tty {
            tty.given = true;
        }
        let mut running = Running::new(supervisor, channel, tty, limits, grace)
            .map_err(StartError::Supervisor)?;
        running.started().await?;
        Ok(running)
    }
}
