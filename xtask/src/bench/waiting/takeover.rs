//! How long it takes until a waiter acquires an expired lock.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use maintenance_lease::protocol::SKEW_BUDGET;
use maintenance_lease::{Acquire, Renew};

use super::server::Server;
use crate::bench::quantiles::{Quantiles, millis};
use crate::output::result;

/// The duration of each lease.
const LENGTH: Duration = Duration::from_secs(2);

/// The delay between two holders, which makes each takeover separate.
const APART: Duration = Duration::from_millis(100);

pub(super) async fn measure(server: &Server, prefix: &str, count: usize) -> Result<()> {
    let takeovers = (0..count).map(|number| async move {
        tokio::time::sleep(APART * u32::try_from(number)?).await;
        takeover(server, &format!("{prefix}-{number}")).await
    });
    let late = Quantiles::of(try_join_all(takeovers).await?);
    let whole = LENGTH + SKEW_BUDGET.to_duration() + late.quantile(0.5);
    result(format_args!(
        "acquisition of an expired lock after a crash, past expiry and the margin of {} s, {count} times:\n  \
         p50 {}  longest {}  (target: <= 250 ms)\n  \
         a lease of 15 s is taken over {:.1} s after its last renewal; by client-go's leader election with\n  \
         15 s/10 s/2 s after 16.7 s, a published constant, not measured here",
        SKEW_BUDGET.to_duration().as_secs(),
        millis(late.quantile(0.5)),
        millis(late.longest()),
        (whole - LENGTH + Duration::from_secs(15)).as_secs_f64(),
    ));
    Ok(())
}

/// The time between the earliest possible takeover and the actual one. Holder and server run on this
/// machine, so they share a clock.
async fn takeover(server: &Server, node: &str) -> Result<Duration> {
    let options = Acquire::new().duration(LENGTH);
    let (holder, waiter) = (
        server.holder("bench-holder")?,
        server.holder("bench-waiter")?,
    );
    holder.try_acquire(node, &options).await?;
    let renew = async {
        // The waiter must observe the lease for a while, because the takeover depends on that too.
        tokio::time::sleep(LENGTH / 2).await;
        holder.renew(node, &Renew::new()).await
    };
    let wait = waiter.acquire_when_free(node, &options, |_| ());
    let (renewed, _) = futures::future::try_join(renew, wait).await?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let until = renewed.until().context("a lease without an end")?;
    let until = Duration::from_micros(u64::try_from(until.as_micros())?);
    now.checked_sub(until + SKEW_BUDGET.to_duration())
        .context("taken over too early")
}
