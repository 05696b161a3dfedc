//! The Nodes that own locks, against the Nodes that the locks' clients could have read.

use std::time::Duration;

use super::digest::{Commit, Index, Request};
use super::rule::{Rule, Violation};
use crate::history::{ClientId, Record};
use crate::time::Time;

/// How old a client's knowledge of the Node may be when it decides to write.
const OLDEST_NODE: Duration = Duration::from_secs(30);

/// How long a read takes at most, and a little more.
const READ: Duration = Duration::from_secs(7);

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    for commit in &digest.commits {
        let Some(request) = commit.by.and_then(|by| digest.requests.get(&by)) else {
            continue;
        };
        let Some(owner) = commit
            .begins()
            .and_then(|_| owner_of(commit.after.as_ref()))
        else {
            continue;
        };
        let decided = decided(digest, request);
        let before = |length| awake_before(digest, request.client, decided, length);
        // Every read of the last moments shows that the Lease is the present Node's.
        let is_present_ones = owner_of(commit.before.as_ref()).is_some_and(|present| {
            present != owner && stands(digest, commit, present, (before(READ), request.sent))
        });
        let since = match is_present_ones {
            true => before(READ),
            false => before(OLDEST_NODE + READ),
        };
        let could_be_read = digest.nodes.iter().any(|span| {
            span.node == commit.node
                && *span.uid == *owner
                && span.from <= request.sent
                && span.to >= since
        });
        if !could_be_read {
            violations.push(Violation {
                at: commit.at,
                rule: Rule::Owner,
                what: format!("@{} belongs to an earlier Node, {owner}", commit.version),
            });
        }
    }
}

fn owner_of(lease: Option<&Record>) -> Option<&str> {
    lease?.owner.as_deref()
}

/// Whether this Node of the Lease's name was there from one time to the other.
fn stands(digest: &Index, commit: &Commit, uid: &str, (from, to): (Time, Time)) -> bool {
    let mut nodes = digest.nodes.iter();
    nodes.any(|span| {
        span.node == commit.node && *span.uid == *uid && span.from <= from && span.to >= to
    })
}

/// When the first copy of a write was sent.
fn decided(digest: &Index, request: &Request) -> Time {
    let is_copy = |other: &&Request| {
        other.client == request.client
            && other.op == request.op
            && other.node == request.node
            && other.what == request.what
    };
    let copies = digest.requests.values().filter(is_copy);
    copies.map(|copy| copy.sent).min().unwrap_or(request.sent)
}

/// So long before `at`, not counting the time in which the client's machine stood still.
fn awake_before(digest: &Index, client: ClientId, at: Time, length: Duration) -> Time {
    let micros = |length: Duration| i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
    let mut since = Time::from_micros(at.as_micros() - micros(length));
    loop {
        let still = digest.stood_still(client, since, at);
        let still: i64 = still.map(|still| still.to.min(at) - still.from).sum();
        let next = Time::from_micros(at.as_micros() - micros(length) - still);
        if next >= since {
            return since;
        }
        since = next;
    }
}
