//! Work on many nodes at once, results in the order in which the nodes went in.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::Notify;

use super::targets::Target;
use crate::error::Failure;
use crate::signals::asked_to_end;

/// After Ctrl-C, how long what is under way may still take.
pub(crate) const LAST_CHANCE: Duration = Duration::from_secs(2);

/// Told where the verb has to be dropped, with all that it started.
pub(crate) static LEAVING: Notify = Notify::const_new();

/// Whether everything ran its course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Course {
    Complete,
    Interrupted,
}

/// Runs `work` on up to `parallel` targets at once and hands each result to `report` in order.
///
/// Ctrl-C starts nothing new and waits a moment for what is under way, so that its result is known;
/// what is not over by then is reported as interrupted, and as open where a write `may_land`.
pub(crate) async fn in_order<T, F>(
    targets: Vec<Target>,
    parallel: u16,
    work: impl Fn(Target) -> F,
    may_land: impl Fn(&str) -> bool,
    mut report: impl FnMut(&str, Result<T, Failure>),
) -> Course
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
                None if interrupted.get() => return Course::Interrupted,
                None => return Course::Complete,
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
                return Course::Interrupted;
            }
        }
    }
}

/// Runs work that only reads: Ctrl-C ends it at once.
///
/// # Errors
/// Its own, and that it was interrupted.
pub(crate) async fn or_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        result = work => result,
        () = interrupt() => Err(Failure::Interrupted),
    }
}

/// Completes where the process is asked to end; a second time ends it at once.
pub(crate) async fn interrupt() {
    asked_to_end().await;
    exit_at_interrupt();
}

/// From now on Ctrl-C ends the process at once: nothing is left to be said or undone.
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
        let course = in_order(
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
        assert_eq!(course, Course::Complete);
        let pairs = [("a", "A"), ("b", "B"), ("c", "C")];
        assert_eq!(
            reported,
            pairs.map(|(node, result)| (node.to_owned(), result.to_owned()))
        );
    }
}
