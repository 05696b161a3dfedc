//! `status`: who holds which nodes, since when, until when and why.

mod pods;

use std::cell::RefCell;

use clap::Args;
use maintenance_lease::{Error, NodeLookup, RowDetail};

use crate::args::nodes::{NodeArgs, Selection};
use crate::args::output::OutputArgs;
use crate::args::status::SortKey;
use crate::error::lock_state::LockState;
use crate::error::{Failure, InvalidValue};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::item::{Item, NodeList};
use crate::output::print::Changes;
use crate::output::status::{Table, View};
use crate::run::interruption::or_interrupted;
use crate::run::nodes::filter::NodeFilter;
use crate::run::nodes::follow::Follower;
use crate::run::nodes::read::read_all;
use crate::run::nodes::snapshot::Snapshot;
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};
use crate::ui::Terminal;
use crate::words::node_state;
use crate::words::state::ShownState;
use crate::words::status::{NOTHING_FOUND, UNLISTED, no_namespace, summary};

/// Show the locks of nodes: holder, reason and time left
///
/// The table (also -o wide) has the nodes that are locked, expired, on hold or unhealthy, and those that you
/// name or select. -o name, json, yaml and templates have all nodes. The state of a lock is Free, Locked,
/// Expired or OnHold. The exit code does not depend on it. docs/tasks.md explains the columns.
///
/// STATUS shows the health of the node in more detail than kubectl. -o wide, json and yaml show who fenced a node, when,
/// how and why, and the hook that is running for it.
///
/// --pods shows the stuck pods of all namespaces, on one node or on all, and why they are stuck. It also
/// shows replacements that wait for these pods, and volumes that stay attached.
#[derive(Args, Debug)]
#[command(
    mut_arg("quiet", |quiet| quiet.help("Print no summary and no remarks")),
    mut_arg("all", |all| all.help("Show all nodes, including those that are free and ready")),
    mut_arg("nodes_from", |from| from.hide_short_help(true)),
)]
#[command(after_help = "Examples:
  kubectl maint status
  kubectl maint status --state=locked,on-hold --sort-by=age
  kubectl maint status --pods worker-1")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// Print a new row whenever a lock changes, until you press Ctrl-C
    #[arg(short, long)]
    pub(crate) watch: bool,

    /// Show only these states: free, locked, expired, on-hold
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "STATE,...",
        value_delimiter = ',',
        ignore_case = true
    )]
    pub(crate) state: Vec<LockState>,

    /// Show only your locks and holds, also those of your running commands
    #[arg(long)]
    pub(crate) mine: bool,

    /// Sort by node, state, holder, age or left
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "KEY",
        conflicts_with = "watch"
    )]
    pub(crate) sort_by: Option<SortKey>,

    /// Add columns with the values of these labels
    #[arg(
        short = 'L',
        long,
        value_name = "LABEL,...",
        value_delimiter = ',',
        value_parser = label_key
    )]
    pub(crate) label_columns: Vec<String>,

    /// Show stuck pods of all namespaces, and why they are stuck
    #[arg(long, conflicts_with_all = [
        "watch", "state", "mine", "sort_by", "label_columns", "selector", "all", "nodes_from",
    ])]
    pub(crate) pods: bool,

    /// Accepted because kubectl has it: --pods always shows all namespaces
    #[arg(short = 'A', long, hide = true, requires = "pods")]
    pub(crate) all_namespaces: bool,

    /// Print the table without headers
    #[arg(long, hide_short_help = true)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl StatusArgs {
    /// The selected nodes: all of them if no argument selects any.
    fn selection(&self, terminal: &Terminal) -> Result<Selection, Failure> {
        let nodes = &self.nodes;
        let narrowed = !nodes.nodes.is_empty()
            || nodes.selector.is_some()
            || nodes.nodes_from.is_some()
            || self.mine;
        if narrowed {
            nodes.selection(Some(self.mine), terminal.stdin())
        } else {
            Ok(Selection::All)
        }
    }

    /// Whether nodes that are free and well are left out: in a table of nodes that nobody selected.
    fn is_brief(&self, selection: &Selection, format: Format) -> bool {
        let is_filtered = !self.state.is_empty();
        format.is_for_people() && *selection == Selection::All && !self.nodes.all && !is_filtered
    }

    /// How much of each Node to read.
    fn row_detail(&self) -> RowDetail {
        match self.label_columns.is_empty() {
            true => RowDetail::Cells,
            false => RowDetail::Metadata,
        }
    }
}

/// The key of a label, such as `topology.kubernetes.io/zone`.
fn label_key(typed: &str) -> Result<String, InvalidValue> {
    let is_of_a_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match !typed.is_empty() && typed.chars().all(is_of_a_key) {
        true => Ok(typed.to_owned()),
        false => Err(InvalidValue::NotALabelKey),
    }
}

pub(crate) async fn run(args: &StatusArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = match args.selection(start.terminal) {
        Err(Failure::NothingFound(_)) => Selection::Named(Vec::new()),
        selection => selection?,
    };
    let format = args.output.format().with_headers(!args.no_headers);
    if args.pods {
        let run = pods::run(&selection, args.output, !args.no_headers, start);
        return or_interrupted(run).await;
    }
    let session = match selection {
        Selection::Mine => start.open_as_holder().await?,
        _ => start.open_for_reading().await?,
    };
    let filter = NodeFilter {
        locks: session.locks.clone(),
        brief: args.is_brief(&selection, format),
        selection,
        states: args.state.clone(),
        sort_by: args.sort_by,
        whole: false,
    };
    let report = StatusRun {
        session: &session,
        format,
        changes: RefCell::new(Changes::new(format, filter.selection.is_single())),
        filter,
    };
    if args.watch {
        report.follow_changes(args).await
    } else {
        or_interrupted(report.print_once(args)).await
    }
}

/// How to show the result.
struct StatusRun<'a> {
    session: &'a Session<'a>,
    format: Format,
    changes: RefCell<Changes>,
    filter: NodeFilter,
}

impl StatusRun<'_> {
    /// Whether heartbeats are shown. JSON and YAML always have them.
    fn with_heartbeats(&self) -> bool {
        matches!(
            self.format,
            Format::Wide | Format::Json | Format::Yaml | Format::Template(..)
        )
    }

    fn table(&self, args: &StatusArgs) -> Table {
        Table::new(
            self.format == Format::Wide,
            &args.label_columns,
            !args.no_headers,
            self.session.terminal.width(),
        )
    }

    async fn print_once(&self, args: &StatusArgs) -> Result<Code, Failure> {
        let Self {
            session, filter, ..
        } = self;
        let terminal = session.terminal;
        let reading = read_all(session, filter, self.with_heartbeats(), args.row_detail());
        let snapshot = match reading.await {
            Ok(snapshot) => snapshot,
            Err(failure) => {
                let problems = Problems::new(session);
                problems.report_for(filter.selection.names(), &failure, self.format)?;
                return Err(Failure::Reported(failure.kind(None)));
            }
        };
        let now = session.locks.server_time().now();
        let nodes = filter.nodes(&snapshot, now);
        let views: Vec<View<'_>> = nodes.iter().map(|node| snapshot.view(node)).collect();
        if self.format.is_for_people() && !views.is_empty() {
            terminal.rows(&self.table(args).rows(&views, now));
        }
        let problems = Problems::new(session);
        let failed = self.report_unknown(&snapshot, &problems);
        if !self.format.is_for_people() {
            let items = nodes.iter().map(|node| snapshot.item(node, now));
            let list = NodeList::new(items.chain(failed).collect())
                .single(self.filter.selection.is_single());
            terminal.print(&list, self.format)?;
        }
        if self.format == Format::LockId {
            let leases = views.iter().filter_map(|view| view.lease);
            for lease in leases.filter(|lease| lease.holder().is_some()) {
                if lease.lock_id().is_none() {
                    terminal.warn(node_state::without_lock_id(lease));
                }
            }
        }
        let left_out = filter.left_out(&snapshot, now);
        if self.format.is_for_people()
            && !self.filter.selection.is_single()
            && !(views.is_empty() && left_out.nodes == 0)
        {
            let states: Vec<_> = views
                .iter()
                .map(|view| (ShownState::of(view.lease, now), view.health))
                .collect();
            terminal.remark(summary(&states, left_out));
        } else if self.format.is_for_people() && views.is_empty() && !problems.any() {
            terminal.remark(NOTHING_FOUND);
        }
        self.report_unlisted(&snapshot);
        let is_of_all = filter.selection == Selection::All;
        if is_of_all && self.format.is_for_people() && snapshot.leases.is_empty() {
            self.report_missing_namespace().await;
        }
        Ok(problems.end().await)
    }

    async fn follow_changes(&self, args: &StatusArgs) -> Result<Code, Failure> {
        let Self {
            session, filter, ..
        } = self;
        let starting = Follower::start(session, filter, self.with_heartbeats(), args.row_detail());
        let mut follower = or_interrupted(starting).await?;
        let mut table = self.table(args).for_rows_to_come();
        let mut show = |snapshot: &Snapshot, items: &[Item]| self.show(&mut table, snapshot, items);
        let items = follower.first();
        let left_out = follower.left_out();
        let read = items.is_empty() || show(follower.snapshot(), &items)?;
        self.report_unlisted(follower.snapshot());
        let problems = Problems::new(session);
        for failed in self.report_unknown(follower.snapshot(), &problems) {
            self.print_change(failed)?;
        }
        if left_out.nodes > 0 {
            session.terminal.remark(left_out.words(items.len()));
        } else if self.format.is_for_people() && items.is_empty() && !problems.any() {
            session.terminal.remark(NOTHING_FOUND);
        }
        let code = problems.end().await;
        if code != Code::DONE || !read {
            return Ok(code);
        }
        follower.follow_changes(show).await
    }

    /// Prints some rows. Returns whether the output is still read.
    fn show(
        &self,
        table: &mut Table,
        snapshot: &Snapshot,
        items: &[Item],
    ) -> Result<bool, Failure> {
        let terminal = self.session.terminal;
        let now = self.session.locks.server_time().now();
        if self.format.is_for_people() {
            let views: Vec<View<'_>> = items.iter().map(|item| snapshot.view(&item.node)).collect();
            terminal.rows(&table.rows(&views, now));
        } else {
            for item in items {
                self.print_change(snapshot.item(&item.node, now))?;
            }
        }
        Ok(terminal.is_read())
    }

    /// Prints a node of a watch, for programs.
    fn print_change(&self, item: Item) -> Result<(), Failure> {
        if let Some(text) = self.changes.borrow_mut().next(item)? {
            self.session.terminal.data(text);
        }
        Ok(())
    }

    /// Reports which of the named nodes don't exist.
    fn report_unknown(&self, snapshot: &Snapshot, problems: &Problems<'_>) -> Vec<Item> {
        let nodes = self.filter.unknown(snapshot);
        nodes
            .map(|node| {
                let error = problems.report(&Error::NodeNotFound(node.to_owned()).into());
                Item::skipped(node, error)
            })
            .collect()
    }

    /// Says that nobody locks nodes in this cluster, which may be the wrong one.
    async fn report_missing_namespace(&self) {
        let session = self.session;
        if matches!(session.locks.has_namespace().await, Ok(Some(false))) {
            session.terminal.remark(no_namespace(&session.place()));
        }
    }

    /// Reports that there may be more nodes than are shown.
    fn report_unlisted(&self, snapshot: &Snapshot) {
        if self.filter.selection == Selection::All && snapshot.other_rows == NodeLookup::Forbidden {
            self.session.terminal.remark(UNLISTED);
        }
    }
}
