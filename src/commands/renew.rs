//! `renew`: extend locks.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use maintenance_lease::protocol::{Now, Refusal, Span};
use maintenance_lease::{Error, LONGEST_DURATION, Renew};

use crate::args::change::ChangingArgs;
use crate::args::duration::{self, Extension};
use crate::args::lock_id::LockIdArgs;
use crate::args::until::{Until, time};
use crate::args::write::reason;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::lock_command::LockCommand;
use crate::run::report::Report;
use crate::run::session::{Session, Start};
use crate::run::targets::{Target, names};

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
    let ids = args
        .lock_id
        .given(&start.connection.token, start.environment)?;
    let mut options = Renew::new();
    if let Some(ids) = ids
        && let Some(id) = ids.demanded(&selection)?
    {
        options = options.lock_id(id);
    }
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let command = LockCommand::begin(start, &args.change, Verb::Renew).await?;
    let session = &command.session;
    let mut targets = command.targets(&selection, false).await?;
    let nodes = names(&targets);
    let is_added = matches!(args.duration, Some(Extension::Added(_)));
    if args.until.is_some() || is_added {
        targets = command.read(targets, false).await?;
    }
    let mut report = Report::new(&command, &selection);
    report.requested = match (args.until, args.duration) {
        (Some(until), _) => Some(command.duration_until(&nodes, until)?),
        (None, Some(Extension::FromNow(duration))) => Some(duration),
        _ => None,
    };
    // If one of them can't be extended so far, nothing is written to the others.
    let mut durations = HashMap::new();
    for target in &targets {
        if let Some(Extension::Added(added)) = args.duration {
            let extended = command
                .now()
                .and_then(|now| extended(target, added, now, session));
            durations.insert(target.node.clone(), command.or_failed(&nodes, extended)?);
        }
    }
    let (locks, options) = (&session.locks, &options);
    let (requested, durations) = (report.requested, &durations);
    let renew = |Target { node, seen }| async move {
        let options = match requested.or(durations.get(&node).copied()) {
            Some(duration) => &options.clone().duration(duration),
            None => options,
        };
        match locks.renew_seen(&node, options, seen).await {
            Err(Error::Refused(refused))
                if refused.refusal == Refusal::NotHeld && refused.lease.is_none() =>
            {
                session.must_exist(&node).await?;
                Err(Error::Refused(refused).into())
            }
            result => Ok(result?),
        }
    };
    report.each(targets, renew).await
}

/// The duration from `now` that adds `added` to what is left of the caller's lock on `target`.
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
    // If nothing is left, the library renews it from now on, or refuses to.
    let left = own.map_or(Duration::ZERO, |lease| lease.left(now));
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
