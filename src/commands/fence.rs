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
use crate::run::fencing::{FencingTarget, Hook};
use crate::run::session::Start;

pub(crate) async fn run(args: &FenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    if args.powered_off.is_none() && args.common.hook.hook.is_empty() {
        let node = args.common.node.clone();
        return Err(InputError::NoProof { node }.into());
    }
    let target = FencingTarget::open(start, Verb::Fence, &args.common).await?;
    args.namespace.apply(&target.session.locks);
    let hook = match Hook::new(&target, &args.common.hook) {
        Ok(hook) => hook,
        Err(failure) => return target.end(Verb::Fence, Err(failure), None).await,
    };
    let mut run = FenceRun::new(args, &target, hook);
    let result = match run.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(run.release_own_hold(failure).await),
    };
    let code = target.end(Verb::Fence, result, run.outcome.take()).await;
    run.report_lease_end();
    code
}
