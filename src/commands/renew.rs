//! `renew`: hold what is held for longer.

use clap::Args;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, Renew};

use crate::args::change::ChangingArgs;
use crate::args::duration;
use crate::args::lock_id::LockIdArgs;
use crate::args::write::reason;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::change::{Report, Work, must_exist};
use crate::run::session::Start;
use crate::run::targets::Target;

/// Hold nodes that you hold for longer
///
/// The lease then ends the given time from now, or as long from now as it was acquired for. It never
/// ends earlier than before: release for that. A lease of yours that expired is renewed too, where
/// nobody took the node meanwhile; exit code 3 says that it is no longer yours.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint renew worker-1
  kubectl maint renew worker-1 --duration 1h -m \"firmware takes longer\"
  kubectl maint renew --mine")]
pub(crate) struct RenewArgs {
    /// All nodes that you hold
    #[arg(long)]
    pub(crate) mine: bool,

    /// For how long from now: up to 1h; as long as it was acquired for where it is left away
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = duration::lease
    )]
    pub(crate) duration: Option<std::time::Duration>,

    /// Replace the reason
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

    let work = Work::begin(start, &args.change, Verb::Renew).await?;
    let session = &work.session;
    let targets = work.targets(&selection, false).await?;
    let (locks, options) = (&session.locks, &options);
    let report = Report::new(&work).asked_for(args.duration);
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
