//! `fence`: prove that nothing runs on an unreachable node any more, and tell Kubernetes.

mod all_unreachable;
mod args;
mod cost;
mod follow;
mod proof;
mod record;
mod steps;

use self::all_unreachable::fence_all;
pub(crate) use self::args::FenceArgs;
use self::steps::FenceRun;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::fencing::FencingSession;
use crate::run::session::Start;

pub(crate) async fn run(args: &FenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let common = &args.common;
    let node = match args.all_unreachable {
        true => None,
        false => Some(common.node()?),
    };
    if common.hook.hook.is_empty() {
        // Nobody's word proves that a node is off which still reports.
        if let (true, Some(node)) = (args.suspect, &node) {
            return Err(InputError::SuspectNeedsHook(node.clone()).into());
        }
        if args.powered_off.is_none() {
            return Err(InputError::NoProof.into());
        }
    }
    let session = FencingSession::open(start, Verb::Fence, common).await?;
    args.namespace.apply(&session.session.locks);
    let Some(node) = node else {
        return fence_all(args, &session).await;
    };
    let target = session.target(node);
    let mut run = match FenceRun::new(args, &target) {
        Ok(run) => run,
        Err(failure) => {
            return session
                .end(Verb::Fence, vec![target.ended(Err(failure), None)])
                .await;
        }
    };
    let result = match run.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(run.release_own_hold(failure).await),
    };
    let ended = target.ended(result, Some(run.take_outcome()));
    let code = session.end(Verb::Fence, vec![ended]).await;
    run.report_lease_end();
    code
}
