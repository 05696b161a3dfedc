//! How long a lock is idle between its release and the confirmed acquisition by a waiter.

use std::time::{Duration, Instant};

use anyhow::Result;
use maintenance_lease::{Acquire, HeldLease, Maintenance};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::server::Server;
use crate::bench::quantiles::{Quantiles, millis};
use crate::output::result;

/// The time after its first report in which the waiter opens its watch.
const SETTLED: Duration = Duration::from_millis(30);

pub(super) async fn measure(server: &Server, node: &str, count: usize) -> Result<()> {
    let options = Acquire::new().duration(Duration::from_secs(60));
    let (mut holder, mut waiter) = (server.holder("bench-one")?, server.holder("bench-other")?);
    let mut held = holder.acquire(node, &options).await?;
    let mut times = Vec::new();
    for _ in 0..count {
        let (waiting, acquired) = wait(waiter.clone(), node, &options);
        waiting.await?;
        tokio::time::sleep(SETTLED).await;
        let begun = Instant::now();
        let released = tokio::spawn(held.release());
        let (next, at) = acquired.await??;
        times.push(at - begun);
        released.await??;
        held = next;
        std::mem::swap(&mut holder, &mut waiter);
    }
    held.release().await?;
    let times = Quantiles::of(times);
    result(format_args!(
        "a waiter acquires the lock, from before the release is sent to the confirmed acquisition, {count} times:\n  \
         p50 {}  p99 {}  longest {}  (targets: p50 <= 5 ms, p99 <= 60 ms)\n  \
         client-go's leader election with 15 s/10 s/2 s: {}, a published constant, not measured here; ratio {:.4}",
        millis(times.quantile(0.5)),
        millis(times.quantile(0.99)),
        millis(times.longest()),
        millis(CLIENT_GO),
        times.quantile(0.5).as_secs_f64() / CLIENT_GO.as_secs_f64(),
    ));
    Ok(())
}

/// The same time for leader election in client-go.
const CLIENT_GO: Duration = Duration::from_millis(1900);

type Acquired = JoinHandle<Result<(HeldLease, Instant), maintenance_lease::Error>>;

/// Waits for the lock in a task, and notifies the caller once the wait has begun.
fn wait(waiter: Maintenance, node: &str, options: &Acquire) -> (oneshot::Receiver<()>, Acquired) {
    let (tell, told) = oneshot::channel();
    let mut tell = Some(tell);
    let (node, options) = (node.to_owned(), options.clone());
    let acquired = tokio::spawn(async move {
        let change = waiter
            .acquire_when_free(&node, &options, |_| {
                if let Some(tell) = tell.take() {
                    // The receiver is awaited, so this can't fail.
                    let _ = tell.send(());
                }
            })
            .await?;
        let at = Instant::now();
        Ok((
            waiter
                .keep(&change, &maintenance_lease::Keep::new())
                .await?,
            at,
        ))
    });
    (told, acquired)
}
