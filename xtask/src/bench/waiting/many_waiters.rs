//! The requests that many waiters for one lock send.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use maintenance_lease::{Acquire, Keep};
use tokio::sync::mpsc;

use super::server::Server;
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
        let sent = server.counter();
        turns.push(tokio::spawn(async move {
            let change = waiter
                .acquire_when_free(&node, &options, |_| {
                    // The receiver needs only the first report of each waiter, but the waiter sends
                    // more.
                    let _ = told.send(number);
                })
                .await?;
            let sent_until_now = sent();
            waiter.keep(&change, &Keep::new()).await?.release().await?;
            Ok::<_, maintenance_lease::Error>(sent_until_now)
        }));
    }
    for _ in 0..count {
        waiting.recv().await;
    }
    // Waits until all watches are open.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = server.counter()();
    let begun = Instant::now();
    first.release().await?;
    let mut sent = vec![before];
    for turn in try_join_all(turns).await? {
        sent.push(turn?);
    }
    let whole = begun.elapsed();
    sent.sort_unstable();
    let mut each: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // For the first hand-over, all clients try at the same time.
    each.remove(0);
    each.sort_unstable();
    let hand_overs = count as f64;
    result(format_args!(
        "{count} clients wait for one lock, and release it as soon as they have it:\n  \
         all had it after {:.2} s, {:.1} ms per acquisition\n  \
         requests of all clients from one acquisition to the next, from the second on: median {}, most {}, mean {:.1} \
         (target: median <= 10)",
        whole.as_secs_f64(),
        whole.as_secs_f64() * 1000.0 / hand_overs,
        each[each.len() / 2],
        each[each.len() - 1],
        each.iter().sum::<u64>() as f64 / each.len() as f64,
    ));
    Ok(())
}
