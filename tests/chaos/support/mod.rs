//! The parts of scenarios: contenders, proxies, processes, and the control plane.

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

/// Longer than anything that a scenario waits for. The order of the contenders is random, so a contender may wait for
/// some fifty others.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(240);

/// Runs the proxies between the contenders and the server.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});
