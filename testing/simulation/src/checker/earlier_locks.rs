//! What sets do to the locks that their caller had before, and what they write about all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::digest::{Commit, Index, Op};
use super::rule::{Rule, Violation};
use crate::history::{Acquisition, Call, CallOutcome, Details, LockSet, OnConflict, OpId, Record};
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
        checker.details_written();
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

    /// Before it has all nodes, it rewrites nothing that the caller locked before. If it fails, nothing is rewritten
    /// that it does not name.
    fn details_kept(&mut self) {
        // Without waiting, everything is written by one request each.
        if self.set.manner != OnConflict::Waiting || self.set.nodes.len() < 2 {
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
            let mut rewritten = digest
                .commits
                .iter()
                .filter(|commit| commit.node == *node && self.is_by(commit))
                .filter_map(|commit| rewritten(commit, &earlier));
            let Some((first, before, mut after)) = rewritten.next() else {
                continue;
            };
            let said = digest.rewritten.get(&self.id);
            let is_said = said.is_some_and(|nodes| nodes.contains(node));
            after = rewritten.next_back().map_or(after, |(.., after)| after);
            if !self.had_all_before(first) {
                self.violated(
                    Rule::DetailsKept,
                    first.at,
                    &format!("rewrote {earlier}{before} before it had all nodes"),
                );
            } else if let Some((returned, CallOutcome::Refused(why))) = &self.op.returned
                && before != after
                && !is_said
            {
                self.violated(
                    Rule::DetailsKept,
                    *returned,
                    &format!("failed ({why}), and left {earlier} with{after} instead of{before}"),
                );
            }
        }
    }

    /// What it locked says what it was told to write.
    fn details_written(&mut self) {
        let Some((returned, CallOutcome::AcquiredAll(all))) = &self.op.returned else {
            return;
        };
        for (node, acquisition) in all {
            // A hold covers a lease that is asked for, and nothing is written.
            if acquisition.is_hold() && !self.set.holds() {
                continue;
            }
            let mut commits = self.digest.commits.iter().rev();
            let last = commits.find(|commit| {
                commit.node == *node
                    && commit.acquisition_after().as_ref() == Some(acquisition)
                    && self.is_done_by(commit)
            });
            let details = last.and_then(|commit| commit.after.as_ref());
            let is_new = self.begins(acquisition);
            if details.is_none_or(|after| !self.is_told_in(&after.details, is_new)) {
                let after = details.map(|after| after.details.to_string());
                let after = after.unwrap_or_default();
                self.violated(
                    Rule::DetailsWritten,
                    *returned,
                    &format!("locked {acquisition} and left it with{after}"),
                );
            }
        }
    }

    /// Whether `details` are those that were asked for. A renewal keeps what is not.
    fn is_told_in(&self, details: &Details, is_new: bool) -> bool {
        let (asked, holds) = (&self.set.details, self.set.holds());
        details.reason == asked.reason
            && (details.ticket == asked.ticket || asked.ticket.is_none() && !is_new && !holds)
            && (details.purpose == asked.purpose || asked.purpose.is_none() && !is_new)
            && (details.hold_until == asked.hold_until || !is_new && !holds)
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

    fn begins(&self, acquisition: &Acquisition) -> bool {
        let mut commits = self.digest.commits.iter();
        commits.any(|commit| self.is_by(commit) && commit.begins().as_ref() == Some(acquisition))
    }

    /// It made this change.
    fn is_by(&self, commit: &Commit) -> bool {
        self.digest
            .op_of(commit)
            .is_some_and(|(made, _)| made == self.id)
    }

    /// It made this change, or found it made.
    fn is_done_by(&self, commit: &Commit) -> bool {
        self.digest
            .requests_of(self.op.client, commit)
            .any(|request| request.op == Some(self.id))
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

/// A change of what `acquisition` says about itself: before and after.
fn rewritten<'c>(
    commit: &'c Commit,
    acquisition: &Acquisition,
) -> Option<(&'c Commit, &'c Details, &'c Details)> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let goes_on = before.acquisition().as_ref() == Some(acquisition)
        && after.acquisition().as_ref() == Some(acquisition);
    (goes_on && before.details != after.details).then_some((
        commit,
        &before.details,
        &after.details,
    ))
}
