//! `unhold`: end an administrator's hold.

use clap::Args;
use maintenance_lease::protocol::{State, identity};
use maintenance_lease::{Done, NodeLease};

use super::targets::Target;
use super::work::{Report, Work, is_anothers, must_exist};
use crate::cli::changing::ChangingArgs;
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::verb::Verb;
use crate::session::{Session, Start};

/// End the hold of nodes
///
/// A node that nobody has is no error. The hold of somebody else, also one made by hand with plain
/// kubectl, is ended after a confirmation that names them. A lease is not a hold: release is for
/// leases.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint unhold worker-1
  kubectl maint unhold --mine")]
pub(crate) struct UnholdArgs {
    /// All nodes that you have on hold
    #[arg(long)]
    pub(crate) mine: bool,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &UnholdArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(args.mine)?;
    let session = start
        .writing(&args.change.holder, &args.change.write)
        .await?;
    let work = Work {
        session: &session,
        args: &args.change,
        verb: Verb::Unhold,
    };
    let own = identity::hold_identity(session.locks.identity());
    let is_mine = |lease: &NodeLease| lease.holder() == Some(&own);
    let targets = work.targets(&selection, false, &is_mine).await?;
    let targets = work.look(targets, false).await?;
    let is_broken = |lease: &NodeLease| is_anothers_hold(&session, lease);
    work.confirm_breaking(&targets, is_broken)?;

    let session = &session;
    let report = Report::new(work).of(&selection);
    work.each(targets, report, |target| async move {
        let Target { node, seen } = target;
        let confirmed = seen
            .as_ref()
            .and_then(|seen| seen.lease.clone())
            .filter(|lease| is_anothers_hold(session, lease));
        let exists = seen.as_ref().is_some_and(|seen| seen.row.row().is_some());
        let change = session
            .locks
            .unhold_seen(&node, confirmed.as_ref(), seen)
            .await?;
        if change.done == Done::AlreadyFree && change.lease.is_none() && !exists {
            must_exist(session, &node).await?;
        }
        Ok(change)
    })
    .await
}

fn is_anothers_hold(session: &Session<'_>, lease: &NodeLease) -> bool {
    let now = session.locks.server_time().now();
    lease.state(now) == State::AdminHold && is_anothers(session, lease)
}
