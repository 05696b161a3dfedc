//! What scenarios are made of.

pub(crate) mod contender;
pub(crate) mod gate;
pub(crate) mod link;
pub(crate) mod plane;
pub(crate) mod processes;
pub(crate) mod scenario;

use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Longer than anything takes that a scenario waits for; then it fails.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Carries what goes between the contenders and the server.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});
