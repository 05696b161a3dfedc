//! Work on many nodes in parallel, with results in the order of the nodes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::Notify;

use super::targets::Target;
use crate::error::Failure;
use crate::signals::asked_to_end;

/// How long work in progress may still take after Ctrl-C.
pub(crate) const LAST_CHANCE: Duration = Duration::from_secs(2);

/// Notified if the verb must be dropped, with everything that it started.
pub(crate) static LEAVING: Notify = Notify::const_new();

/// Whether all work finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Completion {
    Complete,
    Interrupted,
}

/// Runs `work` on up to `parallel` targets at once and passes each result to `report`, in order.
///
/// After Ctrl-C, nothing new is started. It waits a moment for work in progress, to learn its result. What
/// has not finished by then is reported as interrupted, or as unknown if a write `may_land`.
pub(crate) async fn in_order<T, F>(
    targets: Vec<Target>,
    parallel: u16,
    work: impl Fn(Target) -> F,
    may_land: impl Fn(&str) -> bool,
    mut report: impl FnMut(&str, Result<T, Failure>),
) -> Completion
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
                None if interrupted.get() => return Completion::Interrupted,
                None => return Completion::Complete,
            },
            () = &mut interrupt, if !interrupted.get() => {
                interrupted.set(true);
                last_chance.as_mut().reset(tokio::time::Instant::now() + LAST_CHANCE);
            }
            () = &mut last_chance, if interrupted.get() => {
                for (index, node) in nodes.iter().enumerate().skip(next) {
                    let result = match finished.remove(&index) {
                        Some(result) => result,
                        None if may_land(node) => {
                            Err(Failure::InterruptedWrite { node: node.clone() })
                        }
                        None => Err(Failure::Interrupted),
                    };
                    report(node, result);
                }
                return Completion::Interrupted;
            }
        }
    }
}

/// Runs work that only reads. Ctrl-C ends it at once.
///
/// # Errors
/// Those of the work, and an interruption.
pub(crate) async fn or_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        result = work => result,
        () = interrupt() => Err(Failure::Interrupted),
    }
}

/// Completes when the process is asked to end. A second signal ends the process at once.
pub(crate) async fn interrupt() {
    asked_to_end().await;
    exit_at_interrupt();
}

/// From now on Ctrl-C ends the process at once, because nothing is left to report or undo.
pub(crate) fn exit_at_interrupt() {
    tokio::spawn(async {
        asked_to_end().await;
        LEAVING.notify_one();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn results_come_in_the_order_of_the_nodes() {
        let targets = ["a", "b", "c"].map(Target::from);
        let mut reported = Vec::new();
        let completion = in_order(
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
        assert_eq!(completion, Completion::Complete);
        let pairs = [("a", "A"), ("b", "B"), ("c", "C")];
        assert_eq!(
            reported,
            pairs.map(|(node, result)| (node.to_owned(), result.to_owned()))
        );
    }
}
