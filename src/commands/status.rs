//! `status`: who holds which nodes, since when, until when and why.

mod follow;
mod picture;
mod pods;
mod read;
mod whole;

use clap::Args;
use maintenance_lease::protocol::identity::hold_identity;
use maintenance_lease::{Error, Sight};

use self::follow::Follower;
use self::picture::{Picture, Wanted};
use super::many;
use super::problems::Problems;
use crate::cli::nodes::{NodeArgs, Selection};
use crate::cli::output::{Format, OutputArgs};
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::item::Item;
use crate::report::print;
use crate::report::status::{self, Table, View};
use crate::session::{Session, Start};
use crate::terminal::Terminal;

/// Show who holds which nodes, since when, until when and why
///
/// Without nodes, all of them. An expired lease is somebody who did not finish: anyone may take the
/// node, after a look at what is left to do. The exit code is 0 whether nodes are held or not.
///
/// AGE is that of the acquisition. LEFT is the time until its end, or how long ago that was.
///
/// STATUS says more than kubectl of nodes that are not well: NotReady (reporting) has a kubelet that is
/// alive, Unreachable ones send no heartbeat, and somebody asserts that nothing runs on OutOfService
/// ones. Fenced is a node of which that was asserted, and that was restarted since: unfence is what is
/// left to do. "OutOfService, kubelet alive" is one whose kubelet is alive without that. To be sure of a
/// node that looks ready, name it, or use --check-taints. Who fenced a node, when, how and why, and which
/// hook is at work for it, is shown with -o wide, json and yaml.
///
/// --pods shows the pods on such nodes, or on one: when they are evicted, which keep their name from a
/// replacement, which wait for a finalizer; volumes that stay attached for nobody; and namespaces that
/// can't go before such pods do.
#[derive(Args, Debug)]
#[command(mut_arg("quiet", |quiet| quiet.help(QUIET)))]
#[command(after_help = "Examples:
  kubectl maint status
  kubectl maint status worker-1 -o wide
  kubectl maint status -l pool=gpu --locked
  kubectl maint status --mine -o token
  kubectl maint status -w
  kubectl maint status --pods worker-1")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// Go on, and print a row whenever something changes
    #[arg(short, long)]
    pub(crate) watch: bool,

    /// Only nodes that somebody holds, or did not finish with
    #[arg(long)]
    pub(crate) locked: bool,

    /// Only nodes that you hold, by lease or by hold
    #[arg(long)]
    pub(crate) mine: bool,

    /// Look at every node's taints: a fence on a node that is alive may show nowhere else
    #[arg(long, conflicts_with = "mine")]
    pub(crate) check_taints: bool,

    /// Show pods on nodes that are not well instead, and what they keep from going on
    #[arg(long, conflicts_with_all = [
        "watch", "locked", "mine", "check_taints", "selector", "all", "nodes_from",
    ])]
    pub(crate) pods: bool,

    /// Leave the headers of the table away
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const QUIET: &str = "Print what was asked for and nothing else: no summary, no remarks; problems \
                     still go to stderr";

impl StatusArgs {
    /// What was meant: all nodes, where nothing narrows it.
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
}

pub(crate) async fn run(args: &StatusArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = match args.selection(start.terminal) {
        Err(Failure::NothingFound { .. }) => Selection::Named(Vec::new()),
        selection => selection?,
    };
    if args.pods {
        return many::or_interrupted(pods::run(args, &selection, start)).await;
    }
    let session = start.reading().await?;
    let identity = session.locks.identity();
    let wanted = Wanted {
        own: [identity.to_owned(), hold_identity(identity)],
        selection,
        locked: args.locked,
        check_taints: args.check_taints,
    };
    let report = Report {
        session: &session,
        format: args.output.format(),
        wanted,
    };
    if args.watch {
        report.go_on(args).await
    } else {
        many::or_interrupted(report.once(args)).await
    }
}

/// kubectl's words for an empty table.
const NOTHING_FOUND: &str = "No resources found";

/// How to show what is wanted.
struct Report<'a> {
    session: &'a Session<'a>,
    format: Format,
    wanted: Wanted,
}

impl Report<'_> {
    /// Whether heartbeats are shown: JSON and YAML tell all there is to know.
    fn with_heartbeats(&self) -> bool {
        matches!(self.format, Format::Wide | Format::Json | Format::Yaml)
            && self.wanted.selection != Selection::Mine
    }

    fn is_table(&self) -> bool {
        matches!(self.format, Format::Text | Format::Wide)
    }

    fn is_single(&self) -> bool {
        matches!(&self.wanted.selection, Selection::Named(names) if names.len() == 1)
    }

    fn table(&self, args: &StatusArgs) -> Table {
        Table::new(
            self.format == Format::Wide,
            self.wanted.selection != Selection::Mine,
            !args.no_headers,
            self.session.terminal.width(),
        )
    }

    async fn once(&self, args: &StatusArgs) -> Result<Code, Failure> {
        let Self {
            session, wanted, ..
        } = self;
        let terminal = session.terminal;
        let picture =
            read::once(session, wanted, self.with_heartbeats(), args.nodes.parallel).await?;
        let now = session.locks.server_time().now();
        let nodes = wanted.nodes(&picture);
        let views: Vec<View<'_>> = nodes.iter().map(|node| picture.view(node)).collect();
        if !self.is_table() {
            let items = nodes.iter().map(|node| picture.item(node, now)).collect();
            if let Some(text) = print::items(items, self.is_single(), self.format)? {
                terminal.data(text);
            }
        } else if !views.is_empty() {
            terminal.data(self.table(args).rows(&views, now));
        }
        let problems = self.tell_unknown(&picture);
        if self.is_table() && !self.is_single() && !views.is_empty() {
            terminal.remark(status::summary(&views, now));
        } else if self.is_table() && views.is_empty() && !problems.any() {
            terminal.remark(NOTHING_FOUND);
        }
        self.tell_what_is_missing(&picture);
        Ok(problems.end().await)
    }

    async fn go_on(&self, args: &StatusArgs) -> Result<Code, Failure> {
        let Self {
            session, wanted, ..
        } = self;
        let starting = Follower::start(session, wanted, self.with_heartbeats());
        let mut follower = many::or_interrupted(starting).await?;
        let mut table = self.table(args).for_rows_to_come();
        let mut show = |picture: &Picture, items: &[Item]| self.show(&mut table, picture, items);
        let items = follower.first();
        let read = items.is_empty() || show(follower.picture(), &items)?;
        self.tell_what_is_missing(follower.picture());
        let problems = self.tell_unknown(follower.picture());
        if self.is_table() && items.is_empty() && !problems.any() {
            session.terminal.remark(NOTHING_FOUND);
        }
        let code = problems.end().await;
        if code != Code::DONE || !read {
            return Ok(code);
        }
        follower.go_on(show).await
    }

    /// Prints some rows. Returns whether anybody still reads them.
    fn show(&self, table: &mut Table, picture: &Picture, items: &[Item]) -> Result<bool, Failure> {
        let terminal = self.session.terminal;
        let now = self.session.locks.server_time().now();
        if self.is_table() {
            let views: Vec<View<'_>> = items.iter().map(|item| picture.view(&item.node)).collect();
            terminal.data(table.rows(&views, now));
        } else {
            for item in items {
                let item = picture.item(&item.node, now);
                if let Some(text) = print::items(vec![item], true, self.format)? {
                    let before = match self.format {
                        Format::Yaml => "---\n",
                        _ => "",
                    };
                    terminal.data(format_args!("{before}{text}"));
                }
            }
        }
        Ok(terminal.is_read())
    }

    /// Tells which of the nodes that were named don't exist.
    fn tell_unknown(&self, picture: &Picture) -> Problems<'_> {
        let problems = Problems::new(self.session);
        for node in self.wanted.unknown(picture) {
            problems.tell(&Error::NodeNotFound(node.to_owned()).into());
        }
        problems
    }

    /// Says that there may be more nodes than are shown.
    fn tell_what_is_missing(&self, picture: &Picture) {
        if self.wanted.selection == Selection::All && picture.other_rows == Sight::Forbidden {
            self.session.terminal.remark(
                "nodes can't be listed with your rights: only those with a Lease are shown",
            );
        }
    }
}
