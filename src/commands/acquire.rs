//! `acquire`: take the lock of nodes that nobody holds.

use clap::Args;
use maintenance_lease::{Acquire, SetOptions};

use crate::args::change::ChangingArgs;
use crate::args::duration;
use crate::args::protect::ProtectArgs;
use crate::args::take_expired::TakeExpiredArgs;
use crate::args::wait::WaitingArgs;
use crate::args::write::ReasonArgs;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::lock_command::LockCommand;
use crate::run::report::LockReport;
use crate::run::session::Start;
use crate::run::targets::names;

/// Lock nodes
///
/// You can lock a node if it is free or if its lock has expired. A warning then shows the old holder, who may not
/// have finished. If the lock has expired and the node is NotReady or cordoned, you need --take-expired. If
/// somebody else holds the lock, the error shows who, and the exit code is 3.
///
/// Multiple nodes are all-or-nothing: if one is refused, the others are released. Use --partial to
/// keep the ones you got.
///
/// With --wait, no node is locked until all are free. They are then locked one at a time in name order.
/// If somebody else takes one first, the ones you got are released and the wait goes on. There is no
/// queue: the first client to acquire a free node wins.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint acquire worker-1 -m \"new kernel\"
  kubectl maint acquire worker-1 -m \"new kernel\" --wait --timeout 10m
  kubectl maint acquire -l pool=gpu --duration 1h -m \"driver update\"
  LOCK_ID=$(kubectl maint acquire worker-1 -o lock-id) || exit")]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) why: ReasonArgs,

    /// Time until the lock expires (max 1h)
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30m",
        value_parser = duration::lease
    )]
    pub(crate) duration: std::time::Duration,

    /// Renew the lock if you already hold it
    ///
    /// A hold stays as it is. With --cordon, the exit code is then 1, unless the node is already cordoned.
    #[arg(long)]
    pub(crate) reentry: bool,

    #[command(flatten)]
    pub(crate) protect: ProtectArgs,

    #[command(flatten)]
    pub(crate) take: TakeExpiredArgs,

    /// Lock as many nodes as possible
    #[arg(long, conflicts_with = "wait")]
    pub(crate) partial: bool,

    #[command(flatten)]
    pub(crate) limit: WaitingArgs,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &AcquireArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(None, start.terminal)?;
    let command =
        LockCommand::begin_locking(start, &args.change, Verb::Acquire, args.limit).await?;
    let targets = command.targets(&selection, true).await?;
    let nodes = names(&targets);

    // If one of them is locked or does not exist, nothing is written to the others.
    let (targets, confirmed) = command
        .confirm_unfinished(targets, args.take, args.partial)
        .await?;
    let options = Acquire::new().duration(args.duration).reentry(args.reentry);
    let options = args.protect.acquire(args.why.acquire(options));
    let mut options = SetOptions::acquire(args.take.acquire(options, confirmed));
    if args.partial {
        options = options.partial();
    }
    let results = command.lock(targets, options, args.limit).await?;

    let report = LockReport::new(&command, &selection);
    let asked = args.protect.asked();
    report.all_protected(&nodes, results, asked.as_ref()).await
}
