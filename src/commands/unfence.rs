//! `unfence`: return a fenced node to service.

mod args;
mod fencing_hold;
mod steps;

pub(crate) use self::args::UnfenceArgs;
use self::steps::UnfenceRun;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::fencing::{FencingTarget, Hook};
use crate::run::session::Start;

pub(crate) async fn run(args: &UnfenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let node = args.common.node()?;
    let target = FencingTarget::open(start, Verb::Unfence, &args.common, node).await?;
    let hook = match Hook::new(&target, &args.common.hook) {
        Ok(hook) => hook,
        Err(failure) => return target.end(Verb::Unfence, Err(failure), None).await,
    };
    let mut run = UnfenceRun::new(&args.common, &target, hook);
    let result = match run.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(run.end_after_failure(failure).await),
    };
    target.end(Verb::Unfence, result, run.outcome).await
}
