//! Who waits for the locks that the command runs under.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use maintenance_lease::WAIT_EVENT_PERIOD;

use crate::run::session::Session;
use crate::words::waiting::waiter_line;

/// Prints a line when somebody begins to wait for one of `nodes`, which are locked for `duration`.
pub(super) async fn report(
    session: &Session<'_>,
    nodes: &[&str],
    duration: Duration,
) -> Infallible {
    let period = WAIT_EVENT_PERIOD.min(duration / 3);
    let single = match nodes {
        [node] => Some(*node),
        _ => None,
    };
    let requests = session.locks.requests();
    let mut known = HashSet::new();
    loop {
        tokio::time::sleep(period).await;
        let waiters = match requests.waiters(single).await {
            Ok(waiters) => waiters,
            Err(error) if error.is_forbidden() => return pending().await,
            Err(_) => continue,
        };
        let now = session.locks.server_time().now();
        for waiter in waiters {
            let line = waiter_line(&waiter, now);
            if nodes.contains(&&*waiter.node)
                && known.insert((waiter.node, waiter.identity, waiter.since))
            {
                session.terminal.remark(line);
            }
        }
    }
}
