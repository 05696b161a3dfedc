//! After the command: releases its locks, unless parts of the command may still run.

use futures::future::join_all;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{Done, Error, HeldLease, Lost, LostBy, NodeLease, Subject};
use tokio::time::timeout;
use under_lease::{CommandOutcome, Stage};

use crate::run::interruption::Interruption;
use crate::run::session::Session;
use crate::text::escape;
use crate::words::loss;
use crate::words::time::clock;

/// Releases the locks, if `outcome` allows it. True if a lock was lost before and that was not reported
/// yet.
pub(super) async fn give_back(
    session: &Session<'_>,
    held: Vec<HeldLease>,
    outcome: &CommandOutcome,
) -> bool {
    let rest = match &outcome.over {
        Some(over) if over.unkillable == 0 => None,
        Some(over) => Some(match over.unkillable {
            1 => "1 process of the command".to_owned(),
            left => format!("{left} processes of the command"),
        }),
        None => Some("processes of the command".to_owned()),
    };
    if let Some(rest) = rest {
        for held in held {
            leave(session, held, &rest);
        }
        return false;
    }
    let nodes: Vec<String> = held.iter().map(|held| held.node().to_owned()).collect();
    let releasing = held.into_iter().map(|held| release(session, held, outcome));
    let releasing = async { Ok(join_all(releasing).await) };
    match Interruption::listen_once().or_soon(releasing).await {
        Ok(results) => {
            let released: Vec<String> = nodes
                .iter()
                .zip(&results)
                .filter(|(_, result)| **result == LockEnd::Released)
                .map(|(node, _)| format!("node/{node}"))
                .collect();
            if !released.is_empty() {
                session
                    .terminal
                    .remark(format!("{} released", released.join(", ")));
            }
            results.contains(&LockEnd::Lost)
        }
        Err(_) => {
            session.terminal.warn(format!(
                "interrupted: the release of {} may still take effect; if not, the lock expires",
                nodes.join(", ")
            ));
            false
        }
    }
}

/// Lets a lock expire, because processes may still depend on it.
fn leave(session: &Session<'_>, held: HeldLease, rest: &str) {
    let node = held.node().to_owned();
    let until = runs_out(session, &held.held_state().lease);
    let found = held.was_found();
    held.leave();
    if !found {
        session.terminal.warn(format!(
            "{rest} could not be ended and may still be running: node/{node} is not released, but {until}"
        ));
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
async fn release(session: &Session<'_>, held: HeldLease, outcome: &CommandOutcome) -> LockEnd {
    let node = held.node().to_owned();
    let lock_id = held.lock_id();
    let lease = held.held_state().lease;
    let left = held
        .held_state()
        .deadline
        .since(Machine.boot())
        .to_duration();
    let Ok(released) = timeout(left, held.release()).await else {
        session.terminal.warn(format!(
            "could not release node/{node} before its lock expired"
        ));
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
            let lock_id = lock_id
                .map(|id| format!(" --lock-id {id}"))
                .unwrap_or_default();
            let program = session
                .program
                .as_holder(lease.holder().unwrap_or_default());
            session.terminal.warn(format!(
                "could not release node/{node}: {}",
                escape(&error.to_string())
            ));
            let until = runs_out(session, &lease);
            session.terminal.hint(format!(
                "{until}; release it now with `{program} release {node}{lock_id}`"
            ));
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

/// When others can acquire it.
fn runs_out(session: &Session<'_>, lease: &NodeLease) -> String {
    let now = session.locks.server_time().now();
    match lease.end() {
        Some(end) => format!("it expires at {}", clock(end, now.latest)),
        None => "it expires by itself".to_owned(),
    }
}
