//! `release`: release the caller's lock, or another's by force.

use clap::Args;
use maintenance_lease::protocol::{LockId, Refusal};
use maintenance_lease::{Change, Done, Error, Refused, Release, TakeOver};

use crate::args::change::ChangingArgs;
use crate::args::lock_id::LockIdArgs;
use crate::args::output::offers_no_lock_id;
use crate::args::write::reason;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::confirm::Confirmed;
use crate::run::fencing::may_end;
use crate::run::lock_command::LockCommand;
use crate::run::report::LockReport;
use crate::run::session::{Session, Start};
use crate::run::targets::Target;

/// Release locks
///
/// It is not an error if a node is already free, or if --mine finds no lock, so you can use this command in
/// cleanup traps. If somebody else holds the lock, the exit code is 3. It refuses to end the lock of a
/// fenced node (exit code 6): use unfence.
///
/// If you name a node, your hold on it ends too. With -l, --all or --mine, your holds stay.
///
/// Use --force to end somebody else's lock. You are shown who holds it and are asked to confirm. They
/// may still be working on the node, so talk to them first.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_lock_id),
    after_help = "Examples:
  kubectl maint release worker-1
  kubectl maint release --mine
  trap 'kubectl maint release worker-1 --lock-id \"$LOCK_ID\"' EXIT
  kubectl maint release worker-1 --force -m \"bob is on holiday\""
)]
pub(crate) struct ReleaseArgs {
    /// Select all nodes that you have locked
    #[arg(long)]
    pub(crate) mine: bool,

    /// End somebody else's lock (not a hold), after a confirmation
    ///
    /// To end somebody else's hold, use unhold.
    #[arg(long, conflicts_with = "mine")]
    pub(crate) force: bool,

    /// Note for the next holder; with --force, the reason to record
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Treat a node that does not exist as released
    #[arg(long)]
    pub(crate) ignore_not_found: bool,

    #[command(flatten)]
    pub(crate) lock_id: LockIdArgs,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &ReleaseArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(Some(args.mine), start.terminal)?;
    let ids = args.lock_id.given_for(&selection, start.environment)?;
    if let Some(ids) = ids.as_ref().filter(|_| args.force) {
        return Err(InputError::LockIdWithForce { source: ids.source }.into());
    }
    let mut options = Release::new();
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let command = LockCommand::begin(start, &args.change, Verb::Release).await?;
    let session = &command.session;
    let (targets, confirmed) = match args.force {
        true => {
            command
                .targets_to_take_over(&selection, false, TakeOver::Release)
                .await?
        }
        false => (
            command.targets(&selection, false).await?,
            Confirmed::default(),
        ),
    };

    let mut report = LockReport::new(&command, &selection);
    report.confirmed = Some(&confirmed);
    report.because = args.message.as_deref();
    let (options, confirmed, ids) = (&options, &confirmed, ids.as_ref());
    let release = |target: Target| async move {
        match confirmed.get(&target.node) {
            Some(lease) => {
                let releasing = session.locks.force_release(lease, options);
                Ok(session.end_lock(releasing).await?)
            }
            None => {
                let demanded = ids.and_then(|ids| ids.of_node(&target.node));
                release(args, session, options, demanded, target).await
            }
        }
    };
    report.each(targets, release).await
}

async fn release(
    args: &ReleaseArgs,
    session: &Session<'_>,
    options: &Release,
    demanded: Option<&LockId>,
    target: Target,
) -> Result<Change, Failure> {
    let Target { node, seen } = target;
    let seen = match seen {
        Some(seen) => seen,
        None => session.locks.read(&node, false).await?,
    };
    // Another holder is named first.
    let lease = seen.lease.as_ref();
    let ends = lease.filter(|lease| args.force || session.locks.is_own(lease));
    may_end(ends, session.locks.server_time().now())?;
    let exists = seen.row.row().is_some();
    let options = match demanded {
        Some(id) => &options.clone().lock_id(id.clone()),
        None => options,
    };
    let releasing = session.locks.release(seen, options);
    let change = match session.end_lock(releasing).await {
        Err(Error::Refused(refused)) if refused.refusal == Refusal::OwnHold => {
            return end_own_hold(session, *refused).await;
        }
        change => change.map_err(|error| Failure::of_lock_id(error, demanded))?,
    };
    let never_locked = change.done == Done::AlreadyFree && change.lease.is_none();
    if never_locked && !exists && !args.ignore_not_found {
        session.must_exist(&node).await?;
    }
    Ok(change)
}

/// Ends the hold that a release was refused for, as unhold does.
async fn end_own_hold(session: &Session<'_>, refused: Refused) -> Result<Change, Failure> {
    let Some(lease) = &refused.lease else {
        return Err(Error::Refused(Box::new(refused)).into());
    };
    let unholding = session.locks.unhold(lease.clone(), Some(lease));
    Ok(session.end_lock(unholding).await?)
}
