//! The course of the command, in words.

use under_lease::News;

use crate::report::loss;
use crate::session::Session;

/// Tells what a person has to know of it.
pub(super) fn tell(session: &Session<'_>, news: News<'_>) {
    let terminal = session.terminal;
    match news {
        News::Lost(lost, stage) => {
            let now = session.locks.server_time().now();
            let caller = session.locks.identity();
            let (message, hint) = loss::lines(lost, caller, stage, now, session.program);
            terminal.error(&message);
            terminal.hint(hint);
        }
        News::StandsStill => terminal.warn(
            "time may have passed unnoticed, as in a machine that was paused: the command stands \
             still until its lock was checked",
        ),
        News::GoesOn => terminal.remark("the lock is still held: the command goes on"),
        News::Left(processes) => terminal.remark(loss::left(processes)),
        News::SupervisorLost => {
            terminal.warn("the command's supervisor was killed or stopped: everything is ended");
        }
        News::Unfollowed(error) => {
            terminal.error(&format!("the command can't be followed: {error}"));
        }
        News::Stands(_) | News::Exited(_) => {}
    }
}
