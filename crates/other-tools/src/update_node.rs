//! What a lock does on its Node after it was acquired or renewed, if it protects nothing anew.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{Change, Done, HeldLease, NodeLease, PROTECTION};

use crate::apply::KeysRemoved;
use crate::node_keys::{HELD, NodeKeys};
use crate::protection_writer::{ProtectionWriter, may_have_keys};
use crate::write_error::WriteError;

/// The result of [`ProtectionWriter::update_node`].
#[derive(Debug)]
pub enum NodeUpdate {
    /// There is nothing to report.
    Done,
    /// The label still shows the earlier end of the lock.
    EndNotMoved(WriteError),
    /// What earlier locks had set was removed. The node may be schedulable again.
    EarlierRemoved(NodeKeys),
    /// What earlier locks had set stays.
    EarlierStays(WriteError),
}

impl ProtectionWriter<'_> {
    /// Updates the Node of a lock that was acquired or renewed and protects nothing anew. If a lock with a label was renewed,
    /// moves the end that the label shows. Otherwise, removes what earlier locks left behind: their end may have failed to
    /// remove it, or there was none because the Lease was deleted. Then only the Node shows it.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What it was writing may still be written.
    pub async fn update_node(&self, change: &Change) -> NodeUpdate {
        let renewed = change.lease.as_ref();
        let renewed = renewed.filter(|_| change.done == Done::Renewed);
        if let Some(lease) = renewed.filter(|lease| lease.purpose() == Some(PROTECTION)) {
            return match self.move_end(lease).await {
                Ok(()) => NodeUpdate::Done,
                Err(error) => NodeUpdate::EndNotMoved(error),
            };
        }
        let before = change
            .before
            .as_ref()
            .filter(|before| may_have_keys(before));
        let row = change.row.as_ref();
        let is_labeled = row.is_some_and(|row| row.labels.contains_key(HELD));
        if before.is_none() && !is_labeled {
            return NodeUpdate::Done;
        }
        match self.unprotect(&change.node, before).await {
            Ok(KeysRemoved::Done(keys)) => NodeUpdate::EarlierRemoved(keys),
            Ok(KeysRemoved::Nothing | KeysRemoved::WithoutLockId | KeysRemoved::StillHeld) => {
                NodeUpdate::Done
            }
            Err(error) => NodeUpdate::EarlierStays(error.into()),
        }
    }

    /// Moves the end in the held label of a lock whenever it is renewed, until it is lost. Failures are passed to `report`.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What it was writing may still be written.
    pub async fn follow_end(&self, held: &HeldLease, report: &dyn Fn(&str, WriteError)) {
        let mut state = held.held_state();
        while state.lost.is_none() && state.lease.purpose() == Some(PROTECTION) {
            let before = state.lease.end();
            state = held.changed(&state).await;
            if state.lost.is_none()
                && state.lease.end() > before
                && let Err(error) = self.move_end(&state.lease).await
            {
                report(state.lease.node(), error);
            }
        }
    }

    /// Moves the end in the held label of the lock in `lease`, which was renewed.
    async fn move_end(&self, lease: &NodeLease) -> Result<(), WriteError> {
        let opt_outs = |on: &Node, id: &str| NodeKeys::opt_outs_of(id, on);
        self.write_keys(lease, opt_outs).await.map(drop)
    }
}
