//! Work on many nodes in parallel, with results in the order of the nodes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt as _;

use super::interruption::{LAST_CHANCE, interrupt};
use super::targets::Target;
use crate::error::Failure;

/// Runs `work` on up to `parallel` targets at once and passes each result to `report`, in order. Returns
/// whether it was interrupted.
///
/// After Ctrl-C, nothing new is started. It waits a moment for work in progress, to learn its result. What
/// has not finished by then is reported as interrupted, or as unknown if a write `may_land`.
pub(crate) async fn in_order<T, F>(
    targets: Vec<Target>,
    parallel: u16,
    work: impl Fn(Target) -> F,
    may_land: impl Fn(&str) -> bool,
    mut report: impl FnMut(&str, Result<T, Failure>),
) -> bool
where
    F: Future<Output = Result<T, Failure>>,
{
    let nodes: Vec<String> = targets.iter().map(|target| target.node.clone()).collect();
    let interrupted = Cell::new(false);
    let mut results = pin!(
        futures::stream::iter(targets.into_iter().enumerate())
            .map(|(index, target)| {
                let (interrupted, work) = (&interrupted, &work);
                async move {
                    if interrupted.get() {
                        return (index, Err(Failure::Interrupted));
                    }
                    (index, work(target).await)
                }
            })
            .buffer_unordered(usize::from(parallel))
    );
    let mut finished = BTreeMap::new();
    let mut next = 0;
    let mut interrupt = pin!(interrupt());
    let mut last_chance = pin!(tokio::time::sleep(LAST_CHANCE));
    loop {
        tokio::select! {
            biased;
            result = results.next() => match result {
                Some((index, result)) => {
                    finished.insert(index, result);
                    while let Some(result) = finished.remove(&next) {
                        report(&nodes[next], result);
                        next += 1;
                    }
                }
                None => return interrupted.get(),
            },
            () = &mut interrupt, if !interrupted.get() => {
                interrupted.set(true);
                last_chance.as_mut().reset(tokio::time::Instant::now() + LAST_CHANCE);
            }
            () = &mut last_chance, if interrupted.get() => {
                for (index, node) in nodes.iter().enumerate().skip(next) {
                    let unfinished = || match may_land(node) {
                        true => Err(Failure::InterruptedWrite { node: node.clone() }),
                        false => Err(Failure::Interrupted),
                    };
                    report(node, finished.remove(&index).unwrap_or_else(unfinished));
                }
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn results_come_in_the_order_of_the_nodes() {
        let targets = ["a", "b", "c"].map(Target::from);
        let mut reported = Vec::new();
        let interrupted = in_order(
            targets.to_vec(),
            2,
            |target| async move {
                if target.node == "a" {
                    tokio::task::yield_now().await;
                    tokio::task::yield_now().await;
                }
                Ok(target.node.to_uppercase())
            },
            |_| false,
            |node, result| reported.push((node.to_owned(), result.expect("work that succeeds"))),
        )
        .await;
        assert!(!interrupted);
        let pairs = [("a", "A"), ("b", "B"), ("c", "C")];
        assert_eq!(
            reported,
            pairs.map(|(node, result)| (node.to_owned(), result.to_owned()))
        );
    }
}
