//! `release`: give a lock back, or break another's.

use clap::Args;
use maintenance_lease::protocol::{State, Token};
use maintenance_lease::{Change, Done, Error, NodeLease, Release, Seen, Sight};

use super::problems::Problems;
use super::targets::{Target, Targets};
use super::{confirm, events, many, targets};
use crate::cli::holder::HolderArgs;
use crate::cli::nodes::NodeArgs;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::writing::{WriteArgs, reason};
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::item::Item;
use crate::report::{change, print};
use crate::session::{Session, Start};
use crate::terminal::escape;

/// Give the maintenance lock of nodes back
///
/// Made for cleanup traps: a node that is free already is no error, and exit code 3 says that
/// somebody else holds it. --force breaks the lease of somebody else, after a confirmation that
/// names them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint release worker-1
  kubectl maint release --mine
  trap 'kubectl maint release worker-1 --token \"$TOKEN\"' EXIT
  kubectl maint release worker-1 --force -m \"bob is on holiday\"")]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// All nodes that you hold
    #[arg(long)]
    pub(crate) mine: bool,

    /// Give back the acquisition of this token only; a bearer token for the API server is recognised
    /// as such
    #[arg(id = "token", long = "token", value_name = "TOKEN")]
    pub(crate) tokens: Vec<String>,

    /// Break the lease of whoever holds it
    #[arg(long)]
    pub(crate) force: bool,

    /// Why: a word for who looks next, and with --force for the record
    #[arg(short = 'm', long, value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// A node that does not exist is no error
    #[arg(long)]
    pub(crate) ignore_not_found: bool,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &ReleaseArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.nodes.selection(args.mine, std::io::stdin())?;
    let session = start.writing(&args.holder, &args.write).await?;
    let mut options = Release::new();
    if let Some(token) = token(&args.tokens)? {
        options = options.token(token);
    }
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }
    let identity = session.locks.identity().to_owned();
    let is_mine = |lease: &NodeLease| lease.holder() == Some(&identity);
    let mut targets = targets::find(&session, selection.clone(), false, &is_mine).await?;
    confirm::all_nodes(&session, &selection, &targets, "release", args.write.yes)?;
    if args.force {
        confirm_breaking(&session, &mut targets, args.write.yes).await?;
    }

    let work = Work {
        session: &session,
        args,
        options,
    };
    let mut results = Vec::new();
    many::in_order(
        targets.nodes.clone(),
        args.nodes.parallel,
        |target| work.release(target),
        |_, result| results.push(result),
    )
    .await;
    work.report(&targets, results).await
}

/// The acquisition that `--token` names, if any does: connection tokens look different.
///
/// # Errors
/// Where several are given.
pub(crate) fn token(typed: &[String]) -> Result<Option<Token>, Failure> {
    let mut tokens = typed.iter().filter_map(|typed| typed.parse().ok());
    match (tokens.next(), tokens.next()) {
        (token, None) => Ok(token),
        (_, Some(_)) => Err(Failure::usage(
            "several tokens of acquisitions given",
            "one token is for one node",
        )),
    }
}

/// Shows whose leases would be broken, and asks. What was shown is what will be broken, and nothing
/// else.
async fn confirm_breaking(
    session: &Session<'_>,
    targets: &mut Targets,
    yes: bool,
) -> Result<(), Failure> {
    for target in &mut targets.nodes {
        if target.seen.is_none() {
            target.seen = Some(session.locks.see(&target.node, false).await?);
        }
    }
    let now = session.locks.server_time().now();
    let broken: Vec<&NodeLease> = targets
        .nodes
        .iter()
        .filter_map(|target| target.seen.as_ref()?.lease.as_ref())
        .filter(|lease| is_anothers(session, lease, now))
        .collect();
    confirm::breaking(session, &broken, "Break it?", now, yes)
}

/// Somebody else has a lease, and no hold, on it.
fn is_anothers(
    session: &Session<'_>,
    lease: &NodeLease,
    now: maintenance_lease::protocol::Now,
) -> bool {
    matches!(lease.state(now), State::Held { .. } | State::Expired { .. })
        && !session.locks.is_own(lease)
}

struct Work<'a> {
    session: &'a Session<'a>,
    args: &'a ReleaseArgs,
    options: Release,
}

impl Work<'_> {
    async fn release(&self, target: Target) -> Result<Change, Failure> {
        let locks = &self.session.locks;
        let now = locks.server_time().now();
        if self.args.force
            && let Some(Seen {
                lease: Some(lease), ..
            }) = &target.seen
            && is_anothers(self.session, lease, now)
        {
            return Ok(locks.force_release(lease, &self.options).await?);
        }
        let change = locks
            .release_seen(&target.node, &self.options, target.seen)
            .await?;
        let never_locked = change.done == Done::AlreadyFree && change.lease.is_none();
        if never_locked
            && !self.args.ignore_not_found
            && locks.see_node(&target.node).await? == Sight::Missing
        {
            return Err(Error::NodeNotFound(target.node).into());
        }
        Ok(change)
    }

    async fn report(
        &self,
        targets: &Targets,
        results: Vec<Result<Change, Failure>>,
    ) -> Result<Code, Failure> {
        let Self { session, args, .. } = self;
        let terminal = session.terminal;
        let problems = Problems::new(session);
        let format = args.output.format();
        let mut items = Vec::new();
        let mut events = Vec::new();
        for result in results {
            let now = session.locks.server_time().now();
            match result {
                Err(failure) => problems.tell(&failure),
                Ok(change) => {
                    items.push(Item::of_change(&change, now));
                    if matches!(format, Format::Text | Format::Wide) {
                        terminal.result(change::line(&change, now, args.write.dry_run));
                    }
                    let broken = change
                        .before
                        .as_ref()
                        .is_some_and(|before| !session.locks.is_own(before));
                    if change.done == Done::Released && broken {
                        if let Some(warning) = change::still_acting(&change, now) {
                            terminal.warn(warning);
                        }
                        events.push(events::of_change(
                            &change,
                            "MaintenanceLockBroken",
                            broken_message(&change, session.locks.identity(), &args.message),
                            true,
                        ));
                    }
                }
            }
        }
        if let Some(text) = print::items(items, targets.single, format)? {
            terminal.data(text);
        }
        events::post(session, events, args.write.dry_run.into()).await;
        Ok(problems.end().await)
    }
}

fn broken_message(change: &Change, by: &str, why: &Option<String>) -> String {
    let holder = change
        .before
        .as_ref()
        .and_then(NodeLease::holder)
        .map(escape)
        .unwrap_or_default();
    let why = why
        .as_ref()
        .map(|why| format!(": {}", escape(why)))
        .unwrap_or_default();
    format!(
        "{} broke the maintenance lease of {holder}{why}",
        escape(by)
    )
}
