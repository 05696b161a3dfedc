//! Ctrl-C and similar signals, noticed from the start of a command to its end.

use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, Shared};

use super::parallel::{LAST_CHANCE, interrupt};
use crate::error::Failure;
use crate::signals::asked_to_end;

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
        let heard = Self(asked_to_end().boxed_local().shared());
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

    /// Runs `work` until an interruption.
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
    pub(crate) async fn or_soon<T>(
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
