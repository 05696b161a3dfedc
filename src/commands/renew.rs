//! `renew`: extend locks.

use std::time::Duration;

use clap::Args;
use maintenance_lease::protocol::{Now, Refusal, Span, State};
use maintenance_lease::{Error, LONGEST_DURATION, Renew};

use crate::args::change::ChangingArgs;
use crate::args::duration::{self, Extension};
use crate::args::lock_id::LockIdArgs;
use crate::args::until::{Until, time};
use crate::args::write::reason;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::change::{ChangeReport, VerbRun, must_exist};
use crate::run::session::{Session, Start};
use crate::run::targets::Target;

/// Extend your locks
///
/// The lock then expires after --duration, counted from now, or at --until. With a plus, as in
/// --duration +20m, the time is added to what is left. Without either, the duration of the acquisition is
/// used again. Renewing never makes a lock expire earlier; to end it, use release.
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
        allow_hyphen_values = true,
        value_parser = duration::extension
    )]
    pub(crate) duration: Option<Extension>,

    /// Time of day when the lock expires, at most 1h from now (e.g. 18:00Z)
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with = "duration",
        value_parser = time
    )]
    pub(crate) until: Option<Until>,

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
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let work = VerbRun::begin(start, &args.change, Verb::Renew).await?;
    let session = &work.session;
    let mut targets = work.targets(&selection, false).await?;
    let added = match args.duration {
        Some(Extension::Added(added)) => Some(added),
        _ => None,
    };
    if args.until.is_some() || added.is_some() {
        targets = work.read(targets, false).await?;
    }
    let requested = match (args.until, args.duration) {
        (Some(until), _) => Some(work.duration_until(&targets.to_names(), until)?),
        (None, Some(Extension::FromNow(duration))) => Some(duration),
        _ => None,
    };
    let duration = |target: &Target| match added {
        Some(added) => extended(target, added, work.now()?, session).map(Some),
        None => Ok(requested),
    };
    // If one of them can't be extended so far, nothing is written to the others.
    let names = targets.to_names();
    for target in &targets.nodes {
        work.reported(&names, duration(target))?;
    }
    let (locks, options, duration) = (&session.locks, &options, &duration);
    let report = ChangeReport::new(&work).requested(requested);
    work.each(targets, report, |target| async move {
        let options = match duration(&target)? {
            Some(duration) => &options.clone().duration(duration),
            None => options,
        };
        let Target { node, seen } = target;
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

/// The duration from `now` that adds `added` to what is left of the lock on `target`.
///
/// # Errors
/// If the lock would end too far ahead.
fn extended(
    target: &Target,
    added: Duration,
    now: Now,
    session: &Session<'_>,
) -> Result<Duration, Failure> {
    let lease = target.seen.as_ref().and_then(|seen| seen.lease.as_ref());
    let own = lease.filter(|lease| session.locks.is_own(lease));
    let left = match own.map(|lease| lease.state(now)) {
        Some(State::Held { until }) => (until - now.latest).to_duration(),
        // Whatever else it is, the library renews it from now on, or refuses to.
        _ => Duration::ZERO,
    };
    let seconds = Span::from(left.saturating_add(added)).ceil_seconds();
    let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    match duration <= LONGEST_DURATION {
        true => Ok(duration),
        false => Err(InputError::LongExtension {
            node: target.node.clone(),
            left,
            added,
        }
        .into()),
    }
}
