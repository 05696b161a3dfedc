//! How a caller starts a command.

use crate::linux::job::Job;
use crate::linux::message::{Order, Start};
use crate::linux::process::check_proc;
use crate::linux::running::Running;
use crate::linux::supervisor::Supervisor;
use crate::tty::Tty;
use crate::{Command, Limits, StartError, Terminal};

/// Whether commands can be run here. Check this before anything is locked for one.
///
/// # Errors
///
/// [`StartError::NoProc`]: the processes of a command could not be found.
pub fn check() -> Result<(), StartError> {
    check_proc().map_err(StartError::NoProc)
}

impl Command {
    /// Starts the command with `limits`. Needs a tokio runtime with I/O, of any kind.
    ///
    /// # Caveats
    ///
    /// Dropping the future leaves nothing behind: if the command was started already, its supervisor ends
    /// it, as it does when [`Running`] is dropped.
    ///
    /// # Errors
    ///
    /// [`StartError`] says what failed; nothing of the command runs then. A command that does not exist or
    /// can't be executed is not an error here: the command then has the exit code 127 or 126. Neither is a
    /// supervisor that ends at once: it may have started the command, and [`Running`] ends what it left.
    pub async fn start(self, limits: Limits) -> Result<Running, StartError> {
        if self.argv.is_empty() {
            return Err(StartError::NoCommand);
        }
        check()?;
        let mut tty = (self.terminal == Terminal::Auto).then(Tty::open).flatten();
        let foreground = tty.as_ref().is_some_and(Tty::is_ours)
            && Job::own().map_err(StartError::NoProc)?.is_alone();
        let (supervisor, mut channel) = Supervisor::start(&self)?;
        let grace = i64::try_from(self.grace.as_micros()).unwrap_or(i64::MAX);
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
