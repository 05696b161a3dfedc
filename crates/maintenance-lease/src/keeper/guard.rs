//! Work that is polled only while its lease is truly held.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::held_lease::HeldLease;
use super::lost::Lost;

/// How guarded work ended.
#[derive(Debug)]
#[must_use]
pub enum Guarded<T, E> {
    /// It was done while the lease was held.
    Completed(T),
    /// It failed while the lease was held.
    Failed(E),
    /// The lease was lost first: the work was dropped where it stood.
    Lost(Arc<Lost>),
}

impl HeldLease {
    /// Runs `work` for as long as the lease is held, and drops it when it is lost.
    ///
    /// The clocks are checked before each step of the work. If the process was stopped or the machine
    /// slept until the lease expired, no further step runs.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Acquire, Guarded, Maintenance};
    ///
    /// # async fn reboot(_: &str) -> Result<(), std::io::Error> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// let options = Acquire::new().reason("new kernel").duration(Duration::from_secs(60));
    /// let held = maintenance.acquire("worker-1", &options).await?;
    /// match held.guard(reboot("worker-1")).await {
    ///     Guarded::Completed(()) => println!("done"),
    ///     Guarded::Failed(error) => println!("failed: {error}"),
    ///     Guarded::Lost(lost) => println!("canceled: {lost}"),
    /// }
    /// held.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Caveats
    /// Dropping a future stops only what it does itself. A process that it started, or a request to
    /// another machine, continues: pass the fencing number along, or use `kubectl maint with`. A step
    /// that blocks its thread can't be interrupted.
    ///
    /// Dropping this future drops the work. The lease stays held.
    pub async fn guard<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Guarded<T, E> {
        let mut work = pin!(work);
        let gated = poll_fn(|context| {
            self.shared().check_clocks(self.time());
            if self.shared().may_work(self.env().boot()) {
                work.as_mut().poll(context)
            } else {
                // Whatever the keeper finds out wakes this task.
                Poll::Pending
            }
        });
        tokio::select! {
            biased;
            lost = self.expiry() => Guarded::Lost(lost),
            result = gated => match result {
                Ok(done) => Guarded::Completed(done),
                Err(error) => Guarded::Failed(error),
            },
        }
    }
}
