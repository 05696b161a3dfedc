//! Reads what a status needs, once, in parallel and with as few requests as the selection allows.

use std::collections::{BTreeSet, HashMap};

use futures::{StreamExt as _, TryStreamExt as _, join};
use maintenance_lease::{ApiError, Error, NodeLease, NodeLookup, RowDetail};
use pod_safety::cluster::Reader;
use pod_safety::node_health::Heartbeat;

use super::filter::NodeFilter;
use super::node_details::Nodes;
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
    let (leases, nodes, heartbeats) = join!(
        session.locks.list(),
        session.locks.nodes(filter.selector(), detail),
        heartbeats(session, wide),
    );
    let (rows, other_rows) = match nodes {
        Ok(rows) => Snapshot::listed(rows),
        // Only the Nodes show which of them match a selector.
        Err(Error::MissingRight { .. }) if filter.selector().is_none() => {
            (HashMap::new(), NodeLookup::Forbidden)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Snapshot {
        leases: leases?,
        rows,
        other_rows,
        heartbeats: heartbeats?,
        details: HashMap::new(),
        wide,
    })
}

async fn one(session: &Session<'_>, node: &str, wide: bool) -> Result<Snapshot, Failure> {
    let heartbeat = async {
        if wide {
            readable(reader(session).heartbeat(node).await)
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

/// All heartbeats if `wide`; `None` also if the caller may not read them.
pub(crate) async fn heartbeats(
    session: &Session<'_>,
    wide: bool,
) -> Result<Option<HashMap<String, Heartbeat>>, Failure> {
    if wide {
        readable(reader(session).heartbeats().await)
    } else {
        Ok(None)
    }
}

pub(super) fn reader(session: &Session<'_>) -> Reader {
    Reader::new(session.locks.requests().clone())
}

/// The result of a read; `None` if the caller may not read it.
fn readable<T>(read: Result<T, ApiError>) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
