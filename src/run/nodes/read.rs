//! Reads what a status needs, once, in parallel and with as few requests as the selection allows.

use std::collections::{BTreeSet, HashMap};

use futures::channel::oneshot;
use futures::future::{Either, select};
use futures::{StreamExt as _, TryStreamExt as _, join};
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{ApiError, Error, NodeLease, NodeLookup, NodeRow, RowDetail, ServerTime};
use pod_safety::node_health::is_fresh;

use super::filter::NodeFilter;
use super::node_details::{ListedNode, MOST_BY_NAME, Nodes};
use super::snapshot::Snapshot;
use crate::args::nodes::Selection;
use crate::error::Failure;
use crate::run::session::{PARALLEL, Session};

/// Reads the Leases, the Nodes and, if `wide`, the heartbeats of the selected nodes. One node is read by
/// name, several in lists. If lists are forbidden, named nodes are read by name. Whole Nodes are read if
/// they were named or are suspicious.
///
/// # Errors
/// If the Leases can't be read, or if reading Nodes or heartbeats fails for another reason than a missing
/// right.
pub(crate) async fn read_all(
    session: &Session<'_>,
    filter: &NodeFilter,
    wide: bool,
    detail: RowDetail,
) -> Result<Snapshot, Failure> {
    let mut snapshot = match &filter.selection {
        Selection::All | Selection::Mine | Selection::Labeled(_) => {
            listed(session, filter, wide, detail).await?
        }
        Selection::Named(names) => match &names[..] {
            [node] => one(session, node, wide).await?,
            names => named(session, names, wide).await?,
        },
    };
    read_details(session, filter, &mut snapshot, None).await?;
    Ok(snapshot)
}

/// Reads the whole Nodes of those to be shown, or of `among` them, if their rows don't show their health.
///
/// # Errors
/// If one can't be read for another reason than a missing right.
pub(crate) async fn read_details(
    session: &Session<'_>,
    filter: &NodeFilter,
    snapshot: &mut Snapshot,
    among: Option<&BTreeSet<String>>,
) -> Result<(), ApiError> {
    let now = session.locks.server_time().now();
    let nodes = match among {
        Some(among) => filter.nodes_to_read(snapshot, among.iter().map(String::as_str), now),
        None => filter.nodes_to_read(snapshot, snapshot.known(), now),
    };
    if nodes.is_empty() {
        return Ok(());
    }
    let details = Nodes::new(session, snapshot.heartbeats.as_ref())
        .without_labels()
        .matching(filter.selector())
        .read_details(&nodes)
        .await?;
    snapshot.apply_details(details);
    Ok(())
}

async fn listed(
    session: &Session<'_>,
    filter: &NodeFilter,
    wide: bool,
    detail: RowDetail,
) -> Result<Snapshot, Failure> {
    let nodes = nodes_and_heartbeats(session, filter, wide, detail);
    let (leases, nodes) = join!(session.locks.list(), nodes);
    let (nodes, heartbeats) = nodes?;
    let mut whole = Vec::new();
    let (rows, other_rows) = match nodes {
        Ok(NodesRead::Rows(rows)) => Snapshot::listed(rows),
        Ok(NodesRead::Whole(nodes)) => {
            whole = nodes;
            Snapshot::listed([])
        }
        // Only the Nodes show which of them match a selector.
        Err(Error::MissingRight { .. }) if filter.selector().is_none() => {
            (HashMap::new(), NodeLookup::Forbidden)
        }
        Err(error) => return Err(error.into()),
    };
    let mut snapshot = Snapshot {
        leases: leases?,
        rows,
        other_rows,
        heartbeats: None,
        details: HashMap::new(),
        wide,
    };
    snapshot.apply_details(Nodes::new(session, heartbeats.as_ref()).with_heartbeats(whole));
    snapshot.heartbeats = heartbeats;
    Ok(snapshot)
}

async fn one(session: &Session<'_>, node: &str, wide: bool) -> Result<Snapshot, Failure> {
    let heartbeat = async {
        if wide {
            readable(session.locks.heartbeat(node).await)
        } else {
            Ok(None)
        }
    };
    let nodes = Nodes::new(session, None);
    let (lease, read_details, heartbeat) =
        join!(session.locks.get(node), nodes.one(node), heartbeat);
    let heartbeats = heartbeat?.map(|heartbeat| {
        heartbeat
            .map(|heartbeat| (node.to_owned(), heartbeat))
            .into_iter()
            .collect()
    });
    let mut snapshot = Snapshot::of_leases(lease?.into_iter(), heartbeats, wide);
    snapshot.apply_details([(node.to_owned(), read_details?)]);
    Ok(snapshot)
}

async fn named(session: &Session<'_>, names: &[String], wide: bool) -> Result<Snapshot, Failure> {
    let locks = &session.locks;
    let nodes = Nodes::new(session, None);
    let all: BTreeSet<String> = names.iter().cloned().collect();
    let (leases, details, heartbeats) = join!(
        locks.list(),
        nodes.read_details(&all),
        heartbeats(session, wide),
    );
    let leases: Vec<NodeLease> = match leases {
        Ok(leases) => leases.into_values().collect(),
        Err(Error::MissingRight { .. }) => {
            let leases: Vec<Option<NodeLease>> = futures::stream::iter(names)
                .map(|node| locks.get(node))
                .buffer_unordered(PARALLEL)
                .try_collect()
                .await?;
            leases.into_iter().flatten().collect()
        }
        Err(error) => return Err(error.into()),
    };
    let mut snapshot = Snapshot::of_leases(leases.into_iter(), heartbeats?, wide);
    snapshot.apply_details(details?);
    Ok(snapshot)
}

/// What was read of the Nodes in a list.
enum NodesRead {
    Rows(Vec<NodeRow>),
    Whole(Vec<ListedNode>),
}

/// Lists the Nodes and, if `wide`, their heartbeats. If many heartbeats are late, reads all Nodes whole instead of rows: rows
/// do not show the health of such nodes.
async fn nodes_and_heartbeats(
    session: &Session<'_>,
    filter: &NodeFilter,
    wide: bool,
    detail: RowDetail,
) -> Result<(Result<NodesRead, Error>, Option<HashMap<String, Instant>>), Failure> {
    let (locks, selector) = (&session.locks, filter.selector());
    let rows = || Box::pin(locks.nodes(selector, detail));
    let (mut late, many_are_late) = LateHeartbeats::new(locks.server_time().clone());
    let heartbeats = heartbeats_as_they_arrive(session, wide, |at| late.add(at));
    let nodes = async {
        let whole = match select(many_are_late, rows()).await {
            // The late ones may not match the selector.
            Either::Left((Ok(()), rows)) if filter.takes_all() && selector.is_none() => {
                // Cancel this list first. Otherwise, the server works on both.
                drop(rows);
                let nodes = Nodes::new(session, None);
                let nodes = match detail {
                    RowDetail::Cells => nodes.without_labels(),
                    RowDetail::Metadata => nodes,
                };
                nodes.list(|_| true).await
            }
            Either::Left((_, rows)) => return Ok(rows.await.map(NodesRead::Rows)),
            Either::Right((rows, _)) => return Ok(rows.map(NodesRead::Rows)),
        };
        match whole {
            Ok(nodes) => Ok(Ok(NodesRead::Whole(nodes))),
            Err(error) if error.is_forbidden() => Ok(rows().await.map(NodesRead::Rows)),
            Err(error) => Err(Failure::from(error)),
        }
    };
    let (nodes, heartbeats) = join!(nodes, heartbeats);
    Ok((nodes?, heartbeats?))
}

/// Counts late heartbeats while they arrive.
struct LateHeartbeats {
    clock: ServerTime,
    now: Option<Now>,
    count: usize,
    many: Option<oneshot::Sender<()>>,
}

impl LateHeartbeats {
    /// The receiver completes once more heartbeats are late than Nodes are read by name. It may never complete. A list that
    /// is sent again counts twice: then whole Nodes may be read without need.
    fn new(clock: ServerTime) -> (Self, oneshot::Receiver<()>) {
        let (many, many_are_late) = oneshot::channel();
        let new = Self {
            clock,
            now: None,
            count: 0,
            many: Some(many),
        };
        (new, many_are_late)
    }

    fn add(&mut self, at: Instant) {
        // The server's time is known only once its answer begins.
        let now = *self.now.get_or_insert_with(|| self.clock.now());
        self.count += usize::from(!is_fresh(Some(at.into()), now));
        if self.count > MOST_BY_NAME
            && let Some(many) = self.many.take()
        {
            // If the rows came first, the receiver is gone.
            let _ = many.send(());
        }
    }
}

/// All heartbeats if `wide`; `None` also if the caller may not read them.
pub(crate) async fn heartbeats(
    session: &Session<'_>,
    wide: bool,
) -> Result<Option<HashMap<String, Instant>>, Failure> {
    heartbeats_as_they_arrive(session, wide, |_| ()).await
}

/// The same, and calls `arrived` for each heartbeat as it arrives.
async fn heartbeats_as_they_arrive(
    session: &Session<'_>,
    wide: bool,
    arrived: impl FnMut(Instant) + Send,
) -> Result<Option<HashMap<String, Instant>>, Failure> {
    if wide {
        readable(session.locks.heartbeats_as_they_arrive(arrived).await)
    } else {
        Ok(None)
    }
}

/// The result of a read; `None` if the caller may not read it.
fn readable<T>(read: Result<T, ApiError>) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
