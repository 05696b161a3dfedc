//! `release`: give a lock back, or break another's.

use clap::Args;
use maintenance_lease::{Change, Done, Release};

use super::confirm::Confirmed;
use super::targets::Target;
use super::work::{Report, Work, must_exist};
use crate::cli::changing::ChangingArgs;
use crate::cli::output::offers_no_token;
use crate::cli::writing::reason;
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::verb::Verb;
use crate::session::{Session, Start};

/// Release locks
///
/// It is not an error if a node is already free, so you can use this command in cleanup traps. If
/// somebody else holds the lock, the exit code is 3.
///
/// Use --force to end somebody else's lock. You are shown who holds it and are asked to confirm. They
/// may still be working on the node, so talk to them first.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_token),
    after_help = "Examples:
  kubectl maint release worker-1
  kubectl maint release --mine
  trap 'kubectl maint release worker-1 --token \"$TOKEN\"' EXIT
  kubectl maint release worker-1 --force -m \"bob is on holiday\""
)]
pub(crate) struct ReleaseArgs {
    /// Select all nodes that you have locked
    #[arg(long)]
    pub(crate) mine: bool,

    /// End the lock even if somebody else holds it, after a confirmation
    #[arg(long, conflicts_with = "mine")]
    pub(crate) force: bool,

    /// Note for the next holder; with --force, the reason to record
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Treat a node that does not exist as released
    #[arg(long)]
    pub(crate) ignore_not_found: bool,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &ReleaseArgs, start: &Start<'_>) -> Result<Code, Failure> {
    args.change.output.without_tokens()?;
    let selection = args.change.selection(Some(args.mine), start.terminal)?;
    let demanded = start
        .connection
        .token
        .acquisition(start.environment, &selection)?;
    if demanded.is_some() && args.force {
        return Err(start
            .connection
            .token
            .conflict("--force breaks the lease of another"));
    }
    let mut options = Release::new();
    if let Some(token) = demanded {
        options = options.token(token);
    }
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let work = Work::begin(start, &args.change, Verb::Release).await?;
    let session = &work.session;
    let mut targets = work.targets(&selection, false).await?;
    let mut confirmed = Confirmed::default();
    if args.force {
        targets = work.look(targets, false).await?;
        confirmed = work.confirm_breaking(&targets).await?;
    }

    let report = Report::new(&work)
        .of(&selection)
        .breaking(&confirmed)
        .because(args.message.as_deref());
    let (options, confirmed) = (&options, &confirmed);
    work.each(targets, report, |target| async move {
        match confirmed.get(&target.node) {
            Some(lease) => Ok(session.locks.force_release(lease, options).await?),
            None => release(args, session, options, target).await,
        }
    })
    .await
}

async fn release(
    args: &ReleaseArgs,
    session: &Session<'_>,
    options: &Release,
    target: Target,
) -> Result<Change, Failure> {
    let Target { node, seen } = target;
    let exists = seen.as_ref().is_some_and(|seen| seen.row.row().is_some());
    let change = session.locks.release_seen(&node, options, seen).await?;
    let never_locked = change.done == Done::AlreadyFree && change.lease.is_none();
    if never_locked && !exists && !args.ignore_not_found {
        must_exist(session, &node).await?;
    }
    Ok(change)
}
