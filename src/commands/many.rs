//! Work on many nodes at once, results in the order in which the nodes went in.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;

use super::targets::Target;
use crate::failure::Failure;

/// After Ctrl-C, how long writes that are under way may still take.
const LAST_CHANCE: Duration = Duration::from_secs(2);

/// Runs `work` on up to `parallel` targets at once and hands each result to `report` in order.
///
/// Ctrl-C starts nothing new and waits a moment for what is under way, so that its result is known;
/// what is not over by then is reported as open.
pub(crate) async fn in_order<T, F>(
    targets: Vec<Target>,
    parallel: u16,
    work: impl Fn(Target) -> F,
    mut report: impl FnMut(&str, Result<T, Failure>),
) where
    F: Future<Output = Result<T, Failure>>,
{
    let interrupted = Cell::new(false);
    let under_way = RefCell::new(BTreeSet::new());
    let mut results = pin!(
        futures::stream::iter(targets)
            .map(|target| {
                let (node, work) = (target.node.clone(), &work);
                let (interrupted, under_way) = (&interrupted, &under_way);
                async move {
                    if interrupted.get() {
                        return (node, Err(Failure::Interrupted));
                    }
                    under_way.borrow_mut().insert(node.clone());
                    let result = work(target).await;
                    under_way.borrow_mut().remove(&node);
                    (node, result)
                }
            })
            .buffered(usize::from(parallel))
    );
    let mut interrupt = pin!(interrupt());
    let mut last_chance = pin!(tokio::time::sleep(LAST_CHANCE));
    loop {
        tokio::select! {
            biased;
            result = results.next() => match result {
                Some((node, result)) => report(&node, result),
                None => return,
            },
            () = &mut interrupt, if !interrupted.get() => {
                interrupted.set(true);
                last_chance.as_mut().reset(tokio::time::Instant::now() + LAST_CHANCE);
            }
            () = &mut last_chance, if interrupted.get() => {
                for node in under_way.take() {
                    report(&node, Err(Failure::InterruptedWrite { node: node.clone() }));
                }
                return;
            }
        }
    }
}

/// Completes at Ctrl-C; a second one ends the process at once.
pub(crate) async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Nobody can interrupt what can't be told about signals.
        std::future::pending::<()>().await;
    }
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(crate::exit::Code::INTERRUPTED.number().into());
        }
    });
}
