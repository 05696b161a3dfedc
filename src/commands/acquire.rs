//! `acquire`: take the lock of nodes that nobody holds.

use clap::Args;
use maintenance_lease::Acquire;

use super::taking::Taking;
use super::work::{Report, Work};
use crate::cli::changing::ChangingArgs;
use crate::cli::duration;
use crate::cli::writing::reason;
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::verb::Verb;
use crate::session::Start;

/// Take the maintenance lock of nodes
///
/// Takes nodes that nobody holds, and nodes whose lease expired: then somebody did not finish, and
/// it says who. Whoever holds a node is named with the reason, since when and until when; exit
/// code 3.
///
/// Several nodes are taken all or none: what this very call took is given back where one is refused.
/// --partial keeps what it can get.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint acquire worker-1 -m \"new kernel\"
  kubectl maint acquire -l pool=gpu --duration 1h -m \"driver update\"
  TOKEN=$(kubectl maint acquire worker-1 -o token | cut -d' ' -f2)")]
pub(crate) struct AcquireArgs {
    /// Why, for everybody who meets the lock
    #[arg(short = 'm', long, alias = "reason", value_name = "REASON", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// For how long: a whole number of seconds up to 1h, such as 90s, 30m or 1h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30m",
        allow_hyphen_values = true,
        value_parser = duration::lease
    )]
    pub(crate) duration: std::time::Duration,

    /// Accept nodes that you hold already, as a renewal of that acquisition
    #[arg(long)]
    pub(crate) reentry: bool,

    /// Refuse nodes whose lease expired
    #[arg(long)]
    pub(crate) free_only: bool,

    /// Of several nodes, keep those that can be had
    #[arg(long)]
    pub(crate) partial: bool,

    #[command(flatten)]
    pub(crate) change: ChangingArgs,
}

pub(crate) async fn run(args: &AcquireArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.change.selection(false, start.terminal)?;
    let mut options = Acquire::new()
        .duration(args.duration)
        .reentry(args.reentry)
        .free_only(args.free_only);
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }

    let work = Work::begin(start, &args.change, Verb::Acquire).await?;
    let session = &work.session;
    let targets = work.targets(&selection, true).await?;
    let nodes: Vec<String> = targets.names().map(ToOwned::to_owned).collect();
    let single = targets.single;

    let mut taking = Taking::new(&work, options);
    if args.partial || nodes.len() == 1 {
        taking.each(targets.nodes).await;
    } else {
        // Where one is held already, nothing is written to the others.
        let targets = work.look(targets, true).await?;
        taking.all_or_none(targets.nodes).await;
    }
    if taking.is_interrupted() {
        taking.give_back().await;
    }

    let program = session.program;
    let then = match &nodes[..] {
        [node] => format!(
            "after that anyone may take it; longer: {program} renew {node}, \
             or {program} hold {node} -m WHY"
        ),
        _ => format!(
            "after that anyone may take them; longer: {program} renew, or {program} hold -m WHY"
        ),
    };
    let mut report = Report::new(&work).asked_for(Some(args.duration)).then(then);
    let interrupted = taking.is_interrupted();
    let mut results = taking.into_results();
    for node in nodes {
        match results.remove(&node) {
            Some(result) => report.add(&node, result),
            None => report.left_alone(node),
        }
    }
    if interrupted {
        report.interrupted();
    }
    report.end(single).await
}
