//! Work on many nodes in parallel, with results in the order of the nodes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt as _;

use super::interruption::{LAST_CHANCE, interrupt};
use super::node_progress::NodeProgress;
use super::session::PARALLEL;
use super::targets::Target;
use crate::error::Failure;
use crate::words::waiting::SetWait;

/// Runs `work` on [several](PARALLEL) targets at once and passes each result to `report`, in order. `count` shows
/// meanwhile how many are done, because one slow target holds the results of others back. Returns whether it was
/// interrupted.
///
/// After Ctrl-C, nothing new is started. It waits a moment for work in progress, to learn its result. What
/// has not finished by then is reported as interrupted, or as unknown if a write `may_land`.
pub(crate) async fn in_order<T, F>(
    targets: Vec<Target>,
    count: NodeProgress<'_>,
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
            .buffer_unordered(PARALLEL)
    );
    let mut set = SetWait {
        taken: 0,
        all: nodes.len(),
    };
    let mut failed = 0;
    let mut finished = BTreeMap::new();
    let mut next = 0;
    let mut interrupt = pin!(interrupt());
    let mut last_chance = pin!(tokio::time::sleep(LAST_CHANCE));
    loop {
        tokio::select! {
            biased;
            result = results.next() => match result {
                Some((index, result)) => {
                    match result.is_ok() {
                        true => set.taken += 1,
                        false => failed += 1,
                    }
                    finished.insert(index, result);
                    while let Some(result) = finished.remove(&next) {
                        report(&nodes[next], result);
                        next += 1;
                    }
                    count.update(set, failed);
                }
                None => return interrupted.get(),
            },
            () = count.due() => count.show(),
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
    use crate::error::Verb;
    use crate::ui::Terminal;

    use super::*;

    #[tokio::test]
    async fn results_come_in_the_order_of_the_nodes() {
        let targets = ["a", "b", "c"].map(Target::from);
        let mut reported = Vec::new();
        let terminal = Terminal::default();
        let interrupted = in_order(
            targets.to_vec(),
            NodeProgress::new(&terminal, Verb::Release),
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
