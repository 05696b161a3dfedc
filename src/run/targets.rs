//! From the selected nodes to what is known about each, in as few requests as possible.

use std::collections::HashMap;

use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _};
pub(crate) use maintenance_lease::Target;
use maintenance_lease::protocol::State;
use maintenance_lease::{Error, NodeAndLease, NodeLease, NodeLookup, NodeRow, RowDetail};
use pod_safety::fencing::is_of_fencing;

use super::interruption::{in_time, or_interrupted};
use super::lock_command::LockCommand;
use super::nodes::node_details::{medik8s_finding, with_findings};
use crate::args::nodes::Selection;
use crate::error::{Failure, NothingFound, Verb};
use crate::run::session::{PARALLEL, Session};
use crate::words::failure::nothing_found;
use crate::words::next_steps::{nothing_to_release, own_holds_stay};

/// Of more named nodes, only rows are read: a whole Node has as many bytes as a hundred rows, and is a request of
/// its own.
const MOST_WHOLE: usize = 10;

/// The names of `targets`.
pub(crate) fn names(targets: &[Target]) -> Vec<String> {
    targets.iter().map(|target| target.node.clone()).collect()
}

impl LockCommand<'_> {
    /// The nodes that `selection` means, after a confirmation if there are many.
    ///
    /// # Errors
    /// If they can't be found, or are not confirmed.
    pub(crate) async fn targets(
        &self,
        selection: &Selection,
        with_nodes: bool,
    ) -> Result<Vec<Target>, Failure> {
        let found = self.find(selection, with_nodes).await?;
        let all = found.len();
        let targets = self.without_own_holds(selection, found);
        if *selection == Selection::All
            && self.verb == Verb::Release
            && !self.any_has_lock(&targets)
        {
            let nothing = nothing_to_release(targets.len() < all);
            self.session.terminal.remark(nothing);
            return Ok(Vec::new());
        }
        self.confirm_many(selection, &targets).await?;
        Ok(targets)
    }

    /// Leaves out the caller's holds and says so, because nobody named their nodes. Holds of a fencing stay in: they are refused
    /// later.
    pub(super) fn without_own_holds(
        &self,
        selection: &Selection,
        targets: Vec<Target>,
    ) -> Vec<Target> {
        let is_bulk = matches!(selection, Selection::All | Selection::Labeled(_));
        if self.verb != Verb::Release || !is_bulk {
            return targets;
        }
        let (locks, now) = (&self.session.locks, self.session.locks.server_time().now());
        let is_own_hold = |target: &Target| {
            let lease = target.seen.as_ref().and_then(|seen| seen.lease.as_ref());
            lease.is_some_and(|lease| {
                lease.is_hold() && locks.is_own(lease) && !is_of_fencing(lease, now)
            })
        };
        let (kept, targets): (Vec<_>, Vec<_>) = targets.into_iter().partition(is_own_hold);
        if !kept.is_empty() {
            let kept = own_holds_stay(&names(&kept), self.session.program);
            self.session.terminal.remark(kept);
        }
        targets
    }

    /// Whether any of `targets` is locked, on hold, or has an expired lock.
    fn any_has_lock(&self, targets: &[Target]) -> bool {
        let now = self.session.locks.server_time().now();
        let seen = targets.iter().filter_map(|target| target.seen.as_ref());
        let mut leases = seen.filter_map(|seen| seen.lease.as_ref());
        leases.any(|lease| lease.state(now) != State::Free)
    }

    pub(super) async fn find(
        &self,
        selection: &Selection,
        with_nodes: bool,
    ) -> Result<Vec<Target>, Failure> {
        let finding = find(&self.session, selection, with_nodes, self.verb);
        let is_ending = matches!(self.verb, Verb::Release | Verb::Unhold);
        let finding = self.session.report_slow(in_time(self.limit, finding));
        match or_interrupted(finding).await {
            // Nothing is left to release, as for a node that is already free.
            Err(Failure::NothingFound(nothing)) if *selection == Selection::Mine && is_ending => {
                let (what, hint) = nothing_found(&nothing, self.session.program);
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.session.terminal.remark(format!("{what}{hint}"));
                Ok(Vec::new())
            }
            found => {
                let found = self.report_failure(selection.names(), found)?;
                self.check_end(found, with_nodes).await
            }
        }
    }

    /// Checks when holds of `targets` are expected to end. Reads the targets, because the server's time is known only
    /// after a read.
    async fn check_end(
        &self,
        targets: Vec<Target>,
        with_nodes: bool,
    ) -> Result<Vec<Target>, Failure> {
        let Some(end) = self.expected_end else {
            return Ok(targets);
        };
        let targets = self.read(targets, with_nodes).await?;
        let check = |now| Ok(end.after(now)?);
        self.report_failure(&names(&targets), self.now().and_then(check))?;
        Ok(targets)
    }

    /// Reads what was not read yet, for commands that need it before they ask or write.
    ///
    /// # Errors
    /// If something can't be read.
    pub(crate) async fn read(
        &self,
        targets: Vec<Target>,
        with_nodes: bool,
    ) -> Result<Vec<Target>, Failure> {
        let nodes = names(&targets);
        let reading = read(&self.session, targets, with_nodes, self.verb);
        let reading = self.session.report_slow(in_time(self.limit, reading));
        self.report_failure(&nodes, or_interrupted(reading).await)
    }

    /// Refuses nodes that other tools work on. Reads the Nodes that were not read whole yet, and their medik8s Leases.
    ///
    /// # Errors
    /// If there are such nodes, or if a Node can't be read. Nodes that do not exist are left to the verb.
    pub(super) async fn refuse_other_tools(&self, targets: &[Target]) -> Result<(), Failure> {
        let session = &self.session;
        let reading = futures::stream::iter(targets).map(|target| async move {
            let node = &target.node;
            let mut row = target
                .seen
                .as_ref()
                .map_or(NodeLookup::Unread, |seen| seen.row.clone());
            if session.findings(node).is_none() {
                row = read_node(session, node, self.verb).await?;
            }
            if row == NodeLookup::Forbidden {
                return Ok::<_, Failure>(Some((node.clone(), None)));
            }
            let mut findings = session.findings(node).unwrap_or_default();
            if self.verb != Verb::Hold {
                findings.extend(medik8s_finding(session, node).await);
            }
            Ok((!findings.is_empty()).then(|| (node.clone(), Some(findings))))
        });
        let reading = reading.buffered(PARALLEL).try_collect();
        let nodes = names(targets);
        let found: Vec<Option<_>> = self.report_failure(&nodes, or_interrupted(reading).await)?;
        let found: Vec<_> = found.into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(());
        }
        let now = session.locks.server_time().now();
        self.report_failure(&nodes, Err(Failure::OtherTools { nodes: found, now }))
    }
}

/// Finds the nodes that `selection` means. A single node is read by the verb itself. Several come from one
/// list of each kind, in parallel: the Leases, and the Nodes if `with_nodes` or if the selection needs
/// them. If a list is forbidden, named nodes are read one by one.
///
/// # Errors
/// If a list can't be read, or nothing matches.
pub(crate) async fn find(
    session: &Session<'_>,
    selection: &Selection,
    with_nodes: bool,
    verb: Verb,
) -> Result<Vec<Target>, Failure> {
    let locks = &session.locks;
    let (nodes, nothing) = match selection {
        Selection::Named(names) => {
            return named(session, names, with_nodes, verb).await;
        }
        Selection::Mine => {
            let leases = locks.list().await?;
            let nothing = NothingFound::Own {
                caller: locks.identity().to_owned(),
                verb,
                has_others: leases.values().any(|lease| locks.is_own(lease)),
            };
            let holds = verb == Verb::Unhold;
            let mut mine: Vec<Target> = leases
                .into_values()
                .filter(|lease| locks.is_own(lease) && lease.is_hold() == holds)
                .map(|lease| target(lease.node().to_owned(), NodeLookup::Unread, Some(lease)))
                .collect();
            mine.sort_by(|one, other| one.node.cmp(&other.node));
            (mine, nothing)
        }
        Selection::All => (
            listed(session, None, with_nodes).await?,
            NothingFound::Nodes,
        ),
        Selection::Labeled(selector) => (
            listed(session, Some(selector), with_nodes).await?,
            NothingFound::Labeled(selector.clone()),
        ),
    };
    if nodes.is_empty() {
        return Err(nothing.into());
    }
    Ok(nodes)
}

/// Reads what was not read yet of `targets`: the Leases, and the Nodes if `with_nodes`.
///
/// # Errors
/// If one can't be read.
pub(crate) async fn read(
    session: &Session<'_>,
    targets: Vec<Target>,
    with_nodes: bool,
    verb: Verb,
) -> Result<Vec<Target>, Failure> {
    futures::stream::iter(targets)
        .map(|target| async move {
            let locks = &session.locks;
            let node = &target.node;
            let seen = match target.seen {
                None if !with_nodes => locks.read(node, false).await?,
                None => {
                    let row = read_node(session, node, verb);
                    let (lease, row) = futures::join!(locks.get(node), row);
                    NodeAndLease {
                        node: node.clone(),
                        lease: lease?,
                        row: row?,
                    }
                }
                Some(seen) if with_nodes && seen.row == NodeLookup::Unread => NodeAndLease {
                    row: read_node(session, node, verb).await?,
                    ..seen
                },
                Some(seen) => seen,
            };
            Ok::<_, Failure>(Target {
                node: target.node,
                seen: Some(seen),
            })
        })
        .buffered(PARALLEL)
        .try_collect()
        .await
}

/// The row of a Node. It is read whole, for what other tools do to it. For a hold, which is long, its medik8s Lease is
/// read as well.
async fn read_node(session: &Session<'_>, node: &str, verb: Verb) -> Result<NodeLookup, Failure> {
    let medik8s = async {
        match verb {
            Verb::Hold => medik8s_finding(session, node).await,
            _ => None,
        }
    };
    let (read, medik8s) = futures::join!(with_findings(session, node), medik8s);
    let (row, mut findings) = read?;
    findings.extend(medik8s);
    if row.row().is_some() {
        session.remember(node, findings);
    }
    Ok(row)
}

async fn named(
    session: &Session<'_>,
    names: &[String],
    with_nodes: bool,
    verb: Verb,
) -> Result<Vec<Target>, Failure> {
    if names.len() == 1 {
        return Ok(names.iter().map(Target::from).collect());
    }
    let (leases, rows) = futures::join!(
        leases_of(session, names),
        rows_of(session, names, with_nodes, verb)
    );
    let known = names.iter().zip(leases?).zip(rows?);
    let known = known.map(|((node, lease), row)| target(node.clone(), row, lease));
    read(session, known.collect(), with_nodes, verb).await
}

/// The Leases of named nodes: by one list if that is allowed.
async fn leases_of(
    session: &Session<'_>,
    names: &[String],
) -> Result<Vec<Option<NodeLease>>, Failure> {
    match session.locks.list().await {
        Ok(mut leases) => Ok(names.iter().map(|node| leases.remove(node)).collect()),
        Err(Error::MissingRight { .. }) => {
            let reading = futures::stream::iter(names).map(|node| session.locks.get(node));
            Ok(reading.buffered(PARALLEL).try_collect().await?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The rows of named nodes: of few, from the whole Nodes; of more, from one list if that is allowed.
async fn rows_of(
    session: &Session<'_>,
    names: &[String],
    with_nodes: bool,
    verb: Verb,
) -> Result<Vec<NodeLookup>, Failure> {
    let unread = || vec![NodeLookup::Unread; names.len()];
    if !with_nodes {
        return Ok(unread());
    }
    if names.len() <= MOST_WHOLE {
        let reading = names.iter().map(|node| read_node(session, node, verb));
        return try_join_all(reading).await;
    }
    match session.locks.nodes(None, RowDetail::Metadata).await {
        Ok(rows) => {
            let rows = rows.into_iter().map(|row| (row.name.clone(), row));
            let mut rows: HashMap<String, NodeRow> = rows.collect();
            let lookups = names.iter().map(|node| rows.remove(node));
            Ok(lookups
                .map(|row| row.map_or(NodeLookup::Missing, NodeLookup::Row))
                .collect())
        }
        Err(Error::MissingRight { .. }) => Ok(unread()),
        Err(error) => Err(error.into()),
    }
}

async fn listed(
    session: &Session<'_>,
    selector: Option<&str>,
    with_nodes: bool,
) -> Result<Vec<Target>, Failure> {
    let detail = if with_nodes {
        RowDetail::Metadata
    } else {
        RowDetail::Cells
    };
    let (rows, leases) =
        futures::join!(session.locks.nodes(selector, detail), session.locks.list());
    let (rows, leases) = (rows?, leases?);
    Ok(rows
        .into_iter()
        .map(|row| {
            let lease = leases.get(&row.name).cloned();
            target(row.name.clone(), NodeLookup::Row(row), lease)
        })
        .collect())
}

fn target(node: String, row: NodeLookup, lease: Option<NodeLease>) -> Target {
    Target {
        seen: Some(NodeAndLease {
            node: node.clone(),
            row,
            lease,
        }),
        node,
    }
}
