//! Reads all nodes of a set: their Leases by one list.

use std::collections::HashMap;

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::options::PARALLEL;
use crate::cluster::nodes::RowDetail;
use crate::cluster::reads::{NodeAndLease, NodeLookup};
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::outcome::Error;

/// The rows of so few Nodes are read one by one: a list has all Nodes of the cluster.
const FEW: usize = 10;

/// The Leases and Nodes of `nodes`, in their order.
pub(super) async fn look(
    locks: &Maintenance,
    nodes: &[String],
) -> Result<Vec<NodeAndLease>, Error> {
    if let [node] = nodes {
        return Ok(vec![locks.read(node, true).await?]);
    }
    let (leases, rows) = try_join(leases(locks, nodes), rows(locks, nodes)).await?;
    let both = nodes.iter().zip(leases).zip(rows);
    Ok(both
        .map(|((node, lease), row)| NodeAndLease {
            node: node.clone(),
            row,
            lease,
        })
        .collect())
}

/// Without the right to list them, they are read one by one.
async fn leases(locks: &Maintenance, nodes: &[String]) -> Result<Vec<Option<NodeLease>>, Error> {
    match locks.list().await {
        Ok(mut leases) => Ok(nodes.iter().map(|node| leases.remove(node)).collect()),
        Err(Error::MissingRight { .. }) => {
            one_by_one(nodes.iter().map(|node| locks.get(node).boxed()).collect()).await
        }
        Err(error) => Err(error),
    }
}

async fn rows(locks: &Maintenance, nodes: &[String]) -> Result<Vec<NodeLookup>, Error> {
    if !locks.repository().locks_nodes() {
        return Ok(vec![NodeLookup::Unread; nodes.len()]);
    }
    if nodes.len() > FEW {
        match locks.nodes(None, RowDetail::Metadata).await {
            Ok(rows) => {
                let rows = rows.into_iter();
                let mut rows: HashMap<_, _> = rows.map(|row| (row.name.clone(), row)).collect();
                let row = |node| {
                    rows.remove(node)
                        .map_or(NodeLookup::Missing, NodeLookup::Row)
                };
                return Ok(nodes.iter().map(row).collect());
            }
            Err(Error::MissingRight { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    one_by_one(nodes.iter().map(|node| locks.node(node).boxed()).collect()).await
}

async fn one_by_one<T>(reads: Vec<BoxFuture<'_, Result<T, Error>>>) -> Result<Vec<T>, Error> {
    stream::iter(reads).buffered(PARALLEL).try_collect().await
}
