//! From the selected nodes to what is known about each, in as few requests as possible.

use std::collections::HashMap;

use futures::{StreamExt as _, TryStreamExt as _};
pub(crate) use maintenance_lease::Target;
use maintenance_lease::{Error, NodeLease, NodeRow, RowDetail, Seen, Sight};

use super::interruption::{in_time, or_interrupted};
use super::lock_command::LockCommand;
use crate::args::nodes::Selection;
use crate::error::{Failure, NothingFound, Verb};
use crate::run::session::Session;
use crate::words::failure::nothing_found;

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
        let targets = self.find(selection, with_nodes).await?;
        self.confirm_many(selection, &targets).await?;
        Ok(targets)
    }

    pub(super) async fn find(
        &self,
        selection: &Selection,
        with_nodes: bool,
    ) -> Result<Vec<Target>, Failure> {
        let parallel = self.args.nodes.parallel;
        let finding = find(&self.session, selection, with_nodes, self.verb, parallel);
        let is_ending = matches!(self.verb, Verb::Release | Verb::Unhold);
        match or_interrupted(in_time(self.limit, finding)).await {
            // Nothing is left to release, as for a node that is already free.
            Err(Failure::NothingFound(nothing)) if *selection == Selection::Mine && is_ending => {
                let (what, hint) = nothing_found(&nothing, self.session.program);
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.session.terminal.remark(format!("{what}{hint}"));
                Ok(Vec::new())
            }
            found => self.or_failed(selection.names(), found),
        }
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
        let reading = read(&self.session, targets, with_nodes, self.args.nodes.parallel);
        self.or_failed(&nodes, or_interrupted(in_time(self.limit, reading)).await)
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
    parallel: u16,
) -> Result<Vec<Target>, Failure> {
    let locks = &session.locks;
    let (nodes, nothing) = match selection {
        Selection::Named(names) => {
            return named(session, names, with_nodes, parallel).await;
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
                .map(|lease| target(lease.node().to_owned(), Sight::Unread, Some(lease)))
                .collect();
            mine.sort_by(|one, other| one.node.cmp(&other.node));
            (mine, nothing)
        }
        Selection::All => (
            listed(session, None, with_nodes).await?,
            NothingFound::Nodes,
        ),
        Selection::Labelled(selector) => (
            listed(session, Some(selector), with_nodes).await?,
            NothingFound::Labelled(selector.clone()),
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
    parallel: u16,
) -> Result<Vec<Target>, Failure> {
    futures::stream::iter(targets)
        .map(|target| async move {
            let locks = &session.locks;
            let seen = match target.seen {
                None => locks.see(&target.node, with_nodes).await?,
                Some(seen) if with_nodes && seen.row == Sight::Unread => Seen {
                    row: locks.see_node(&target.node).await?,
                    ..seen
                },
                Some(seen) => seen,
            };
            Ok::<_, Failure>(Target {
                node: target.node,
                seen: Some(seen),
            })
        })
        .buffered(usize::from(parallel))
        .try_collect()
        .await
}

async fn named(
    session: &Session<'_>,
    names: &[String],
    with_nodes: bool,
    parallel: u16,
) -> Result<Vec<Target>, Failure> {
    let unread = || names.iter().map(Target::from).collect();
    if names.len() == 1 {
        return Ok(unread());
    }
    let rows = async {
        if with_nodes {
            let rows = session.locks.nodes(None, RowDetail::Metadata);
            rows.await.map(Some)
        } else {
            Ok(None)
        }
    };
    let (leases, rows) = match futures::join!(session.locks.list(), rows) {
        (Ok(leases), Ok(rows)) => (leases, rows),
        (Ok(leases), Err(Error::MissingRight { .. })) => (leases, None),
        (Err(Error::MissingRight { .. }), _) => return Ok(unread()),
        (Err(error), _) | (_, Err(error)) => return Err(error.into()),
    };
    let rows: Option<HashMap<String, NodeRow>> = rows.map(|rows| {
        rows.into_iter()
            .map(|row| (row.name.clone(), row))
            .collect()
    });
    let known = names.iter().map(|node| {
        let row = match &rows {
            None => Sight::Unread,
            Some(rows) => rows.get(node).cloned().map_or(Sight::Missing, Sight::Row),
        };
        target(node.clone(), row, leases.get(node).cloned())
    });
    read(session, known.collect(), with_nodes, parallel).await
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
            target(row.name.clone(), Sight::Row(row), lease)
        })
        .collect())
}

fn target(node: String, row: Sight, lease: Option<NodeLease>) -> Target {
    Target {
        seen: Some(Seen {
            node: node.clone(),
            row,
            lease,
        }),
        node,
    }
}
