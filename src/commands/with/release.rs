//! After the command: releases its locks, unless parts of the command may still run.

use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{Done, Error, HeldLease, Lost, LostBy, Subject};
use supervisor::under_lease::{CommandOutcome, Stage};
use tokio::time::timeout;

use crate::run::interruption::Interruption;
use crate::run::session::Session;
use crate::words::{loss, with as words};

/// Releases the locks, if `outcome` allows it. True if a lock was lost before and that was not reported
/// yet.
pub(super) async fn release_all(
    session: &Session<'_>,
    held: Vec<HeldLease>,
    outcome: &CommandOutcome,
    interruption: &Interruption,
) -> bool {
    if !outcome.is_over() {
        for held in held {
            leave(session, held, outcome.left);
        }
        return false;
    }
    let nodes: Vec<String> = held.iter().map(|held| held.node().to_owned()).collect();
    let releasing = held.into_iter();
    let releasing = releasing.map(|held| release(session, held, outcome));
    let releasing = async { Ok(join_all(releasing).await) };
    match interruption.with_grace(releasing).await {
        Ok(results) => {
            let released: Vec<&str> = nodes
                .iter()
                .zip(&results)
                .filter(|(_, result)| **result == LockEnd::Released)
                .map(|(node, _)| node.as_str())
                .collect();
            if !released.is_empty() {
                session.terminal.remark(words::released(&released));
            }
            results.contains(&LockEnd::Lost)
        }
        Err(_) => {
            session.terminal.warn(words::release_interrupted(&nodes));
            false
        }
    }
}

/// Lets a lock expire, because processes may still depend on it.
fn leave(session: &Session<'_>, held: HeldLease, processes: Option<usize>) {
    let lease = held.held_state().lease;
    let found = held.was_found();
    held.leave();
    if !found {
        let now = session.locks.server_time().now();
        let warning = words::left_to_expire(&lease, processes, now);
        session.terminal.warn(warning);
    }
}

/// How long the keys on a Node may take to be removed.
const KEYS_LIMIT: Duration = Duration::from_secs(10);

/// How long the lock lasts without another renewal.
fn left(held: &HeldLease) -> Duration {
    let deadline = held.held_state().deadline;
    deadline.since(Machine.boot()).to_duration()
}

/// What happened to a lock after the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockEnd {
    Released,
    /// It was not acquired here and stays, or it expires by itself.
    Left,
    /// It was lost before it could be released.
    Lost,
}

/// Releases one lock, unless it expires first, and reports what prevented the release.
async fn release(session: &Session<'_>, held: HeldLease, outcome: &CommandOutcome) -> LockEnd {
    let node = held.node().to_owned();
    let lock_id = held.lock_id();
    let lease = held.held_state().lease;
    let Ok(released) = timeout(left(&held), held.release()).await else {
        session.terminal.warn(words::released_too_late(&node));
        return LockEnd::Left;
    };
    let lost = match released {
        Ok(None) => return LockEnd::Left,
        Ok(Some(change)) if change.done == Done::Released => {
            session.remove_keys(&lease, KEYS_LIMIT).await;
            return LockEnd::Released;
        }
        Ok(Some(change)) => Lost {
            subject: Subject::Node,
            node,
            by: LostBy::Release,
            lease: change.lease,
            problem: None,
        },
        Err(Error::Lost(lost)) => Lost::clone(&lost),
        Err(Error::Refused(refused)) => Lost::from(*refused),
        Err(error) => {
            let now = session.locks.server_time().now();
            let id = lock_id.as_ref();
            let (message, hint) = words::not_released(&lease, id, &error, session.program, now);
            session.terminal.warn(message);
            session.terminal.hint(hint);
            return LockEnd::Left;
        }
    };
    if outcome.lost.contains(&lost.node) {
        return LockEnd::Left;
    }
    let now = session.locks.server_time().now();
    let stage = match outcome.exit {
        Some(_) => Stage::Ended,
        None => Stage::NotStarted,
    };
    let (message, hint) = loss::lines(&lost, Some(&lease), stage, now, session.program);
    session.terminal.error(&message);
    session.terminal.hint(hint);
    LockEnd::Lost
}
