//! What scenarios are made of.

pub(crate) mod contender;
pub(crate) mod processes;
pub(crate) mod scenario;
pub(crate) mod shared_cluster;
pub(crate) mod tcp_proxy;
#[path = "../../support/tls.rs"]
mod tls;
pub(crate) mod tls_proxy;

use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Longer than anything takes that a scenario waits for; then it fails. Whose turn it is, is drawn by lot: some
/// fifty others may come first.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(240);

/// Carries what goes between the contenders and the server.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});
