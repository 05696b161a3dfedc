//! The first process of a container adopts every orphan there.

use std::convert::Infallible;
use std::io;

use rustix::process::getpid;
use tokio::signal::unix::{SignalKind, signal};

use crate::linux::cleanup::reap_adopted;

/// Reaps the orphans that come to this process where it is the first of a container (process 1), so
/// that they don't stay behind as zombies; else it has nothing to do. To be run beside everything
/// else: it never ends.
///
/// Children that this process started itself are left to those who wait for them: they share its
/// process group. Dropping the future ends the reaping.
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
