//! `renew`: extend locks.

use clap::Args;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, Renew};

use crate::args::change::ChangingArgs;
use crate::args::duration::{self, Extension};
use crate::args::lock_id::LockIdArgs;
use crate::args::write::reason;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::lock_command::LockCommand;
use crate::run::report::LockReport;
use crate::run::session::Start;
use crate::run::targets::Target;

/// Extend your locks
///
/// The lock then expires after --duration, counted from now. With a plus, as in --duration +20m, the time is added
/// to what is left. A retry never adds it twice. Without --duration, the last duration is used again. Renewing never
/// makes a lock expire earlier; to end it, use release.
///
/// You can also renew your lock after it has expired, if nobody has acquired it since. If the lock is
/// no longer yours, the exit code is 3.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint renew worker-1
  kubectl maint renew worker-1 --duration +20m
  kubectl maint renew worker-1 --duration 1h -m \"firmware takes longer\"
  kubectl maint renew --mine")]
pub(crate) struct RenewArgs {
    /// Select all nodes that you have locked
    #[arg(long)]
    pub(crate) mine: bool,

    /// Time from now until the lock expires, at most 1h (e.g. 90s, 30m); +20m adds to what is left
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration::extension
    )]
    pub(crate) duration: Option<Extension>,

    /// New reason for the lock
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) lock_id: LockIdArgs,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &RenewArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(Some(args.mine), start.terminal)?;
    let ids = args.lock_id.given_for(&selection, start.environment)?;
    let mut options = Renew::new();
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let command = LockCommand::begin(start, &args.change, Verb::Renew).await?;
    let session = &command.session;
    let targets = command.targets(&selection, false).await?;
    options = match args.duration {
        Some(Extension::FromNow(duration)) => options.duration(duration),
        Some(Extension::Added(added)) => options.added(added),
        None => options,
    };
    let (locks, options, command, ids) = (&session.locks, &options, &command, ids.as_ref());
    let renew = |target: Target| async move {
        let node = target.node.clone();
        let demanded = ids.and_then(|ids| ids.of_node(&node));
        let options = match demanded {
            Some(id) => &options.clone().lock_id(id.clone()),
            None => options,
        };
        match locks.renew(target, options).await {
            Err(Error::Refused(refused))
                if refused.refusal == Refusal::NotHeld && refused.lease.is_none() =>
            {
                session.must_exist(&node).await?;
                Err(Error::Refused(refused).into())
            }
            result => {
                let change = result.map_err(|error| Failure::of_lock_id(error, demanded))?;
                if !command.is_dry_run() {
                    let renewed = std::slice::from_ref(&change);
                    session.set_keys(renewed, None).await;
                }
                Ok(change)
            }
        }
    };
    LockReport::new(command, &selection)
        .each(targets, renew)
        .await
}
