//! `unhold`: end an administrator's hold.

use clap::Args;
use maintenance_lease::{Done, TakeOver};

use crate::args::change::ChangingArgs;
use crate::args::output::offers_no_lock_id;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::fencing::may_end;
use crate::run::lock_command::LockCommand;
use crate::run::report::LockReport;
use crate::run::session::Start;
use crate::run::targets::Target;

/// End holds
///
/// The held label and the opt-outs are removed, too. If `hold --cordon` cordoned the node, it is uncordoned.
///
/// It is not an error if a node is already free. If the hold is not yours, or was made by hand with
/// kubectl, you are shown whose it is and are asked to confirm.
///
/// It refuses to end a lock that is not a hold (exit code 3): use release. It refuses to end the hold of a fenced
/// node (exit code 6): use unfence.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_lock_id),
    after_help = "Examples:
  kubectl maint unhold worker-1
  kubectl maint unhold --mine"
)]
pub(crate) struct UnholdArgs {
    /// Select all nodes that you have on hold
    #[arg(long)]
    pub(crate) mine: bool,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &UnholdArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(Some(args.mine), start.terminal)?;
    let command = LockCommand::begin(start, &args.change, Verb::Unhold).await?;
    let (command, session) = (&command, &command.session);
    let (targets, confirmed) = command
        .targets_to_take_over(&selection, false, TakeOver::Unhold)
        .await?;

    let mut report = LockReport::new(command, &selection);
    report.confirmed = Some(&confirmed);
    let confirmed = &confirmed;
    let unhold = |target: Target| async move {
        let node = target.node.clone();
        let seen = target.seen.as_ref();
        let lease = seen.and_then(|seen| seen.lease.as_ref());
        let now = session.locks.server_time().now();
        may_end(lease, now)?;
        let exists = seen.is_some_and(|seen| seen.row.row().is_some());
        let unholding = session.locks.unhold(target, confirmed.get(&node));
        let change = session.end_lock(unholding).await?;
        if change.done == Done::AlreadyFree && change.lease.is_none() && !exists {
            session.must_exist(&node).await?;
        }
        Ok(change)
    };
    report.each(targets, unhold).await
}
