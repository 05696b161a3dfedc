//! Heartbeats of a node that has no kubelet.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use control_plane::ControlPlane;

/// The time between heartbeats.
const PERIOD: Duration = Duration::from_secs(1);

/// Renews the heartbeat of a node until it is dropped.
pub(crate) struct Heart {
    life: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    /// Starts the heartbeats. The first one has been sent when this returns.
    pub(crate) fn of(node: &str, plane: &'static ControlPlane) -> Self {
        plane.heartbeat(&[node]).expect("a heartbeat");
        let node = node.to_owned();
        let (life, dropped) = channel();
        let thread = thread::spawn(move || {
            while dropped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                // A failed heartbeat is retried in the next round, as kubelets do.
                let _next_round = plane.heartbeat(&[&node]);
            }
        });
        Self {
            life: Some(life),
            thread: Some(thread),
        }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.life = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
