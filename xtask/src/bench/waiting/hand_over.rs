//! How long a lock is idle between its release and the confirmed acquisition by a waiter.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::WatchParams;
use maintenance_lease::{Acquire, HeldLease, Maintenance};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::server::Server;
use crate::bench::bare_requests::patch;
use crate::bench::quantiles::{Quantiles, millis};
use crate::bench::raw_patches::NAMESPACE;
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
    let bare = Quantiles::of(bare_hand_overs(server, node, count).await?);
    result(format_args!(
        "a waiter acquires the lock, from before the release is sent to the confirmed acquisition, {count} times:\n  \
         p50 {}  p99 {}  longest {}  (targets: p50 <= 5 ms, p99 <= 60 ms)\n  \
         client-go's leader election with 15 s/10 s/2 s: {}, a published constant, not measured here; ratio {:.4}\n  \
         a patch, its watch event and another patch, without the library: p50 {}",
        millis(times.quantile(0.5)),
        millis(times.quantile(0.99)),
        millis(times.longest()),
        millis(CLIENT_GO),
        times.quantile(0.5).as_secs_f64() / CLIENT_GO.as_secs_f64(),
        millis(bare.quantile(0.5)),
    ));
    Ok(())
}

/// The time that the API server needs for a hand-over on open connections: a write, its watch event, and another write.
async fn bare_hand_overs(server: &Server, node: &str, count: usize) -> Result<Vec<Duration>> {
    let (holder, waiter) = (server.client()?, server.client()?);
    let leases = Api::<Lease>::namespaced(waiter.clone(), NAMESPACE);
    let version = { leases.get(node).await?.metadata.resource_version }.unwrap_or_default();
    let only = WatchParams::default().fields(&format!("metadata.name={node}"));
    let mut events = leases.watch(&only, &version).await?.boxed();
    let mut times = Vec::new();
    for round in (0..).step_by(2).take(count) {
        let (holder, release) = (holder.clone(), patch(node, round)?);
        // Wait as `measure` does, because an idle server answers more slowly.
        tokio::time::sleep(SETTLED).await;
        let begun = Instant::now();
        let released = tokio::spawn(async move { holder.request_text(release).await });
        events.next().await.context("the watch ended")??;
        waiter.request_text(patch(node, round + 1)?).await?;
        times.push(begun.elapsed());
        released.await??;
        events.next().await.context("the watch ended")??;
    }
    Ok(times)
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
