//! `wait`: wait until nodes are free or locked.

mod until;

use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use self::until::Wait;
use crate::args::duration;
use crate::args::nodes::NodeArgs;
use crate::args::output::OutputArgs;
use crate::error::lock_state::Awaited;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::item::NodeList;
use crate::run::interruption::{in_time, or_interrupted};
use crate::run::problems::Problems;
use crate::run::session::Start;
use crate::run::targets;

/// Wait until nodes are free or locked
///
/// Prints each node when it reaches the state. If a node does not reach it in time, the exit code is 4.
/// With --for=free, an expired lock counts as free. But if the node is then NotReady or cordoned, acquire needs
/// --take-expired.
///
/// Waiting does not lock the node: somebody else may lock it before you do. To lock it, use
/// acquire --wait instead.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint wait worker-1
  kubectl maint wait worker-1 --timeout=10m
  kubectl maint wait -l pool=gpu --timeout=1h
  kubectl maint wait worker-1 --for=locked --timeout=5m
  kubectl maint acquire worker-1 --wait    # if you want to lock it")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// State to wait for
    #[arg(
        long = "for",
        value_name = "STATE",
        value_enum,
        default_value = "free",
        ignore_case = true
    )]
    pub(crate) awaited: Awaited,

    /// Stop waiting after this long (e.g. 90s, 10m); 0 checks once [default: no limit]
    ///
    /// The exit code is then 4.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration::length
    )]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &WaitArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let format = args.output.format();
    if args.awaited == Awaited::Free && matches!(format, Format::LockId) {
        return Err(InputError::NoLockIdOfFree.into());
    }
    let selection = args.nodes.selection(None, start.terminal.stdin())?;
    let begun = Instant::now();
    let session = start.open_for_reading().await?;
    let problems = Problems::changing(&session, Verb::Wait);
    let finding = async {
        let found = targets::find(&session, &selection, true, Verb::Wait).await?;
        targets::read(&session, found, true, Verb::Wait).await
    };
    // A limit of zero checks once.
    let limit = args.timeout.filter(|limit| !limit.is_zero());
    let targets = match or_interrupted(in_time(limit, finding)).await {
        Ok(targets) => targets,
        Err(failure) => {
            problems.report_for(selection.names(), &failure, format)?;
            return Ok(problems.end().await);
        }
    };
    let wait = Wait::new(&session, &problems, args.awaited, format, targets);
    let items = wait.run(args.timeout, begun).await;
    let list = NodeList::new(items).single(selection.is_single());
    session.terminal.print(&list, format)?;
    Ok(problems.end().await)
}
