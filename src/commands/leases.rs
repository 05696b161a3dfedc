//! `leases`: the Leases of all kinds that a cluster keeps, and what each is for.

use clap::Args;
use futures::join;
use maintenance_lease::{Error, HEARTBEATS, LeaseScope};

use crate::args::connection::namespace;
use crate::args::output::{OutputArgs, offers_no_lock_id, templates};
use crate::error::Failure;
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::leases::{self, Layout, LeaseEntry};
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};
use crate::words::leases as words;

/// List Leases of all kinds, with their holders and purposes
///
/// Kubernetes uses Leases for more than maintenance locks: for node heartbeats, leader elections and
/// the identities of API servers. The medik8s operators use them to show which node they repair.
/// Without -n or -A, this command lists the namespace of your context. On a narrow terminal, AGE and
/// PURPOSE are left out: use -o wide.
///
/// AGE is the time since the Lease was acquired or, if that is not recorded, since it was created.
/// LEFT is the time left, or the time since the Lease expired. A Lease expires if its holder stops
/// renewing it: for example, because the node is unreachable or the process has crashed.
#[derive(Args, Debug)]
#[command(
    arg = namespace("Namespace to list [default: that of the context]"),
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].name}",
        "NAME:.name,PURPOSE:.purpose"
    )),
    after_help = "Examples:
  kubectl maint leases -A
  kubectl maint leases -n kube-system -o wide
  kubectl maint leases -A --heartbeats | grep ago"
)]
pub(crate) struct LeasesArgs {
    /// List the Leases of all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Include node heartbeats (one per node)
    #[arg(long)]
    pub(crate) heartbeats: bool,

    /// Print the table without headers
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &LeasesArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let format = args.output.format().with_headers(!args.no_headers);
    let session = start.open_for_reading().await?;
    let entries = read(args, &session).await?;
    let now = session.locks.server_time().now();
    let terminal = session.terminal;
    if entries.is_empty() && format.is_for_people() {
        let namespace = session.connection.client.default_namespace();
        let shown = (!args.all_namespaces).then_some(namespace);
        terminal.remark(words::nothing_found(shown, namespace == HEARTBEATS));
    } else {
        let layout = Layout {
            namespaces: args.all_namespaces,
            wide: format == Format::Wide,
            headers: !args.no_headers,
            fit: terminal.width(),
        };
        terminal.show(&leases::list(&entries, now), format, || {
            leases::table(&entries, layout, now)
        })?;
    }
    Ok(Problems::new(&session).end().await)
}

/// The requested Leases and candidates, by namespace and name.
async fn read(args: &LeasesArgs, session: &Session<'_>) -> Result<Vec<LeaseEntry>, Failure> {
    let namespace = session.connection.client.default_namespace();
    let (realm, namespace) = match (args.all_namespaces, args.heartbeats) {
        (true, true) => (LeaseScope::Everywhere, None),
        (true, false) => (LeaseScope::EverywhereButHeartbeats, None),
        (false, false) if namespace == HEARTBEATS => return Ok(Vec::new()),
        (false, _) => (LeaseScope::Namespace(namespace), Some(namespace)),
    };
    let (leases, candidates) = join!(
        session.locks.any_leases(realm),
        session.locks.candidates(namespace),
    );
    let leases = leases?;
    let candidates = match candidates {
        Ok(candidates) => candidates,
        // Most servers don't have this kind, and answer "forbidden" to a user without the right.
        Err(Error::MissingRight { .. }) => {
            if leases.iter().any(|any| any.strategy.is_some()) {
                session.terminal.remark(words::NO_CANDIDATES);
            }
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let leases = leases.into_iter().map(Box::new).map(LeaseEntry::Lease);
    let mut entries: Vec<LeaseEntry> = leases
        .chain(candidates.into_iter().map(LeaseEntry::Candidate))
        .collect();
    entries.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
    Ok(entries)
}
