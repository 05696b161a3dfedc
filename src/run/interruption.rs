//! Ctrl-C and the like, heard from the beginning of a command to its end.

use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, Shared};

use super::parallel::{LAST_CHANCE, interrupt};
use crate::error::Failure;
use crate::signals::asked_to_end;

/// Whether the process was asked to end: also between two things that it does, so that the second is not
/// begun.
pub(crate) struct Interruption(Shared<LocalBoxFuture<'static, ()>>);

impl Interruption {
    /// Listens from now on. A second request ends the process at once.
    pub(crate) fn listen() -> Self {
        let heard = tokio::spawn(interrupt());
        let heard = async move {
            // It never ends otherwise.
            let _ = heard.await;
        };
        Self(heard.boxed_local().shared())
    }

    /// Listens from now on, and to no second request: something may have to be undone.
    pub(crate) fn listen_once() -> Self {
        let heard = Self(asked_to_end().boxed_local().shared());
        // What is never polled hears nothing.
        heard.has_come();
        heard
    }

    /// Whether the process was asked to end.
    pub(crate) fn has_come(&self) -> bool {
        self.0.clone().now_or_never().is_some()
    }

    /// Completes where the process was asked to end.
    pub(crate) async fn came(&self) {
        self.0.clone().await;
    }

    /// Runs `work` up to that.
    ///
    /// # Errors
    /// Its own, and that it was interrupted.
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

    /// Runs `work` up to that and a moment longer, for a write that is under way.
    ///
    /// # Errors
    /// Its own, and that it was interrupted: it may take effect still.
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
