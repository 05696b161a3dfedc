//! `renew`: extend locks.

use clap::Args;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, Renew};

use crate::args::change::ChangingArgs;
use crate::args::duration;
use crate::args::lock_id::LockIdArgs;
use crate::args::write::reason;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::change::{ChangeReport, VerbRun, must_exist};
use crate::run::session::Start;
use crate::run::targets::Target;

/// Extend your locks
///
/// The lock then expires after --duration, counted from now. Without --duration, the duration of the
/// acquisition is used again. Renewing never makes a lock expire earlier; to end it, use release.
///
/// You can also renew your lock after it has expired, if nobody has acquired it since. If the lock is
/// no longer yours, the exit code is 3.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint renew worker-1
  kubectl maint renew worker-1 --duration 1h -m \"firmware takes longer\"
  kubectl maint renew --mine")]
pub(crate) struct RenewArgs {
    /// Select all nodes that you have locked
    #[arg(long)]
    pub(crate) mine: bool,

    /// Time from now until the lock expires, at most 1h (e.g. 90s, 30m)
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = duration::lease
    )]
    pub(crate) duration: Option<std::time::Duration>,

    /// New reason for the lock
    #[arg(short = 'm', long, alias = "reason", value_name = "REASON", value_parser = reason)]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) lock_id: LockIdArgs,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &RenewArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(Some(args.mine), start.terminal)?;
    let demanded = args
        .lock_id
        .demanded(&start.connection.token, start.environment, &selection)?;
    let mut options = Renew::new();
    if let Some(id) = demanded {
        options = options.lock_id(id);
    }
    if let Some(duration) = args.duration {
        options = options.duration(duration);
    }
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let work = VerbRun::begin(start, &args.change, Verb::Renew).await?;
    let session = &work.session;
    let targets = work.targets(&selection, false).await?;
    let (locks, options) = (&session.locks, &options);
    let report = ChangeReport::new(&work).requested(args.duration);
    work.each(targets, report, |Target { node, seen }| async move {
        match locks.renew_seen(&node, options, seen).await {
            Err(Error::Refused(refused))
                if refused.refusal == Refusal::NotHeld && refused.lease.is_none() =>
            {
                must_exist(session, &node).await?;
                Err(Error::Refused(refused).into())
            }
            result => Ok(result?),
        }
    })
    .await
}
