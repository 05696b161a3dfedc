//! `hold`: an administrator's hold, which lasts until it is ended.

use clap::Args;
use maintenance_lease::{Hold, SetOptions};

use crate::args::change::ChangingArgs;
use crate::args::until::{Until, until};
use crate::args::wait::PatienceArgs;
use crate::args::write::reason;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::run::change::{Got, Report, Work};
use crate::run::confirm::Confirmed;
use crate::run::lock_set::Taking;
use crate::run::session::Start;
use crate::run::targets::Target;
use crate::words::program::Program;

/// Hold nodes until you unhold them
///
/// For what takes longer than an hour, or nobody knows how long: a broken disk, a rack that moves.
/// A hold never expires. --until says when it is meant to be over: status then marks it as overdue,
/// and nothing ends it by itself.
///
/// Where somebody else has the node they are named; exit code 3. --take-over takes it from them,
/// after a confirmation. Of several nodes each is put on hold on its own, whatever becomes of the
/// others; what could not be had is named.
///
/// --wait waits until they release it, or their lease runs out: several nodes are then taken all or
/// none, one after another in the order of their names. A dry run waits for nobody.
///
/// A hold of yours is kept, with the new reason and end. One that fence took is left as it is (exit
/// code 6).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint hold worker-1 -m \"disk is being replaced\" --until 2d
  kubectl maint hold -l rack=7 -m \"rack moves\" --until 2026-05-31T18:00:00+02:00
  kubectl maint hold worker-1 -m \"disk is being replaced\" --wait
  kubectl maint hold worker-1 -m \"fire\" --take-over")]
pub(crate) struct HoldArgs {
    /// Why, for everybody who meets the hold
    #[arg(short = 'm', long, alias = "reason", value_name = "REASON", required = true, value_parser = given_reason)]
    pub(crate) message: String,

    /// When it is meant to be over: a time with a zone, or a length such as 2d or 90m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = until)]
    pub(crate) until: Option<Until>,

    /// Take it from whoever has it
    #[arg(long, conflicts_with = "wait")]
    pub(crate) take_over: bool,

    #[command(flatten)]
    pub(crate) patience: PatienceArgs,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

fn given_reason(typed: &str) -> Result<String, String> {
    if typed.trim().is_empty() {
        return Err("a hold needs a reason, because it may last long".to_owned());
    }
    reason(typed)
}

pub(crate) async fn run(args: &HoldArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(None, start.terminal)?;
    let work = Work::begin(start, &args.change, Verb::Hold).await?;
    let session = &work.session;
    let targets = work.targets(&selection, true).await?;
    // The server's time is known once something was read.
    let targets = work.look(targets, true).await?;
    let mut options = Hold::new(&args.message);
    if let Some(until) = args.until {
        options = options.until(until.after(session.locks.server_time().now().latest)?);
    }
    let confirmed = match args.take_over {
        true => work.confirm_breaking(&targets).await?,
        false => Confirmed::default(),
    };

    let report = Report::new(&work)
        .breaking(&confirmed)
        .because(Some(&args.message))
        .then(then);
    let nodes = targets.names().map(ToOwned::to_owned).collect();
    let single = targets.single;
    let patience = args.patience.patience().filter(|_| !work.is_dry_run());
    let taking = if patience.is_some() {
        Taking::set(&work, targets.nodes, SetOptions::hold(options), patience).await
    } else {
        let (locks, options, confirmed) = (&session.locks, &options, &confirmed);
        let hold = |Target { node, seen }| async move {
            let confirmed = confirmed.get(&node);
            Ok(locks.hold_seen(&node, options, confirmed, seen).await?)
        };
        Taking::each(&work, targets.nodes, hold).await
    };
    taking.tell(report, nodes, single).await
}

/// What ends it, to be copied.
fn then(program: &Program, nodes: &str, got: &Got) -> String {
    let (does, them) = match got.count {
        1 => ("A hold does not expire", "it"),
        _ => ("Holds do not expire", "them"),
    };
    format!("{does}. To end {them}: {program} unhold {nodes}")
}
