//! What sets do to the locks that their caller had before.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::digest::{Commit, Index, Op};
use super::rule::{Rule, Violation};
use crate::history::{Acquisition, Call, LockSet, OnConflict, OpId, Record};
use crate::time::{EPOCH, Time};

/// How long after its end a lease may count as held: the clock budget as the margin, once more as the error
/// of its times, and a write that is long under way.
const STILL_HELD: Duration = Duration::from_secs(30);

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    for (&id, op) in &digest.ops {
        let (Call::AcquireAll(set), Some(identity)) = (&op.call, digest.identities.get(&op.client))
        else {
            continue;
        };
        let mut checker = Checker {
            digest,
            id,
            op,
            set,
            identity,
            violations,
        };
        checker.left_as_found();
        checker.details_kept();
    }
}

/// Checks one call.
struct Checker<'a> {
    digest: &'a Index,
    id: OpId,
    op: &'a Op,
    set: &'a LockSet,
    /// Who its caller says it is.
    identity: &'a str,
    violations: &'a mut Vec<Violation>,
}

impl<'a> Checker<'a> {
    /// It releases only what it acquired itself, from nobody.
    fn left_as_found(&mut self) {
        let digest = self.digest;
        for commit in &digest.commits {
            let (Some(held_state), None) =
                (commit.acquisition_before(), commit.acquisition_after())
            else {
                continue;
            };
            let mut begins = digest.commits.iter();
            let begins = begins.find(|other| {
                other.node == commit.node && other.begins().as_ref() == Some(&held_state)
            });
            let is_new = begins.is_some_and(|begins| self.is_by(begins) && !was_held(begins));
            if !is_new && self.is_by(commit) {
                self.violated(
                    Rule::LeftAsFound,
                    commit.at,
                    &format!("released {held_state}, which its caller had before"),
                );
            }
        }
    }

    /// Before it has all nodes, it rewrites nothing that the caller locked before.
    fn details_kept(&mut self) {
        if self.set.manner == OnConflict::Partial || self.set.nodes.len() < 2 {
            return;
        }
        let digest = self.digest;
        for node in &self.set.nodes {
            let mut commits = digest.commits.iter().rev();
            let last = commits.find(|commit| commit.node == *node && commit.at <= self.op.called);
            let Some(earlier) = last.and_then(Commit::acquisition_after) else {
                continue;
            };
            if !earlier.is_of(self.identity) {
                continue;
            }
            let mut commits = digest.commits.iter();
            let rewritten = commits.find(|commit| {
                commit.node == *node && self.is_by(commit) && rewrites(commit, &earlier)
            });
            if let Some(first) = rewritten
                && !self.had_all_before(first)
            {
                self.violated(
                    Rule::DetailsKept,
                    first.at,
                    &format!("rewrote {earlier} before it had all nodes"),
                );
            }
        }
    }

    /// Whether its caller had all of its nodes at some moment, between the call and `commit`.
    fn had_all_before(&self, commit: &Commit) -> bool {
        let mut lacks: BTreeSet<&Arc<str>> = self.set.nodes.iter().collect();
        let commits = self.digest.commits.iter();
        for other in commits.take_while(|other| other.version < commit.version) {
            let Some(node) = self.set.nodes.iter().find(|node| **node == other.node) else {
                continue;
            };
            if lacks.is_empty() && other.at > self.op.called {
                return true;
            }
            let held_state = other.acquisition_after();
            if held_state.is_some_and(|held| held.is_of(self.identity)) {
                lacks.remove(node);
            } else {
                lacks.insert(node);
            }
        }
        lacks.is_empty()
    }

    /// It made this change.
    fn is_by(&self, commit: &Commit) -> bool {
        self.digest
            .op_of(commit)
            .is_some_and(|(made, _)| made == self.id)
    }

    fn violated(&mut self, rule: Rule, at: Time, what: &str) {
        let (id, set) = (self.id.0, self.set);
        self.violations.push(Violation {
            at,
            rule,
            what: format!("op{id} ({set}) {what}"),
        });
    }
}

/// Whether an acquisition begins where somebody held a lease that had not ended.
fn was_held(begins: &Commit) -> bool {
    held_until(begins).is_some_and(|end| EPOCH + begins.at.as_micros() < end)
}

/// The same, if it may still have counted as held: by clocks that are apart, and when the write was sent.
pub(super) fn may_have_been_held(begins: &Commit) -> bool {
    let budget = i64::try_from(STILL_HELD.as_micros()).unwrap_or(0);
    held_until(begins).is_some_and(|end| EPOCH + begins.at.as_micros() < end + budget)
}

fn held_until(begins: &Commit) -> Option<i64> {
    let before = begins.before.as_ref();
    before
        .filter(|before| before.holder.is_some())
        .map(Record::end)
}

/// Whether it changes what `acquisition` says about itself.
fn rewrites(commit: &Commit, acquisition: &Acquisition) -> bool {
    let (Some(before), Some(after)) = (&commit.before, &commit.after) else {
        return false;
    };
    let goes_on = before.acquisition().as_ref() == Some(acquisition)
        && after.acquisition().as_ref() == Some(acquisition);
    goes_on && before.reason != after.reason
}
