//! Work beside the command that may end after it, such as the Events about a wait: best effort, within a short time
//! limit.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

/// The time limit for Events after the outcome was printed, and for other work that goes on after the command.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

static TASKS: LazyLock<Mutex<JoinSet<()>>> = LazyLock::new(Mutex::default);

/// Begins `work`.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    tasks.spawn(work);
}

/// Waits for the end of all of it.
pub(super) async fn ended() {
    let mut tasks = std::mem::take(&mut *TASKS.lock().unwrap_or_else(PoisonError::into_inner));
    let all = async { while tasks.join_next().await.is_some() {} };
    // What takes longer is dropped.
    let _ = timeout(LIMIT, all).await;
}
