//! Runs asynchronous work in a process that does nothing else.

use anyhow::{Context as _, Result};

/// The result of `work`.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")?;
    runtime.block_on(work)
}
