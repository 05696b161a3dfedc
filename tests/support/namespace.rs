//! The namespace of the locks, which the plugin creates only on request.

use std::sync::Once;

use control_plane::{ControlPlane, shared};

static CREATED: Once = Once::new();

/// The control plane of this test binary, with the namespace of the locks.
pub(crate) fn shared_with_namespace() -> &'static ControlPlane {
    let plane = shared();
    CREATED.call_once(|| {
        let create = ["create", "namespace", "kube-node-maintenance"];
        // Another test may apply the namespace from `deploy/` at the same time.
        if let Err(error) = plane.kubectl(&create) {
            assert!(format!("{error:#}").contains("AlreadyExists"), "{error:#}");
        }
    });
    plane
}
