//! The control plane of this test binary. Most scenarios share it and run in parallel. Scenarios
//! with an outage use it alone.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use control_plane::ControlPlane;

use crate::namespace::shared_with_namespace;

static UP: RwLock<()> = RwLock::new(());

/// The right to use the control plane.
pub(crate) struct Access {
    _guard: Guard,
}

#[expect(dead_code, reason = "they are there to be dropped")]
enum Guard {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Access {
    /// No scenario stops the control plane at the same time.
    pub(crate) fn shared() -> Self {
        let guard = UP.read().unwrap_or_else(PoisonError::into_inner);
        Self {
            _guard: Guard::Shared(guard),
        }
    }

    /// No other scenario uses the control plane at the same time. A scenario that fails restarts
    /// it: see [`Outage`].
    pub(crate) fn alone() -> Self {
        let guard = UP.write().unwrap_or_else(PoisonError::into_inner);
        Self {
            _guard: Guard::Alone(guard),
        }
    }

    pub(crate) fn plane(&self) -> &'static ControlPlane {
        shared_with_namespace()
    }
}

/// A part of the control plane that is down. It is restarted when this is dropped.
pub(crate) enum Outage {
    ApiServerKilled(&'static ControlPlane),
    EtcdStopped(&'static ControlPlane),
}

impl Outage {
    pub(crate) fn api_server_killed(plane: &'static ControlPlane) -> Self {
        plane.api_server().kill().expect("it runs");
        Self::ApiServerKilled(plane)
    }

    pub(crate) fn etcd_stopped(plane: &'static ControlPlane) -> Self {
        plane.etcd().stop().expect("it runs");
        Self::EtcdStopped(plane)
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        let up = match self {
            Self::ApiServerKilled(plane) => plane.api_server().restart(),
            Self::EtcdStopped(plane) => plane
                .etcd()
                .cont()
                .and_then(|()| plane.api_server().await_ready()),
        };
        // A scenario that already panics must not panic again.
        if !std::thread::panicking() {
            up.expect("it comes up again");
        }
    }
}
