//! `history`: the last locks of nodes.

use clap::Args;
use maintenance_lease::NodeLease;

use crate::args::nodes;
use crate::args::output::{OutputArgs, offers_no_lock_id, templates};
use crate::error::Failure;
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::history::{self, Record, RecordList};
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};
use crate::words::history::NOTHING_RECORDED;

/// Show the last locks of a node
///
/// Shows for each lock who held it and why, when it started and ended, and how it ended. The newest lock comes
/// first. Without NODE, it shows all nodes. A narrow terminal shows AGE instead of FROM; -o wide shows all times.
///
/// The Lease of a node keeps its last locks in 1 KiB: about five to ten. Long texts are cut. Other clients do
/// not record their locks. Anyone who can release a lock can edit its history, so use the audit log for proof.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].node}",
        "NODE:.node,OUTCOME:.outcome"
    )),
    after_help = "Examples:
  kubectl maint history worker-1
  kubectl maint history -o wide
  kubectl maint history worker-1 -o json"
)]
pub(crate) struct HistoryArgs {
    /// Node name, as NAME or node/NAME [default: all nodes]
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Print the table without headers
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &HistoryArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let format = args.output.format().with_headers(!args.no_headers);
    let node = args.node.as_deref().map(nodes::single_node).transpose()?;
    let session = start.open_for_reading().await?;
    let leases = match read(&session, node.as_deref()).await {
        Ok(leases) => leases,
        Err(failure) => return report(&session, node.as_deref(), &failure, format).await,
    };
    let records: Vec<Record> = leases.iter().flat_map(Record::all).collect();
    let now = session.locks.server_time().now();
    let terminal = session.terminal;
    let records = RecordList::new(records);
    if records.items().is_empty() && format.is_for_people() {
        terminal.remark(NOTHING_RECORDED);
        return Ok(Code::DONE);
    }
    terminal.show(&records, format, || {
        let is_wide = format == Format::Wide;
        let fit = terminal.width().filter(|_| !is_wide);
        history::table(records.items(), is_wide, !args.no_headers, fit, now)
    })?;
    Ok(Code::DONE)
}

/// The Leases of `node`, or of all nodes in their order.
///
/// # Errors
/// If they can't be read, or if there is no such node.
async fn read(session: &Session<'_>, node: Option<&str>) -> Result<Vec<NodeLease>, Failure> {
    let Some(node) = node else {
        let leases = session.locks.list().await?.into_values();
        let mut leases: Vec<_> = leases.collect();
        leases.sort_by(|one, other| one.node().cmp(other.node()));
        return Ok(leases);
    };
    let lease = session.locks.get(node).await?;
    if lease.is_none() {
        session.must_exist(node).await?;
    }
    Ok(lease.into_iter().collect())
}

/// Reports the failure, also as the error of `node`.
async fn report(
    session: &Session<'_>,
    node: Option<&str>,
    failure: &Failure,
    format: Format,
) -> Result<Code, Failure> {
    let problems = Problems::new(session);
    let error = problems.report(failure);
    if let Some(node) = node {
        let records = RecordList::new(vec![Record::failed(node, error)]);
        session.terminal.print(&records, format)?;
    }
    Ok(problems.end().await)
}
