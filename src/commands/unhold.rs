//! `unhold`: end an administrator's hold.

use clap::Args;
use maintenance_lease::Done;
use pod_safety::fencing::is_of_fencing;

use crate::args::change::ChangingArgs;
use crate::args::output::offers_no_lock_id;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::change::{Report, Work, must_exist};
use crate::run::session::Start;
use crate::run::targets::Target;
use crate::words::fencing::hold_of_fencing;

/// End the hold of nodes
///
/// A node that nobody has is no error. The hold of somebody else, also one made by hand with plain
/// kubectl, is ended after a confirmation that names them. A lease is not a hold: release is for
/// leases. The hold that fence took is refused (exit code 6): unfence ends it.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_lock_id),
    after_help = "Examples:
  kubectl maint unhold worker-1
  kubectl maint unhold --mine"
)]
pub(crate) struct UnholdArgs {
    /// All nodes that you have on hold
    #[arg(long)]
    pub(crate) mine: bool,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &UnholdArgs, start: &Start<'_>) -> Result<Code, Failure> {
    args.change.output.without_lock_ids()?;
    let selection = args.change.selection(Some(args.mine), start.terminal)?;
    let work = Work::begin(start, &args.change, Verb::Unhold).await?;
    let session = &work.session;
    let targets = work.targets(&selection, false).await?;
    let targets = work.look(targets, false).await?;
    let confirmed = work.confirm_breaking(&targets).await?;

    let report = Report::new(&work).of(&selection).breaking(&confirmed);
    let confirmed = &confirmed;
    work.each(targets, report, |target| async move {
        let Target { node, seen } = target;
        let lease = seen.as_ref().and_then(|seen| seen.lease.as_ref());
        let now = session.locks.server_time().now();
        if let Some(lease) = lease.filter(|lease| is_of_fencing(lease, now)) {
            return Err(hold_of_fencing(lease, now, session.program));
        }
        let exists = seen.as_ref().is_some_and(|seen| seen.row.row().is_some());
        let change = session
            .locks
            .unhold_seen(&node, confirmed.get(&node), seen)
            .await?;
        if change.done == Done::AlreadyFree && change.lease.is_none() && !exists {
            must_exist(session, &node).await?;
        }
        Ok(change)
    })
    .await
}
