//! From the selected nodes to what is known about each, in as few requests as possible.

use std::collections::HashMap;

use futures::{StreamExt as _, TryStreamExt as _};
pub(crate) use maintenance_lease::Target;
use maintenance_lease::protocol::identity::hold_identity;
use maintenance_lease::{Error, NodeLease, NodeRow, RowDetail, Seen, Sight};

use crate::args::nodes::Selection;
use crate::error::{Failure, NothingFound, Verb};
use crate::run::session::Session;

/// The nodes to work on, in the order of their results.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    pub(crate) nodes: Vec<Target>,
    /// Exactly one node was named.
    pub(crate) single: bool,
}

impl Targets {
    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|target| target.node.as_str())
    }

    /// The same, to keep.
    pub(crate) fn to_names(&self) -> Vec<String> {
        self.names().map(ToOwned::to_owned).collect()
    }

    /// The same, with nothing read.
    pub(crate) fn unread(self) -> Self {
        let nodes = self.nodes.into_iter();
        Self {
            nodes: nodes
                .map(|target| Target {
                    seen: None,
                    ..target
                })
                .collect(),
            ..self
        }
    }

    /// The Leases that were read.
    pub(crate) fn leases(&self) -> impl Iterator<Item = &NodeLease> {
        self.nodes
            .iter()
            .filter_map(|target| target.seen.as_ref()?.lease.as_ref())
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
    selection: Selection,
    with_nodes: bool,
    verb: Verb,
    parallel: u16,
) -> Result<Targets, Failure> {
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
            let holder = match verb {
                Verb::Unhold => hold_identity(locks.identity()),
                _ => locks.identity().to_owned(),
            };
            let mut mine: Vec<Target> = leases
                .into_values()
                .filter(|lease| lease.holder() == Some(&holder))
                .map(|lease| Target {
                    node: lease.node().to_owned(),
                    seen: Some(Seen {
                        node: lease.node().to_owned(),
                        row: Sight::Unread,
                        lease: Some(lease),
                    }),
                })
                .collect();
            mine.sort_by(|one, other| one.node.cmp(&other.node));
            (mine, nothing)
        }
        Selection::All => (
            listed(session, None, with_nodes).await?,
            NothingFound::Nodes,
        ),
        Selection::Labelled(selector) => (
            listed(session, Some(&selector), with_nodes).await?,
            NothingFound::Labelled(selector),
        ),
    };
    if nodes.is_empty() {
        return Err(nothing.into());
    }
    Ok(Targets {
        nodes,
        single: false,
    })
}

/// Reads what was not read yet of `targets`: the Leases, and the Nodes if `with_nodes`.
///
/// # Errors
/// If one can't be read.
pub(crate) async fn read(
    session: &Session<'_>,
    targets: Targets,
    with_nodes: bool,
    parallel: u16,
) -> Result<Targets, Failure> {
    let nodes = futures::stream::iter(targets.nodes)
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
        .await?;
    Ok(Targets {
        nodes,
        single: targets.single,
    })
}

async fn named(
    session: &Session<'_>,
    names: Vec<String>,
    with_nodes: bool,
    parallel: u16,
) -> Result<Targets, Failure> {
    let unread = |names: Vec<String>| Targets {
        single: names.len() == 1,
        nodes: names.into_iter().map(Target::from).collect(),
    };
    if names.len() == 1 {
        return Ok(unread(names));
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
        (Err(Error::MissingRight { .. }), _) => return Ok(unread(names)),
        (Err(error), _) | (_, Err(error)) => return Err(error.into()),
    };
    let rows: Option<HashMap<String, NodeRow>> = rows.map(|rows| {
        rows.into_iter()
            .map(|row| (row.name.clone(), row))
            .collect()
    });
    let targets = Targets {
        single: false,
        nodes: names
            .into_iter()
            .map(|node| {
                let row = match &rows {
                    None => Sight::Unread,
                    Some(rows) => rows.get(&node).cloned().map_or(Sight::Missing, Sight::Row),
                };
                target(node, row, &leases)
            })
            .collect(),
    };
    read(session, targets, with_nodes, parallel).await
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
        .map(|row| target(row.name.clone(), Sight::Row(row), &leases))
        .collect())
}

fn target(node: String, row: Sight, leases: &HashMap<String, NodeLease>) -> Target {
    Target {
        seen: Some(Seen {
            lease: leases.get(&node).cloned(),
            row,
            node: node.clone(),
        }),
        node,
    }
}
