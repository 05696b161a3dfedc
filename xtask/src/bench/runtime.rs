//! Runs async code in a process without other work.

use anyhow::{Context as _, Result};

/// Runs `work` to completion.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")?;
    runtime.block_on(work)
}
