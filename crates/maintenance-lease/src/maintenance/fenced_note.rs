//! The note on a Lease that its Node was fenced. Clients that list Leases and read no Nodes can see it.

use serde_json::json;

use super::Maintenance;
use crate::notes::annotation::FENCED;
use crate::outcome::Error;

/// How often it is tried on a Lease that keeps changing.
const MOST_TRIES: usize = 5;

impl Maintenance {
    /// Writes to the node's Lease that its Node was fenced, or removes that note. The note is not part of
    /// the lock: it does not change the holder, and it stays when the lock is released. If there is no
    /// Lease, or the Lease is used for leader election, nothing is written.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// maintenance.try_acquire("worker-1", &Acquire::new()).await?;
    /// maintenance.mark_fenced("worker-1", true).await?;
    /// let lease = maintenance.get("worker-1").await?.expect("it was just made");
    /// assert!(lease.is_fenced());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the Lease can't be read or written, or keeps changing.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The note may still be written.
    pub async fn mark_fenced(&self, node: &str, fenced: bool) -> Result<(), Error> {
        let mark = fenced.then_some("true");
        let mut tries = 0..MOST_TRIES;
        loop {
            let Some(lease) = self.get(node).await? else {
                return Ok(());
            };
            if lease.is_fenced() == fenced || lease.elected || lease.is_deleting() {
                return Ok(());
            }
            let patch = json!({"metadata": {
                "resourceVersion": lease.resource_version().to_string(),
                "annotations": {FENCED: mark},
            }});
            let call = self.api.lease_patch(node, &patch, &self.write_options);
            match self.api.call(&call).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() && tries.next().is_some() => {}
                Err(error) => return Err(self.api.lease_right("patch").explain(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Acquire, Maintenance};

    #[tokio::test]
    async fn a_mark_stays_when_the_lock_goes_and_is_taken_away_by_itself() {
        let sandbox = sandbox::Sandbox::new();
        sandbox.add_node("worker-1");
        let locks = Maintenance::new(sandbox.client(), "alice@bastion").expect("a handle");
        let is_fenced = async || {
            let lease = locks.get("worker-1").await.expect("it can be read");
            lease.is_some_and(|lease| lease.is_fenced())
        };
        let mark = async |fenced| {
            let marked = locks.mark_fenced("worker-1", fenced).await;
            marked.expect("it can be written");
        };
        mark(true).await;
        assert!(!is_fenced().await, "there is no Lease yet");
        let acquired = locks.try_acquire("worker-1", &Acquire::new()).await;
        acquired.expect("it is free");
        mark(true).await;
        let before = locks.get("worker-1").await.expect("a Lease");
        let lock_id = before.as_ref().and_then(crate::NodeLease::lock_id);
        assert!(is_fenced().await && lock_id.is_some());
        let released = locks.release("worker-1", &crate::Release::new()).await;
        released.expect("it is given back");
        assert!(is_fenced().await);
        mark(false).await;
        assert!(!is_fenced().await);
    }
}
