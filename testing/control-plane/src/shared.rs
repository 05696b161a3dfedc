//! One control plane for all tests of a binary.

use std::env;
use std::sync::OnceLock;

use crate::plane::ControlPlane;

/// The variable that leaves out tests that need a real API server. Tests that run on both servers then use only the
/// in-memory one. Tests that need a real one pass without being run.
pub const WITHOUT_KUBERNETES: &str = "TESTS_WITHOUT_KUBERNETES";

/// Whether [`WITHOUT_KUBERNETES`] is set.
#[must_use]
pub fn is_left_out() -> bool {
    env::var_os(WITHOUT_KUBERNETES).is_some_and(|value| !value.is_empty())
}

/// The control plane that all tests of this process share. It is started at the first call, with a controller manager
/// that does not change Nodes. The janitor ends it when the process ends. Tests use different names of nodes,
/// namespaces and users.
///
/// # Panics
/// If it can't be started. Every test then fails with this error, and none tries again.
#[must_use]
pub fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    SHARED
        .get_or_init(|| {
            // This controller removes the taints of a node that it sees for the first time, and of all nodes while none
            // is ready. Then it taints only one node in ten seconds.
            let builder = ControlPlane::builder().controllers(&["*", "-node-lifecycle-controller"]);
            builder.start().map_err(|error| format!("{error:#}"))
        })
        .as_ref()
        .unwrap_or_else(|error| panic!("no control plane for this test: {error}"))
}
