//! Ctrl-C and the like, heard from the beginning of a command to its end.

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use crate::commands::many::interrupt;
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
}
