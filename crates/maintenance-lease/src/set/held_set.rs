//! Several locks that are renewed together.

use std::convert::Infallible;
use std::future::pending;
use std::pin::{Pin, pin};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};

use super::options::{SetOptions, Target};
use crate::keeper::{Guarded, HeldLease, Keep};
use crate::maintenance::Maintenance;
use crate::options::{Acquire, check_duration};
use crate::outcome::Error;

/// Several locks, each renewed until this is dropped or released.
///
/// # Caveats
/// As of [`HeldLease`]: if it is dropped without a release, the Leases expire.
#[must_use]
pub struct HeldSet {
    /// The locks, in name order.
    pub leases: Vec<HeldLease>,
}

impl Maintenance {
    /// Waits for the locks of several nodes, acquires all of them and renews them.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Acquire, Guarded, Maintenance};
    ///
    /// # async fn move_storage() -> Result<(), std::io::Error> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("a");
    /// # sandbox.add_node("b");
    /// # let locks = Maintenance::new(sandbox.client(), "storage-controller")?;
    /// let options = Acquire::new().reason("storage moves").duration(Duration::from_secs(60));
    /// let held = locks.acquire_all(["a", "b"], &options).await?;
    /// match held.guard(move_storage()).await {
    ///     Guarded::Completed(()) => println!("done"),
    ///     Guarded::Failed(error) => println!("failed: {error}"),
    ///     Guarded::Lost(lost) => println!("canceled: {lost}"),
    /// }
    /// held.release().await?;
    /// # assert_eq!(locks.get("a").await?.and_then(|lease| lease.holder().map(str::to_owned)), None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), for the first node that fails. The others are released; one that
    /// can't be released expires.
    ///
    /// # Caveats
    /// As of [`lock_all`](Self::lock_all), which also takes a time limit and an interrupt.
    pub async fn acquire_all<T: Into<Target>>(
        &self,
        nodes: impl IntoIterator<Item = T>,
        options: &Acquire,
    ) -> Result<HeldSet, Error> {
        let keep = Keep::new();
        self.terms(&keep, check_duration(options.duration)?)?;
        let set = SetOptions::acquire(options.clone()).wait(None);
        let outcome = self.lock_all(nodes, &set, pending(), |_| ()).await;
        if let Some((node, error)) = outcome.failed.into_iter().next() {
            return Err(error.into_error(self, &node));
        }
        let mut leases = Vec::new();
        for change in outcome.held.values() {
            match self.keep(change, &keep).await {
                Ok(held) => leases.push(held),
                Err(error) => {
                    join_all(
                        outcome
                            .held
                            .values()
                            .map(|change| self.release_acquired(change)),
                    )
                    .await;
                    return Err(error);
                }
            }
        }
        Ok(HeldSet { leases })
    }
}

impl HeldSet {
    /// Runs `work` while every lock is held, and drops it when one is lost: see
    /// [`HeldLease::guard`].
    pub async fn guard<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> Guarded<T, E>
    where
        T: Send,
        E: Send,
    {
        under(&self.leases, pin!(work)).await
    }

    /// Releases all of them, as [`HeldLease::release`] does.
    ///
    /// # Errors
    /// The first failure. The other locks are released all the same.
    pub async fn release(self) -> Result<(), Error> {
        let releases = self.leases.into_iter().map(HeldLease::release);
        let mut released = join_all(releases).await.into_iter();
        released.try_for_each(|released| released.map(drop))
    }
}

/// Runs work that each of these leases guards.
fn under<'a, T, E, W>(leases: &'a [HeldLease], work: Pin<&'a mut W>) -> BoxFuture<'a, Guarded<T, E>>
where
    T: Send + 'a,
    E: Send + 'a,
    W: Future<Output = Result<T, E>> + Send,
{
    async move {
        let [first, rest @ ..] = leases else {
            return match work.await {
                Ok(done) => Guarded::Completed(done),
                Err(error) => Guarded::Failed(error),
            };
        };
        let inner = async { Ok::<_, Infallible>(under(rest, work).await) };
        match first.guard(inner).await {
            Guarded::Completed(end) => end,
            Guarded::Failed(never) => match never {},
            Guarded::Lost(lost) => Guarded::Lost(lost),
        }
    }
    .boxed()
}
