//! What a lock sets on its Node.

use std::cell::RefCell;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;

use crate::apply::Conflict;
use crate::findings::cordon;
use crate::node_keys::NodeKeys;
use crate::opt_outs::OptOuts;
use crate::protection_writer::ProtectionWriter;
use crate::write_error::WriteError;

/// What a lock has set on its Node.
#[derive(Debug)]
pub struct Protected {
    /// The keys.
    pub keys: NodeKeys,
    /// Somebody else has cordoned the Node, so it stays cordoned after the lock.
    pub stays_cordoned: bool,
    /// What is not set, because somebody else set it to another value.
    pub conflicts: Vec<Conflict>,
}

impl ProtectionWriter<'_> {
    /// Labels the Node of the lock in `lease`, cordons it if `cordon` is set, and sets `opt_outs` on it.
    ///
    /// # Errors
    /// Why the Node is not labeled.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What it was writing may still be set, unless the end of the lock removes it
    /// first.
    pub async fn protect(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> Result<Protected, WriteError> {
        match self.write_opt_outs(lease, cordon, opt_outs).await {
            // A write that replaces the label of an earlier lock may not cordon.
            Err(error) if cordon && error.is_by_our_policy() => {
                self.write_opt_outs(lease, false, opt_outs).await?;
                self.write_opt_outs(lease, true, opt_outs).await
            }
            result => result,
        }
    }

    /// Checks in a dry run whether the server would accept the write of [`protect`](Self::protect). `lease` is what the dry run
    /// of the lock returned. Returns the keys that somebody else set to another value.
    ///
    /// # Errors
    /// Why the Node would not be labeled, or with `cordon` not cordoned.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn check(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> Result<Vec<Conflict>, WriteError> {
        let checking = |cordon| self.check_keys(lease, move |on| keys_on(on, cordon, opt_outs));
        match checking(cordon).await {
            // Our policy may admit the cordon once the label of an earlier lock is replaced.
            Err(error) if cordon && error.is_by_our_policy() => checking(false).await,
            result => result,
        }
    }

    async fn write_opt_outs(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> Result<Protected, WriteError> {
        let written = RefCell::default();
        let keys = |on: &Node, _: &str| {
            let keys = keys_on(on, cordon, opt_outs);
            *written.borrow_mut() = (keys.clone(), self::cordon(on).is_some());
            keys
        };
        let conflicts = self.write_keys(lease, keys).await?;
        let (mut keys, stays_cordoned): (NodeKeys, bool) = written.into_inner();
        for Conflict { key, .. } in &conflicts {
            keys.labels.remove(key);
            keys.annotations.remove(key);
        }
        Ok(Protected {
            keys,
            stays_cordoned,
            conflicts,
        })
    }
}

fn keys_on(node: &Node, cordon: bool, opt_outs: &OptOuts) -> NodeKeys {
    NodeKeys {
        cordon,
        ..opt_outs.keys(node)
    }
}
