//! Reads what a status is about, once: as few requests as the selection allows, side by side.

use std::collections::HashMap;

use futures::{StreamExt as _, TryStreamExt as _, join};
use maintenance_lease::protocol::Instant;
use maintenance_lease::{ApiError, Error, RowDetail, Seen, Sight};

use super::picture::Picture;
use crate::cli::nodes::Selection;
use crate::failure::Failure;
use crate::session::Session;

/// Reads the Leases, the Nodes and, where `wide`, the heartbeats of a selection: by name where it is
/// one node, in lists otherwise, and by name again where lists are forbidden and names are given.
///
/// # Errors
/// Where the Leases can't be read, or the Nodes or heartbeats for another cause than a missing right.
pub(super) async fn once(
    session: &Session<'_>,
    selection: &Selection,
    wide: bool,
    parallel: u16,
) -> Result<Picture, Failure> {
    match selection {
        Selection::Mine => mine(session).await,
        Selection::All => listed(session, None, wide).await,
        Selection::Labelled(selector) => listed(session, Some(selector), wide).await,
        Selection::Named(names) => match &names[..] {
            [node] => one(session, node, wide).await,
            names => named(session, names, wide, parallel).await,
        },
    }
}

async fn mine(session: &Session<'_>) -> Result<Picture, Failure> {
    Ok(Picture {
        leases: session.locks.list().await?,
        rows: HashMap::new(),
        other_rows: Sight::Unread,
        heartbeats: None,
    })
}

async fn listed(
    session: &Session<'_>,
    selector: Option<&str>,
    wide: bool,
) -> Result<Picture, Failure> {
    let locks = &session.locks;
    let (leases, rows, heartbeats) = join!(
        locks.list(),
        locks.nodes(selector, RowDetail::Cells),
        heartbeats(session, wide),
    );
    let (rows, other_rows) = match rows {
        Ok(rows) => Picture::listed(rows),
        // Which nodes a selector means, only the Nodes tell.
        Err(Error::MissingRight { .. }) if selector.is_none() => (HashMap::new(), Sight::Forbidden),
        Err(error) => return Err(error.into()),
    };
    Ok(Picture {
        leases: leases?,
        rows,
        other_rows,
        heartbeats: heartbeats?,
    })
}

async fn one(session: &Session<'_>, node: &str, wide: bool) -> Result<Picture, Failure> {
    let heartbeat = async {
        if wide {
            readable(session.locks.heartbeat(node).await)
        } else {
            Ok(None)
        }
    };
    let (seen, heartbeat) = join!(session.locks.see(node, true), heartbeat);
    let heartbeats = heartbeat?.map(|heartbeat| {
        heartbeat
            .map(|heartbeat| (node.to_owned(), heartbeat))
            .into_iter()
            .collect()
    });
    Ok(of_seen([seen?], heartbeats))
}

async fn named(
    session: &Session<'_>,
    names: &[String],
    wide: bool,
    parallel: u16,
) -> Result<Picture, Failure> {
    let locks = &session.locks;
    let (leases, rows, heartbeats) = join!(
        locks.list(),
        locks.nodes(None, RowDetail::Cells),
        heartbeats(session, wide),
    );
    let heartbeats = heartbeats?;
    match (leases, rows) {
        (Ok(leases), Ok(rows)) => {
            let (rows, other_rows) = Picture::listed(rows);
            Ok(Picture {
                leases,
                rows,
                other_rows,
                heartbeats,
            })
        }
        (Err(Error::MissingRight { .. }), _) | (_, Err(Error::MissingRight { .. })) => {
            let seen: Vec<Seen> = futures::stream::iter(names)
                .map(|node| locks.see(node, true))
                .buffer_unordered(usize::from(parallel))
                .try_collect()
                .await?;
            Ok(of_seen(seen, heartbeats))
        }
        (Err(error), _) | (_, Err(error)) => Err(error.into()),
    }
}

fn of_seen(
    seen: impl IntoIterator<Item = Seen>,
    heartbeats: Option<HashMap<String, Instant>>,
) -> Picture {
    let mut picture = Picture {
        leases: HashMap::new(),
        rows: HashMap::new(),
        other_rows: Sight::Unread,
        heartbeats,
    };
    for Seen { node, row, lease } in seen {
        if let Some(lease) = lease {
            picture.leases.insert(node.clone(), lease);
        }
        picture.rows.insert(node, row);
    }
    picture
}

/// All heartbeats, where `wide`; `None` also where they may not be read.
pub(super) async fn heartbeats(
    session: &Session<'_>,
    wide: bool,
) -> Result<Option<HashMap<String, Instant>>, Failure> {
    if wide {
        readable(session.locks.heartbeats().await)
    } else {
        Ok(None)
    }
}

/// What was read, but `None` where it may not be.
fn readable<T>(read: Result<T, ApiError>) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
