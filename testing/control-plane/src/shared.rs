//! One control plane for a whole test binary.

use std::env;
use std::sync::OnceLock;

use crate::plane::ControlPlane;

/// The variable by which tests that need no real API server are run alone: those that have one and an
/// in-memory one run on the latter, and those that need a real one pass without being run.
pub const WITHOUT_KUBERNETES: &str = "TESTS_WITHOUT_KUBERNETES";

/// Whether [`WITHOUT_KUBERNETES`] is set.
#[must_use]
pub fn is_left_out() -> bool {
    env::var_os(WITHOUT_KUBERNETES).is_some_and(|value| !value.is_empty())
}

/// The control plane that all tests of this process share: started at the first call, with a
/// controller manager that leaves Nodes as they are, and ended by its janitor when the process ends. Tests keep apart by the
/// names of their nodes, namespaces and users.
///
/// # Panics
/// If it can't be started; every test then says why, and none tries again.
#[must_use]
pub fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    SHARED
        .get_or_init(|| {
            // This controller removes the taints of a node that it sees for the first time, and of all nodes while none is
            // ready. Then it taints only one node in ten seconds.
            let builder = ControlPlane::builder().controllers(&["*", "-node-lifecycle-controller"]);
            builder.start().map_err(|error| format!("{error:#}"))
        })
        .as_ref()
        .unwrap_or_else(|error| panic!("no control plane for this test: {error}"))
}
