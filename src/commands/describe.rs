//! `describe`: everything about the locks of a few nodes.

use clap::Args;
use futures::join;
use maintenance_lease::protocol::{Now, identity};
use maintenance_lease::{Error, NodeLease, RowDetail, Waiter};

use crate::args::nodes::NodeArgs;
use crate::error::Failure;
use crate::exit::Code;
use crate::output::describe;
use crate::output::status::View;
use crate::run::interruption::or_interrupted;
use crate::run::nodes::filter::NodeFilter;
use crate::run::nodes::node_details::medik8s_finding;
use crate::run::nodes::read::read_all;
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};
use crate::words::next_steps::Reader;
use crate::words::status::NOTHING_FOUND;

/// Show everything about the lock of a node, and what to do next
///
/// Shows the lock with its full reason, the health of the node, who fenced it, who had the lock before, and
/// the commands that you may want to run next. If you name one node, it also shows who began to wait for its lock. For scripts,
/// use status -o json.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint describe worker-1
  kubectl maint describe -l pool=gpu")]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
}

pub(crate) async fn run(args: &DescribeArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.nodes.selection(None, start.terminal.stdin())?;
    let session = start.open_as_holder().await?;
    let filter = NodeFilter {
        selection,
        locks: session.locks.clone(),
        states: Vec::new(),
        brief: false,
        sort_by: None,
        whole: true,
    };
    or_interrupted(print(&session, &filter)).await
}

async fn print(session: &Session<'_>, filter: &NodeFilter) -> Result<Code, Failure> {
    let mut snapshot = read_all(session, filter, true, RowDetail::Cells).await?;
    let now = session.locks.server_time().now();
    let reader = Reader {
        locks: &session.locks,
        program: session.program,
    };
    let nodes = filter.nodes(&snapshot, now);
    let waiters = match &nodes[..] {
        [node] => {
            let view = snapshot.view(node);
            let waiters = waiters(session, &view, now);
            let (finding, waiters) = join!(medik8s_finding(session, node), waiters);
            if let Some(details) = snapshot.details.get_mut(node) {
                details.findings.extend(finding);
            }
            waiters
        }
        _ => Vec::new(),
    };
    let pages = nodes
        .iter()
        .map(|node| describe::page(&snapshot.view(node), &waiters, &reader, now));
    let pages: Vec<String> = pages.collect();
    if !pages.is_empty() {
        session.terminal.data(pages.join("\n\n\n"));
    }
    let problems = Problems::new(session);
    for node in filter.unknown(&snapshot) {
        problems.report(&Error::NodeNotFound(node.to_owned()).into());
    }
    if pages.is_empty() && !problems.any() {
        session.terminal.remark(NOTHING_FOUND);
    }
    Ok(problems.end().await)
}

/// Who began to wait for the lock of this node lately, if somebody has it. Nobody is shown if their Events can't be read.
async fn waiters(session: &Session<'_>, view: &View<'_>, now: Now) -> Vec<Waiter> {
    let lease = view.lease.filter(|lease| lease.state(now).is_locked());
    let Some(holder) = lease.and_then(NodeLease::holder) else {
        return Vec::new();
    };
    let read = session.locks.requests().waiters(view.node).await;
    let mut waiters = read.unwrap_or_default();
    // They have got it.
    waiters.retain(|waiter| waiter.identity != identity::person(holder));
    waiters
}
