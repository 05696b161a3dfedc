//! The clients of a world, of several kinds.

mod admin;
mod agent;
mod collector;
mod earlier_locks;
mod outside_writes;
mod runner;
mod waiter;
mod worker;

use self::agent::acquisition;
pub(crate) use self::agent::{Agent, AgentConfig};
pub(crate) use self::outside_writes::{OutsideWrites, bare_node};
use crate::history::{Acquisition, Call};
use crate::plan::ClientKind;

impl Agent {
    /// Runs as its kind does until it is stopped.
    pub(crate) async fn live(mut self) {
        match self.client_kind {
            ClientKind::Worker => worker::live(&mut self).await,
            ClientKind::Waiter => waiter::live(&mut self, false).await,
            ClientKind::Leader => waiter::live(&mut self, true).await,
            ClientKind::Runner => runner::live(&mut self).await,
            ClientKind::Collector => collector::live(&mut self).await,
            ClientKind::Administrator => admin::live(&mut self).await,
        }
    }

    /// Ends what administrators left, and waits for every node. Returns whether it got in.
    pub(crate) async fn get_in_everywhere(self) -> bool {
        for node in self.nodes.clone() {
            if let Ok(Some(lease)) = self.maintenance.get(&node).await
                && let Some(hold) = acquisition(&lease).filter(Acquisition::is_hold)
            {
                let work = self.maintenance.unhold(&*node, Some(&lease));
                // If it fails, nobody can acquire the lock any more, and the checker notices that.
                let _ = self.call(&node, Call::Unhold(Some(hold)), work).await;
            }
            let work = self.wait_for(&node, 1);
            if self.call(&node, self.waiting(1), work).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits for several nodes and releases them. Returns whether it got them.
    pub(crate) async fn get_a_set(mut self) -> bool {
        collector::once(&mut self).await
    }
}
