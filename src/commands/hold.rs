//! `hold`: an administrator's hold, which lasts until `unhold`.

use clap::Args;
use maintenance_lease::{Hold, SetOptions, TakeOver};
use node_keys::OptOuts;

use crate::args::change::ChangingArgs;
use crate::args::protect::{asked, opt_outs};
use crate::args::take_expired::TakeExpiredArgs;
use crate::args::until::{Until, until};
use crate::args::wait::WaitingArgs;
use crate::args::write::{TicketArgs, non_empty_reason};
use crate::error::{Failure, InvalidValue, Verb};
use crate::exit::Code;
use crate::run::confirm::Confirmed;
use crate::run::lock_command::LockCommand;
use crate::run::report::LockReport;
use crate::run::session::Start;
use crate::run::targets::names;

/// Put nodes on hold (a lock without an expiry)
///
/// Use a hold if the work takes longer than an hour, or for an unknown time: for example, a broken
/// disk. It lasts until somebody ends it with unhold or takes it over. `release NODE` also ends your own. After
/// the time in --expect-until, status shows it as overdue.
///
/// If somebody else holds the lock, the error shows who, and the exit code is 3. Use --take-over to
/// take it over. Your own hold keeps its ticket and time unless you give new ones. A hold that fence placed is
/// not changed (exit code 6). docs/tasks.md explains holds of multiple nodes.
///
/// The Node gets the label kubectl-maint.dev/held, if you may patch Nodes. It tells other tools and the node
/// policy that the node is on hold. Neither the label nor --cordon stops `kubectl drain`: it evicts the pods
/// even if the node policy refuses its cordon.
#[derive(Args, Debug)]
#[command(mut_args(|arg| match arg.get_id().as_str() {
    // Unlike `mut_arg`, this keeps the order of the flags.
    "wait" => arg.long_help(
        "Wait for the nodes to be unlocked\n\n\
         A lock of your own becomes the hold at once. A dry run does not wait."
    ),
    "selector" => arg.long_help(
        "Select nodes by label (e.g. pool=gpu,zone!=a)\n\n\
         You are asked to confirm if it selects more than 10 nodes."
    ),
    _ => arg,
}))]
#[command(after_help = "Examples:
  kubectl maint hold worker-1 -m \"bad DIMM, parts ordered\" --expect-until 2d
  kubectl maint hold -l rack=7 -m \"rack moves\" --expect-until 2026-11-22T18:00Z
  kubectl maint hold worker-1 -m \"bad DIMM\" --wait --timeout 10m
  kubectl maint hold worker-1 -m \"bad DIMM\" --ticket OPS-7 --cordon
  kubectl maint hold worker-1 -m \"burning smell\" --take-over")]
pub(crate) struct HoldArgs {
    /// Reason for the hold, shown to others
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", required = true, value_parser = given_reason)]
    pub(crate) message: String,

    #[command(flatten)]
    pub(crate) ticket: TicketArgs,

    /// Expected end, shown to others (e.g. 2d, 18:00Z)
    #[arg(long, value_name = "TIME", value_parser = until)]
    pub(crate) expect_until: Option<Until>,

    /// Cordon the node until the hold ends
    ///
    /// unhold uncordons it, unless it was cordoned before.
    #[arg(long)]
    pub(crate) cordon: bool,

    /// Take over somebody else's lock (asks first)
    #[arg(long, conflicts_with = "wait")]
    pub(crate) take_over: bool,

    /// Set the opt-outs of these tools, or auto or none
    ///
    /// An opt-out is a label or annotation that tells another tool to leave the node alone. unhold removes it.
    /// auto sets those of cluster-autoscaler and node-healthcheck, and those of karpenter and fluo if they
    /// manage the node. docs/other-tools.md explains what each of them stops.
    #[arg(long, value_name = "TOOL,...", default_value = "auto", value_parser = opt_outs)]
    pub(crate) opt_outs: OptOuts,

    #[command(flatten)]
    pub(crate) take: TakeExpiredArgs,

    #[command(flatten)]
    pub(crate) limit: WaitingArgs,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

fn given_reason(typed: &str) -> Result<String, InvalidValue> {
    non_empty_reason(typed, InvalidValue::NoReason)
}

pub(crate) async fn run(args: &HoldArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(None, start.terminal)?;
    let mut command =
        LockCommand::begin_locking(start, &args.change, Verb::Hold, args.limit).await?;
    command.expected_end = args.expect_until;
    let locks = &command.session.locks;
    let (targets, confirmed) = match args.take_over {
        true => {
            command
                .targets_to_take_over(&selection, true, TakeOver::Hold)
                .await?
        }
        false => (
            command.targets(&selection, true).await?,
            Confirmed::default(),
        ),
    };
    let nodes = names(&targets);
    // The server's time is known only after a read.
    let (targets, unfinished) = command
        .confirm_unfinished(targets, args.take, false)
        .await?;
    let asked = asked(args.cordon, args.opt_outs.clone());
    let hold = Hold::new(&args.message).keys(asked.to_string());
    let mut options = args.take.hold(hold, unfinished);
    if let Some(ticket) = &args.ticket.ticket {
        options = options.ticket(ticket);
    }
    if let Some(until) = args.expect_until {
        let now = locks.server_time().now();
        options = options.until(until.after(now)?);
    }

    let options = options.take_over(confirmed.values().cloned());
    let options = SetOptions::hold(options).partial();
    let results = command.lock(targets, options, args.limit).await?;
    let mut report = LockReport::new(&command, &selection);
    report.confirmed = Some(&confirmed);
    report.because = Some(&args.message);
    report.all_protected(&nodes, results, Some(&asked)).await
}
