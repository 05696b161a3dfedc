//! What was committed, against what was asked and answered.

use std::sync::Arc;

use super::digest::{Commit, Index, Loss, Op};
use super::rule::{Rule, Violation};
use crate::history::{Acquisition, Call, CallOutcome, OnConflict, OpId, Record};
use crate::time::EPOCH;

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    let mut checker = Checker { digest, violations };
    for commit in &digest.commits {
        checker.transitions(commit);
        checker.taken_in_time(commit);
        checker.meant(commit);
        checker.extended(commit);
    }
    for (&id, op) in &digest.ops {
        checker.ending(id, op);
        checker.released(id, op);
    }
    for loss in &digest.losses {
        checker.lost(loss);
    }
}

struct Checker<'a> {
    digest: &'a Index,
    violations: &'a mut Vec<Violation>,
}

impl Checker<'_> {
    /// Every acquisition counts one up on its Lease, and nothing else counts.
    fn transitions(&mut self, commit: &Commit) {
        let (Some(_), Some(after)) = (commit.by, &commit.after) else {
            return;
        };
        let before = commit
            .before
            .as_ref()
            .filter(|before| before.uid == after.uid);
        let count = before.map_or(0, |before| before.transitions);
        let elected = self
            .digest
            .op_of(commit)
            .is_some_and(|(_, op)| matches!(op.call, Call::Campaign(_)));
        let counts = match before {
            _ if commit.begins().is_none() => false,
            // As client-go has it: the first leader counts 0, and one who follows itself nothing.
            Some(before) => !elected || before.holder != after.holder,
            None => !elected,
        };
        let expected = count + u32::from(counts);
        if after.transitions != expected {
            self.violated(
                commit,
                Rule::Transitions,
                format!(
                    "{} transitions, not {expected}, in {after}",
                    after.transitions
                ),
            );
        }
    }

    /// A lease gets another holder only after it expired or was released, a hold only if that was
    /// confirmed.
    fn taken_in_time(&mut self, commit: &Commit) {
        let Some((id, op)) = self.digest.op_of(commit) else {
            return;
        };
        let elected = matches!(op.call, Call::Campaign(_));
        let takes = elected
            || matches!(
                op.call,
                Call::Acquire(_) | Call::AcquireAll(..) | Call::Hold(None)
            );
        if !takes || commit.begins().is_none() {
            return;
        }
        let (Some(before), Some(held_state)) = (&commit.before, commit.acquisition_before()) else {
            return;
        };
        let duration = i64::from(before.duration) * 1_000_000;
        let too_soon = if elected {
            // By their own eyes: nobody touched the record for its whole duration.
            let written = self.digest.commits.iter().rfind(|other| {
                other.node == commit.node
                    && other.version < commit.version
                    && other.after != other.before
            });
            let drift = duration / 1_000 + 2_000;
            written.is_some_and(|written| commit.at - written.at < duration - drift)
        } else {
            let end = before.renewed.or(before.acquired).unwrap_or(0) + duration;
            // A hold replaces a lease of its caller.
            let becomes_hold = !held_state.is_hold()
                && commit.begins().is_some_and(|begun| begun.is_hold())
                && self.is_own(op, &held_state);
            let is_confirmed = op.call.breaks(&held_state);
            !becomes_hold
                && !is_confirmed
                && (held_state.is_hold() || EPOCH + commit.at.as_micros() < end)
        };
        if too_soon {
            self.violated(
                commit,
                Rule::TakenInTime,
                format!("op{} took the node from {held_state} before its end", id.0),
            );
        }
    }

    /// Verbs that touch an acquisition touch the one that was meant.
    fn meant(&mut self, commit: &Commit) {
        let Some(held_state) = commit.acquisition_before() else {
            return;
        };
        let Some((id, op)) = self.digest.op_of(commit) else {
            // Outside of calls, what is held is renewed and nothing else.
            if commit.by.is_some() && commit.acquisition_after().as_ref() != Some(&held_state) {
                let what = format!("{held_state} ended without a call");
                self.violated(commit, Rule::Meant, what);
            }
            return;
        };
        let meant = match &op.call {
            Call::ForceRelease(meant) | Call::Hold(Some(meant)) | Call::Unhold(Some(meant)) => {
                Some(meant)
            }
            Call::Renew(meant) | Call::Extend(_, meant) | Call::Release(meant) => meant.as_ref(),
            Call::Unhold(None) => None,
            // When these may take something is another rule's business.
            Call::Acquire(_) | Call::Campaign(_) | Call::Hold(None) => return,
            // A set releases what it has.
            Call::AcquireAll(..) if commit.acquisition_after().is_some() => return,
            Call::AcquireAll(..) => None,
        };
        let right = match meant {
            Some(meant) => *meant == held_state,
            None => self.is_own(op, &held_state),
        };
        if !right {
            self.violated(
                commit,
                Rule::Meant,
                format!("op{} ({}) was done to {held_state}", id.0, op.call),
            );
        }
    }

    /// Time is added once, to an end that the call may have read before its first write.
    fn extended(&mut self, commit: &Commit) {
        let digest = self.digest;
        let Some((id, op)) = digest.op_of(commit) else {
            return;
        };
        let (Call::Extend(seconds, _), Some(after)) = (&op.call, &commit.after) else {
            return;
        };
        let is_own = |other: &Commit| digest.op_of(other).is_some_and(|(other, _)| other == id);
        let mut first_read = 0;
        for other in digest.commits.iter().take_while(|other| !is_own(other)) {
            let end = other.after.as_ref().map_or(0, Record::end);
            match other.node == commit.node {
                true if other.at < op.called => first_read = end,
                true => first_read = first_read.max(end),
                false => {}
            }
        }
        // Durations are whole seconds, rounded up.
        let second = 1_000_001;
        let written = after.renewed.unwrap_or(0);
        let added = first_read.max(written) + i64::from(*seconds) * 1_000_000;
        let before = commit.before.as_ref().map_or(0, Record::end);
        if after.end() > added.max(before) + second {
            let what = format!("op{} ({}) left {after}", id.0, op.call);
            self.violated(commit, Rule::AddedOnce, what);
        }
    }

    fn is_own(&self, op: &Op, held_state: &Acquisition) -> bool {
        let identity = self.digest.identities.get(&op.client);
        identity.is_some_and(|identity| held_state.is_of(identity))
    }

    /// A call ended as what was committed of it allows.
    fn ending(&mut self, id: OpId, op: &Op) {
        let Some((returned, ending)) = &op.returned else {
            return;
        };
        let digest = self.digest;
        let own: Vec<&Commit> = digest
            .commits
            .iter()
            .filter(|commit| digest.op_of(commit).is_some_and(|(made, _)| made == id))
            .collect();
        let late = own
            .iter()
            .find(|commit| digest.comes_late(commit, *returned));
        let why = match ending {
            CallOutcome::Acquired {
                acquisition,
                fencing,
                ..
            } => {
                self.fencing(op, acquisition, *fencing);
                let begun = own
                    .iter()
                    .filter(|commit| commit.begins().as_ref() == Some(acquisition));
                match begun.count() {
                    1 if late.is_none() => None,
                    1 => Some("something of it was committed after its end".to_owned()),
                    count => Some(format!("it was committed {count} times")),
                }
            }
            CallOutcome::Renewed {
                acquisition,
                renewed,
            } => {
                // Another may have written the very same time.
                let done = digest.commits.iter().any(|commit| {
                    digest
                        .requests_of(op.client, commit)
                        .any(|request| request.op == Some(id))
                        && commit.acquisition_after().as_ref() == Some(acquisition)
                        && commit.after.as_ref().and_then(|after| after.renewed) == Some(*renewed)
                });
                (!done || late.is_some())
                    .then(|| "it was not committed, or after its end".to_owned())
            }
            CallOutcome::Released { settled } => {
                let done = own
                    .iter()
                    .any(|commit| commit.acquisition_after().is_none());
                (!(done || *settled) || late.is_some())
                    .then(|| "it was not committed, or after its end".to_owned())
            }
            CallOutcome::AcquiredAll(all) => {
                let (wanted, accepts_own) = match &op.call {
                    Call::AcquireAll(set) if set.manner != OnConflict::Partial => {
                        (set.nodes.len(), set.accepts_own())
                    }
                    Call::AcquireAll(set) => (all.len(), set.accepts_own()),
                    _ => (1, false),
                };
                let begun = |(node, acquisition): &&(Arc<str>, Acquisition)| {
                    own.iter().any(|commit| {
                        commit.node == *node && commit.begins().as_ref() == Some(acquisition)
                    })
                };
                let goes_on = |(node, acquisition): &&(Arc<str>, Acquisition)| {
                    accepts_own && self.goes_on(id, op, node, acquisition)
                };
                // Of the others it is not known.
                let late = late.filter(|commit| {
                    commit.begins().is_some() && all.iter().any(|(node, _)| *node == commit.node)
                });
                let all = all.iter().filter(|of_one| begun(of_one) || goes_on(of_one));
                let all = all.count();
                (all != wanted || late.is_some())
                    .then(|| format!("{all} of {wanted} were committed before its end"))
            }
            // Its own release may have left nothing to do, before the Lease went. A renewal that was under
            // way when a release began is the keeper's.
            CallOutcome::Nothing => own
                .iter()
                .filter(|commit| !(matches!(op.call, Call::Release(_)) && commit.renews()))
                .any(|commit| {
                    commit.acquisition_after().is_some() || digest.comes_late(commit, *returned)
                })
                .then(|| "something was committed".to_owned()),
            CallOutcome::Unknown(_) => None,
            CallOutcome::Refused(_) | CallOutcome::HeldByCaller(_) => {
                return self.refused(id, op, &own);
            }
        };
        if let Some(why) = why {
            self.violations.push(Violation {
                at: *returned,
                rule: Rule::Acknowledged,
                what: format!("op{} ({}) ended as \"{ending}\", but {why}", id.0, op.call),
            });
        }
    }

    /// An acquisition from before the call went on: the call renewed it, or it was a hold, which is read.
    fn goes_on(&self, id: OpId, op: &Op, node: &Arc<str>, acquisition: &Acquisition) -> bool {
        let mut stands = self.digest.commits.iter().filter(|commit| {
            commit.node == *node && commit.acquisition_after().as_ref() == Some(acquisition)
        });
        stands.any(|commit| {
            let mut requests = self.digest.requests_of(op.client, commit);
            acquisition.is_hold() || requests.any(|request| request.op == Some(id))
        })
    }

    /// What was refused is not there: nothing comes later, and what came before is gone again.
    fn refused(&mut self, id: OpId, op: &Op, own: &[&Commit]) {
        let Some((returned, ending)) = &op.returned else {
            return;
        };
        if matches!(op.call, Call::AcquireAll(..)) {
            // What stays there of a set is another rule's business.
            return;
        }
        let mut stands = own.iter().filter(|commit| {
            self.digest.comes_late(commit, *returned)
                || commit.begins().is_some_and(|begun| {
                    if self.digest.is_let_in(commit) {
                        return false;
                    }
                    let held_state = self
                        .digest
                        .commits
                        .iter()
                        .rev()
                        .find(|other| other.node == commit.node && other.at <= *returned);
                    held_state.and_then(Commit::acquisition_after) == Some(begun)
                })
        });
        if let Some(commit) = stands.next() {
            let what = format!(
                "op{} ({}) ended as \"{ending}\", but @{} is its own",
                id.0, op.call, commit.version
            );
            self.violated(commit, Rule::Refused, what);
        }
    }

    /// Once a release is asked for, its caller renews nothing of that acquisition any more.
    fn released(&mut self, id: OpId, op: &Op) {
        let Call::Release(Some(released)) = &op.call else {
            return;
        };
        let digest = self.digest;
        for commit in &digest.commits {
            // Who failed to release a hold may extend it by another call.
            let by_another_call = digest.op_of(commit).is_some_and(|(other, _)| other != id);
            let renewed = commit.acquisition_after().as_ref() == Some(released)
                && !by_another_call
                && !self.is_entered_again(op, commit)
                && digest
                    .requests_of(op.client, commit)
                    .any(|request| request.sent > op.called);
            if renewed {
                let what = format!("op{} releases {released}, which was renewed later", id.0);
                self.violated(commit, Rule::Released, what);
            }
        }
    }

    /// Between a release that failed and `commit`, a set entered the lock again, and renews it since.
    fn is_entered_again(&self, release: &Op, commit: &Commit) -> bool {
        self.digest.ops.values().any(|op| {
            let accepts_own = matches!(&op.call, Call::AcquireAll(set) if set.accepts_own());
            accepts_own
                && op.client == release.client
                && op.is_about(&commit.node)
                && (release.called..=commit.at).contains(&op.called)
        })
    }

    /// What is lost, but not for the passing of time, stands no more.
    fn lost(&mut self, loss: &Loss) {
        let before = |commit: &&Commit| commit.node == loss.node && commit.at <= loss.at;
        let last = self.digest.commits.iter().rfind(before);
        if last.and_then(Commit::acquisition_after).as_ref() == Some(&loss.acquisition) {
            self.violations.push(Violation {
                at: loss.at,
                rule: Rule::Lost,
                what: format!(
                    "{} is stored, but was reported to {} as lost",
                    loss.acquisition, loss.client
                ),
            });
        }
    }

    /// A fencing number belongs to its acquisition alone.
    fn fencing(&mut self, op: &Op, acquisition: &Acquisition, fencing: u64) {
        let mut later = self
            .digest
            .commits
            .iter()
            .filter(|commit| commit.node == op.node)
            .skip_while(|commit| commit.begins().as_ref() != Some(acquisition));
        let Some(begun) = later.next() else {
            return;
        };
        let next = later.find(|commit| commit.begins().is_some());
        if fencing < begun.version || next.is_some_and(|next| next.version <= fencing) {
            self.violated(
                begun,
                Rule::Fencing,
                format!(
                    "{acquisition} began @{} and was given number {fencing}",
                    begun.version
                ),
            );
        }
    }

    fn violated(&mut self, commit: &Commit, rule: Rule, what: String) {
        self.violations.push(Violation {
            at: commit.at,
            rule,
            what,
        });
    }
}
