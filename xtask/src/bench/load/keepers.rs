//! Keeps locks until the parent process has measured enough.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use maintenance_lease::{Acquire, HeldLease};

use super::Server;

/// Acquires the nodes `PREFIX-0` and so on, reports that on stdout, and keeps them until stdin ends. Fails
/// if one was lost.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
pub(super) async fn keep(
    server: &Server,
    prefix: &str,
    count: usize,
    length: Duration,
) -> Result<()> {
    let options = Acquire::new().duration(length);
    let maintenance = server.holder("bench-keeper")?;
    let held: Vec<HeldLease> = futures::stream::iter(0..count)
        .map(|number| {
            let (maintenance, options) = (&maintenance, &options);
            async move {
                let node = format!("{prefix}-{number}");
                maintenance.acquire(&node, options).await
            }
        })
        .buffer_unordered(32)
        .try_collect()
        .await?;
    println!("all are held");
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    let lost = held
        .iter()
        .filter_map(|held| held.held_state().lost)
        .map(|lost| lost.to_string());
    let lost: Vec<String> = lost.collect();
    ensure!(
        lost.is_empty(),
        "{} were lost, such as: {}",
        lost.len(),
        lost[0]
    );
    for held in held {
        held.release().await?;
    }
    Ok(())
}
