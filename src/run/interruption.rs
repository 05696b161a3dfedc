//! Ctrl-C, and the other signals that ask this process to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, Shared};
use supervisor::termination;
use tokio::sync::Notify;

use super::background;
use crate::error::Failure;
use crate::exit::Code;

/// How long work in progress may still take after Ctrl-C.
pub(crate) const LAST_CHANCE: Duration = Duration::from_secs(2);

/// Notified if the command must be dropped, with everything that it started.
static LEAVING: Notify = Notify::const_new();

/// Nothing is left to report or to undo.
static IS_RESULT_PRINTED: AtomicBool = AtomicBool::new(false);

/// Runs `command` to its end, or until a second Ctrl-C. After [`exit_at_interrupt`], the first one ends it.
///
/// # Errors
/// Those of the command, and a Ctrl-C that ended it.
pub(crate) fn run(command: impl Future<Output = Result<Code, Failure>>) -> Result<Code, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start")?;
    let command = async {
        let result = command.await;
        background::ended().await;
        result
    };
    let result = runtime.block_on(async {
        tokio::select! {
            biased;
            result = command => result,
            () = LEAVING.notified() => Err(match IS_RESULT_PRINTED.load(Ordering::Relaxed) {
                true => Failure::InterruptedAfterResult,
                false => Failure::InterruptedAgain,
            }),
        }
    });
    // Don't wait for a pending name lookup. A running credential plugin is ended.
    runtime.shutdown_background();
    result
}

/// Completes when the process is asked to end. A second signal ends the process at once.
pub(crate) async fn interrupt() {
    termination().await;
    leave_at_interrupt();
}

/// From now on Ctrl-C ends the process at once, because nothing is left to report or undo.
pub(crate) fn exit_at_interrupt() {
    IS_RESULT_PRINTED.store(true, Ordering::Relaxed);
    leave_at_interrupt();
}

fn leave_at_interrupt() {
    tokio::spawn(async {
        termination().await;
        LEAVING.notify_one();
    });
}

/// Runs work that only reads, and ends it after `limit`.
///
/// # Errors
/// Those of the work, and the end of its time.
pub(crate) async fn in_time<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(limit) = limit else {
        return work.await;
    };
    let result = tokio::time::timeout(limit, work).await;
    result.unwrap_or(Err(Failure::Unanswered { waited: limit }))
}

/// Runs work that only reads. Ctrl-C ends it at once.
///
/// # Errors
/// Those of the work, and an interruption.
pub(crate) async fn or_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        result = work => result,
        () = interrupt() => Err(Failure::Interrupted),
    }
}

/// Whether the process was asked to end. It also notices a signal between two steps, to not start the
/// second.
pub(crate) struct Interruption(Shared<LocalBoxFuture<'static, ()>>);

impl Interruption {
    /// Listens from now on. A second signal ends the process at once.
    pub(crate) fn listen() -> Self {
        let heard = tokio::spawn(interrupt());
        let heard = async move {
            // This only completes at a signal.
            let _ = heard.await;
        };
        Self(heard.boxed_local().shared())
    }

    /// Listens from now on and ignores a second signal, because something may have to be undone.
    pub(crate) fn listen_once() -> Self {
        let heard = Self(termination().boxed_local().shared());
        // The signal handler is installed by the first poll.
        heard.has_come();
        heard
    }

    /// Whether the process was asked to end.
    pub(crate) fn has_come(&self) -> bool {
        self.0.clone().now_or_never().is_some()
    }

    /// Completes when the process was asked to end.
    pub(crate) async fn came(&self) {
        self.0.clone().await;
    }

    /// Runs `work` until an interruption. Work that is done counts, also if the interruption came in the same moment.
    ///
    /// # Errors
    /// Those of the work, and an interruption.
    pub(crate) async fn or<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.came() => Err(Failure::Interrupted),
        }
    }

    /// Runs `work` until a moment after an interruption, for a write that is under way.
    ///
    /// # Errors
    /// Those of the work, and an interruption: then it may still take effect.
    pub(crate) async fn with_grace<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let last_chance = async {
            self.came().await;
            tokio::time::sleep(LAST_CHANCE).await;
        };
        tokio::select! {
            biased;
            result = work => result,
            () = last_chance => Err(Failure::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn came() -> Interruption {
        Interruption(ready(()).boxed_local().shared())
    }

    #[tokio::test]
    async fn work_that_is_done_counts_in_spite_of_an_interruption() {
        let done = came().or(ready(Ok(1))).await;
        assert!(matches!(done, Ok(1)), "{done:?}");
        let dropped = came().or(pending::<Result<(), _>>()).await;
        assert!(matches!(dropped, Err(Failure::Interrupted)), "{dropped:?}");
    }
}
