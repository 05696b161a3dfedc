//! `fence`: prove that nothing runs on an unreachable node any more, and tell Kubernetes.

mod args;
mod cost;
mod follow;
mod proof;
mod record;
mod steps;

pub(crate) use self::args::FenceArgs;
use self::steps::FenceRun;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::fencing::FencingTarget;
use crate::run::session::Start;

pub(crate) async fn run(args: &FenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let common = &args.common;
    let node = common.node()?;
    if common.hook.hook.is_empty() {
        // Nobody's word proves that a node is off which still reports.
        if args.suspect {
            return Err(InputError::SuspectNeedsHook(node).into());
        }
        if args.powered_off.is_none() {
            return Err(InputError::NoProof.into());
        }
    }
    let target = FencingTarget::open(start, Verb::Fence, common, node).await?;
    let mut run = match FenceRun::new(args, &target) {
        Ok(run) => run,
        Err(failure) => return target.end(Verb::Fence, Err(failure), None).await,
    };
    let result = match run.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(run.release_own_hold(failure).await),
    };
    let outcome = run.take_outcome();
    let code = target.end(Verb::Fence, result, Some(outcome)).await;
    run.report_lease_end();
    code
}
