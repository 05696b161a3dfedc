//! Reaps orphans: the first process of a container adopts all of them.

use std::convert::Infallible;
use std::io;

use rustix::process::getpid;
use tokio::signal::unix::{SignalKind, signal};

use crate::linux::cleanup::reap_adopted;

/// Reaps the orphans that this process adopts if it is the first of a container (process 1), to leave no
/// zombies. Otherwise it has nothing to do. Run it in parallel with everything else: it never ends.
///
/// Children that this process started itself are left to the code that waits for them: they share its process
/// group. Dropping the future ends the reaping.
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
