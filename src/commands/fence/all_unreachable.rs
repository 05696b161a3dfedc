//! `fence --all-unreachable`: one node after another, the most urgent first.

use pod_safety::fencing::UnreachableNode;
use pod_safety::fencing::steps::Lock;

use super::args::FenceArgs;
use super::steps::FenceRun;
use crate::error::{Failure, Kind, Verb};
use crate::exit::Code;
use crate::output::error_code::ErrorCode;
use crate::output::fencing::Fencing;
use crate::output::item_error::ItemError;
use crate::run::fencing::{Ended, FencingSession, Observed, Timeout};
use crate::words::fencing::{NOT_REACHED, most_urgent, order, skipped, skipped_because, stopped};

/// Fences the unreachable nodes until one cannot be fenced, and then waits until nothing is left of any. If one fails,
/// nothing is waited for: the operator decides first. A node that is back, or that somebody else fences, is skipped, and
/// does not count for --max. A node for which an earlier run of the caller may still run its hook fails at the end.
/// A dry run goes on after a failure, because it shows what would happen to each node.
pub(super) async fn fence_all(
    args: &FenceArgs,
    session: &FencingSession<'_>,
) -> Result<Code, Failure> {
    let max = args.max.map_or(0, usize::from);
    let reading = session.interrupt.or(unreachable(session));
    let nodes = reading.await?;
    session.announce(&order(&nodes, max));
    let targets: Vec<_> = { nodes.iter() }
        .map(|node| session.target(node.name.clone()))
        .collect();
    let mut runs: Vec<FenceRun<'_>> = Vec::new();
    let mut results: Vec<Result<Option<Observed>, Failure>> = Vec::new();
    let mut failure = None;
    for (index, (target, node)) in targets.iter().zip(&nodes).enumerate() {
        if runs.len() == max {
            break;
        }
        let mut run = match FenceRun::new(args, target) {
            Ok(run) => run,
            Err(error) => {
                failure = Some((index, error, None));
                break;
            }
        };
        run.urgency = Some(most_urgent(node));
        let result = match run.fence().await {
            Ok(observed) => Ok(observed),
            Err(error) => {
                let can_skip = run.can_skip(&error);
                let can_leave = run.can_leave(&error);
                let error = run.release_own_hold(error).await;
                if can_skip {
                    let terminal = session.session.terminal;
                    terminal.remark(skipped_because(&error));
                    continue;
                }
                let is_interrupted = error.kind(Some(Verb::Fence)) == Kind::Interrupted;
                if is_interrupted || !(can_leave || target.is_dry_run()) {
                    failure = Some((index, error, Some(run.take_outcome())));
                    break;
                }
                Err(error)
            }
        };
        runs.push(run);
        results.push(result);
    }
    let mut ends = Vec::new();
    match failure {
        None => {
            // They wait at the same time, so they share the time.
            let mut timeout = Timeout::of(args.common.timeout);
            for (run, result) in runs.iter_mut().zip(results) {
                let result = match result {
                    Ok(Some(observed)) => run.follow(&observed, &mut timeout).await,
                    result => result.map(drop),
                };
                ends.push(run.target.ended(result, Some(run.take_outcome())));
            }
        }
        Some((index, failure, outcome)) => {
            let at = &targets[index];
            let names = |is_fenced: bool| {
                { runs.iter().zip(&results) }
                    .filter(move |(_, result)| result.is_ok() == is_fenced)
                    .map(|(run, _)| &*run.target.node)
            };
            let fenced: Vec<&str> = names(true).collect();
            let rest = { targets.iter().skip(index + 1) }.take(max - runs.len() - 1);
            let not_reached: Vec<&str> = rest.map(|target| &*target.node).collect();
            let not_fenced: Vec<&str> = names(false).chain(not_reached.iter().copied()).collect();
            if max > 1 && targets.len() > 1 {
                let stopped = stopped(&at.node, &fenced, &not_fenced);
                session.session.terminal.warn(stopped);
            }
            for (run, result) in runs.iter_mut().zip(results) {
                let outcome = Some(run.take_outcome());
                ends.push(run.target.ended(result.map(drop), outcome));
            }
            ends.push(at.ended(Err(failure), outcome));
            ends.extend(not_reached.into_iter().map(|node| Ended {
                result: Ok(()),
                outcome: Fencing::new(node).with_error(Some(ItemError::of(
                    ErrorCode::OtherFailed,
                    NOT_REACHED.to_owned(),
                ))),
            }));
        }
    }
    let code = session.end(Verb::Fence, ends).await;
    for run in &runs {
        run.report_lease_end();
    }
    code
}

/// The unreachable nodes that nobody else has locked, the most urgent first. Those of others are reported.
async fn unreachable(session: &FencingSession<'_>) -> Result<Vec<UnreachableNode>, Failure> {
    let locks = &session.session.locks;
    let (unreachable, leases) = futures::join!(session.reader.unreachable_nodes(), locks.list());
    let (mut unreachable, leases) = (unreachable?, leases?);
    let now = session.reader.now();
    unreachable.retain(|node| {
        let lease = leases.get(node);
        let is_others = session.target(node.clone()).lock(lease) == Lock::Others;
        if is_others {
            session.session.terminal.remark(skipped(node, lease, now));
        }
        !is_others
    });
    match unreachable.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(session.reader.by_urgency(unreachable).await?),
    }
}
