//! Ctrl-C and the like, heard from the beginning of a command to its end.

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use crate::commands::many::{LAST_CHANCE, interrupt};
use crate::failure::Failure;

/// Whether the process was asked to end: also between two things that it does, so that the second is not
/// begun. A second request ends the process at once.
#[derive(Clone)]
pub(super) struct Ended(Shared<BoxFuture<'static, ()>>);

impl Ended {
    /// Listens from now on.
    pub(super) fn listen() -> Self {
        let heard = tokio::spawn(interrupt());
        let heard = async move {
            // It never ends otherwise.
            let _ = heard.await;
        };
        Self(heard.boxed().shared())
    }

    /// Whether the process was asked to end.
    pub(super) fn is_due(&self) -> bool {
        self.came().now_or_never().is_some()
    }

    /// Completes where the process was asked to end.
    pub(super) async fn came(&self) {
        self.0.clone().await;
    }

    /// Runs `work` up to that.
    ///
    /// # Errors
    /// Its own, and that it was interrupted.
    pub(super) async fn or<T>(
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
    pub(super) async fn or_soon<T>(
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
