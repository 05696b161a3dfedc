//! After the command: releases its locks, unless parts of the command may still run.

use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{Done, Error, HeldLease, Lost, LostBy, Subject};
use other_tools::may_have_keys;
use supervisor::under_lease::{CommandOutcome, Stage};
use tokio::time::timeout;

use crate::error::ProtectionError;
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
    let processes = outcome.over.as_ref().map(|over| over.unkillable);
    if processes != Some(0) {
        for held in held {
            leave(session, held, processes);
        }
        return false;
    }
    let nodes: Vec<String> = held.iter().map(|held| held.node().to_owned()).collect();
    let releasing = held.into_iter();
    let releasing = releasing.map(|held| release(session, held, outcome, interruption));
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

/// How long the held label and the opt-outs may take to be removed. What hangs there must not keep the lock.
const LABEL_LIMIT: Duration = Duration::from_secs(10);

/// How long the lock lasts without another renewal.
fn left(held: &HeldLease) -> Duration {
    let deadline = held.held_state().deadline;
    deadline.since(Machine.boot()).to_duration()
}

/// Whether somebody else has a lock that was lost like this. They remove what it set on the Node, or keep its cordon.
fn is_anothers(by: &LostBy) -> bool {
    match by {
        LostBy::TakeOver(_) | LostBy::Replacement(Some(_)) | LostBy::Election => true,
        LostBy::Expiry | LostBy::Release | LostBy::Deletion | LostBy::Replacement(None) => false,
    }
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
async fn release(
    session: &Session<'_>,
    held: HeldLease,
    outcome: &CommandOutcome,
    interruption: &Interruption,
) -> LockEnd {
    let node = held.node().to_owned();
    let lock_id = held.lock_id();
    let lease = held.held_state().lease;
    let by = held.held_state().lost.map(|lost| lost.by.clone());
    if !held.was_found() && may_have_keys(&lease) && !by.as_ref().is_some_and(is_anothers) {
        let limit = match by {
            None => LABEL_LIMIT.min(left(&held) / 2),
            Some(_) => LABEL_LIMIT,
        };
        let is_free = by != Some(LostBy::Expiry);
        let removing = session.try_remove_held_label(&lease, is_free);
        let removing = async { Ok(timeout(limit, removing).await) };
        // After Ctrl-C, there is only time to release the lock.
        let error = match interruption.or(removing).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(ProtectionError::TooSlow(limit)),
            Err(_) => Some(ProtectionError::Interrupted),
        };
        if let Some(error) = error {
            session.report_left(&node, is_free, &error);
        }
    }
    let Ok(released) = timeout(left(&held), held.release()).await else {
        session.terminal.warn(words::released_too_late(&node));
        return LockEnd::Left;
    };
    let lost = match released {
        Ok(None) => return LockEnd::Left,
        Ok(Some(change)) if change.done == Done::Released => return LockEnd::Released,
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
