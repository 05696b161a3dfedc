//! The requests that many waiters for one lock send.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use maintenance_lease::{Acquire, Keep};
use tokio::sync::mpsc;

use super::Server;
use crate::output::result;

pub(super) async fn measure(server: &Server, node: &str, count: usize) -> Result<()> {
    let options = Acquire::new().duration(Duration::from_secs(600));
    let first = server
        .holder("bench-first")?
        .acquire(node, &options)
        .await?;
    let (told, mut waiting) = mpsc::unbounded_channel();
    let mut turns = Vec::new();
    for number in 0..count {
        let waiter = server.holder(&format!("bench-{number}"))?;
        let (node, options, told) = (node.to_owned(), options.clone(), told.clone());
        turns.push(tokio::spawn(async move {
            let change = waiter
                .acquire_when_free(&node, &options, |_| {
                    // It counts only the first report; the waiter continues.
                    let _ = told.send(number);
                })
                .await?;
            waiter.keep(&change, &Keep::new()).await?.release().await?;
            Ok::<_, maintenance_lease::Error>(())
        }));
    }
    for _ in 0..count {
        waiting.recv().await;
    }
    // Until all watches are open.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = server.requests().await?;
    let begun = Instant::now();
    first.release().await?;
    for turn in try_join_all(turns).await? {
        turn?;
    }
    let whole = begun.elapsed();
    let requests = server.requests().await? - before;
    let hand_overs = count as f64;
    result(format_args!(
        "{count} clients wait for one lock, and release it as soon as they have it:\n  \
         all had it after {:.2} s, {:.1} ms a hand-over\n  \
         {requests} requests, as the server's metrics count them: {:.1} a hand-over (target: at most 10 without the \
         2 of the release; without a delay after a lost race, it is one for each that still waits)",
        whole.as_secs_f64(),
        whole.as_secs_f64() * 1000.0 / hand_overs,
        requests as f64 / hand_overs,
    ));
    Ok(())
}
