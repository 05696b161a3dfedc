//! Reaps orphans: process 1 of a container adopts all of them.

use std::convert::Infallible;
use std::io;

use rustix::process::getpid;
use tokio::signal::unix::{SignalKind, signal};

use crate::linux::cleanup::reap_adopted;

/// Reaps the orphans that this process adopts, so that they do not stay as zombies. This is only needed for
/// process 1 of a container; otherwise it does nothing. Run it in parallel with everything else, because it
/// never returns.
///
/// Children that this process started itself share its process group. They are left to the code that waits
/// for them. Dropping the future stops the reaping.
///
/// # Errors
///
/// If SIGCHLD can't be listened to.
pub async fn reap_orphans() -> io::Result<Infallible> {
    if getpid().as_raw_pid() != 1 {
        return std::future::pending().await;
    }
    let mut children = signal(SignalKind::child())?;
    loop {
        reap_adopted(None);
        children.recv().await;
    }
}
