//! Compares what was reported to callers with what the Leases contained, what was acquired again, and
//! what sets did on their way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::digest::{Commit, Index, Op};
use super::earlier_locks::may_have_been_held;
use super::rule::{Rule, Violation};
use crate::history::{Acquisition, Call, CallOutcome, ClientId, LockSet, OpId, Record};
use crate::time::{EPOCH, Time};

/// What of a set has no more time than this left is not counted as kept.
const RUNS_OUT: Duration = Duration::from_secs(1);

/// The time over which requests are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// A client sends at most so many requests about one node in a minute: a lease of a second is renewed three times a second,
/// by up to two keepers, and on a bad network more than every second time with a retry.
const REQUESTS: usize = 600;

/// And so many watches of any: a client may have up to eight keepers, and each tries again while the API server is away.
pub(super) const WATCHES: usize = 200;

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    for (&id, op) in &digest.ops {
        reported(digest, id, op, violations);
        if let Call::AcquireAll(set) = &op.call {
            set_kept(digest, id, op, set, violations);
        } else {
            retaken(digest, id, op, violations);
        }
    }
    same_nonce(digest, violations);
    listed(digest, violations);
    requests(digest, violations);
}

/// What was said of a lock is so.
fn reported(digest: &Index, id: OpId, op: &Op, violations: &mut Vec<Violation>) {
    let Some((returned, ending)) = &op.returned else {
        return;
    };
    let what = match (ending, &op.call) {
        (CallOutcome::Released { .. } | CallOutcome::Nothing, Call::Release(meant)) => {
            let stood = stood_throughout(digest, &op.node, op.called, *returned);
            let identity = digest.identities.get(&op.client);
            let is_meant = |stood: &Acquisition| match meant {
                Some(meant) => meant == stood,
                None => identity.is_some_and(|identity| *identity == stood.holder),
            };
            let stood = stood.filter(is_meant);
            stood.map(|stood| format!("{stood} stood all the time"))
        }
        (CallOutcome::HeldByCaller(_), _) => {
            let identity = digest.identities.get(&op.client);
            let is_anothers = |commit: &&Commit| {
                let begun_by_op = digest.op_of(commit).is_some_and(|(other, _)| other == id);
                let holder = commit.acquisition_after().map(|after| after.holder);
                commit.node == op.node
                    && commit.begins().is_some()
                    && commit.at <= *returned
                    && !begun_by_op
                    && holder.as_ref() == identity
            };
            let no_other = !digest.commits.iter().any(|commit| is_anothers(&commit));
            no_other.then(|| "no other attempt of that name ever held it".to_owned())
        }
        _ => None,
    };
    if let Some(what) = what {
        violations.push(Violation {
            at: *returned,
            rule: Rule::Reported,
            what: format!("op{} ({}) ended as \"{ending}\", but {what}", id.0, op.call),
        });
    }
}

/// The acquisition that stood there from one time to the other.
fn stood_throughout(digest: &Index, node: &str, from: Time, to: Time) -> Option<Acquisition> {
    let mut commits = digest.commits.iter().filter(|commit| *commit.node == *node);
    let before = commits.by_ref().take_while(|commit| commit.at <= from);
    let stood = before.last()?.acquisition_after()?;
    let mut since = digest.commits.iter();
    let changed = since.any(|commit| {
        *commit.node == *node
            && (from..=to).contains(&commit.at)
            && commit.acquisition_after().as_ref() != Some(&stood)
    });
    (!changed).then_some(stood)
}

/// A call whose acquisition somebody broke does not begin another before anybody else did.
fn retaken(digest: &Index, id: OpId, op: &Op, violations: &mut Vec<Violation>) {
    let is_own = |commit: &Commit| digest.op_of(commit).is_some_and(|(made, _)| made == id);
    let mut broken: Option<(Arc<str>, Acquisition, Time)> = None;
    let mut own: Vec<Acquisition> = Vec::new();
    for commit in digest
        .commits
        .iter()
        .filter(|commit| op.is_about(&commit.node))
    {
        if let Some(begun) = commit.begins() {
            let sent = commit.by.and_then(|by| digest.requests.get(&by));
            if let Some((node, was, at)) = &broken
                && is_own(commit)
                && *node == commit.node
                && commit.before.is_some()
                && sent.is_some_and(|sent| sent.sent > *at)
            {
                violations.push(Violation {
                    at: commit.at,
                    rule: Rule::NotRetaken,
                    what: format!(
                        "op{} began {begun}, after {was} of its own was broken",
                        id.0
                    ),
                });
            }
            broken = None;
            if is_own(commit) {
                own.push(begun);
            }
            continue;
        }
        let Some(held_state) = commit.acquisition_before() else {
            continue;
        };
        let ended = commit.acquisition_after().as_ref() != Some(&held_state);
        if ended && own.contains(&held_state) && !is_own(commit) {
            broken = Some((commit.node.clone(), held_state, commit.at));
        }
    }
}

/// A nonce stands for one acquisition of a Lease.
fn same_nonce(digest: &Index, violations: &mut Vec<Violation>) {
    let begins: Vec<(&Commit, Acquisition)> = digest
        .commits
        .iter()
        .filter(|commit| commit.by.is_some())
        .filter_map(|commit| Some((commit, commit.begins()?)))
        .filter(|(_, begun)| begun.nonce.is_some())
        .collect();
    for (place, (commit, begun)) in begins.iter().enumerate() {
        let mut earlier = begins[..place].iter();
        if earlier.any(|(_, other)| other.uid == begun.uid && other.nonce == begun.nonce) {
            violations.push(Violation {
                at: commit.at,
                rule: Rule::NotRetaken,
                what: format!("{begun} began under a nonce that stood there before"),
            });
        }
    }
}

/// A set that was refused leaves nothing behind that would stand for long, unless a request went
/// astray.
fn set_kept(digest: &Index, id: OpId, op: &Op, set: &LockSet, violations: &mut Vec<Violation>) {
    let Some((returned, CallOutcome::Refused(why))) = &op.returned else {
        return;
    };
    for node in &set.nodes {
        let of_node = digest.commits.iter().filter(|commit| commit.node == *node);
        let begun: Vec<Acquisition> = of_node
            .clone()
            .filter(|commit| digest.op_of(commit).is_some_and(|(made, _)| made == id))
            // What was somebody's lease before stays on hold.
            .filter(|commit| !(set.holds() && may_have_been_held(commit)))
            .filter_map(Commit::begins)
            .collect();
        let mut back = of_node.rev();
        let last = back.find(|commit| commit.at <= *returned);
        let Some(lease) = last.and_then(|last| last.after.as_ref()) else {
            continue;
        };
        let Some(held_state) = lease.acquisition() else {
            continue;
        };
        // A lost lock expires, and nothing is written about it.
        let end = lease.renewed.unwrap_or(0) + i64::from(lease.duration) * 1_000_000;
        if end < EPOCH + (*returned + RUNS_OUT).as_micros() {
            continue;
        }
        let was_lost = why.contains("could not be renewed in time");
        if begun.contains(&held_state) && !was_lost && !went_astray(digest, id, node) {
            violations.push(Violation {
                at: *returned,
                rule: Rule::AllOrNone,
                what: format!("op{} was refused ({why}), and {held_state} stands", id.0),
            });
        }
    }
}

fn went_astray(digest: &Index, id: OpId, node: &Arc<str>) -> bool {
    digest.requests.iter().any(|(number, request)| {
        request.op == Some(id)
            && request.node.as_ref() == Some(node)
            && (digest.faulty_requests.contains(number) || request.answered.is_none())
    })
}

/// A list has every Lease that was there all the time.
fn listed(digest: &Index, violations: &mut Vec<Violation>) {
    for listed in &digest.listed {
        let mut before: Vec<(&Arc<str>, &Option<Record>)> = Vec::new();
        for commit in digest
            .commits
            .iter()
            .filter(|commit| commit.at < listed.since)
        {
            before.retain(|(node, _)| **node != commit.node);
            before.push((&commit.node, &commit.after));
        }
        for (node, _) in before.iter().filter(|(_, lease)| lease.is_some()) {
            let went = digest.commits.iter().any(|commit| {
                commit.node == **node
                    && (listed.since..=listed.at).contains(&commit.at)
                    && commit.after.is_none()
            });
            if !went && !listed.nodes.contains(node) {
                violations.push(Violation {
                    at: listed.at,
                    rule: Rule::Listed,
                    what: format!(
                        "{} got a list of all Leases without that of {node}",
                        listed.client
                    ),
                });
            }
        }
    }
}

/// Nobody asks again and again.
fn requests(digest: &Index, violations: &mut Vec<Violation>) {
    let mut about: BTreeMap<(ClientId, &str), Vec<Time>> = BTreeMap::new();
    let mut watches: BTreeMap<ClientId, Vec<Time>> = BTreeMap::new();
    for request in digest.requests.values() {
        let node = request.node.as_deref().unwrap_or("all nodes");
        about
            .entry((request.client, node))
            .or_default()
            .push(request.sent);
        if request.watches {
            watches
                .entry(request.client)
                .or_default()
                .push(request.sent);
        }
    }
    for ((client, node), sent) in &about {
        if let Some(at) = more_than(REQUESTS, sent) {
            violations.push(Violation {
                at,
                rule: Rule::Requests,
                what: format!("{client} sent over {REQUESTS} requests in a minute, about {node}"),
            });
        }
    }
    for (client, sent) in &watches {
        if let Some(at) = more_than(WATCHES, sent) {
            violations.push(Violation {
                at,
                rule: Rule::Requests,
                what: format!("{client} began over {WATCHES} watches in a minute"),
            });
        }
    }
}

/// When more than so many were sent in a minute.
fn more_than(most: usize, sent: &[Time]) -> Option<Time> {
    let mut windows = sent.windows(most + 1);
    let many = windows.find(|many| many[0] + MINUTE > many[most])?;
    many.last().copied()
}
