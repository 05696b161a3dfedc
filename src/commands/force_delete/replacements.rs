//! The replacements of pods that were deleted.

use std::time::Duration;

use pod_safety::Removed;
use pod_safety::outcome::Outcome;
use tokio::time::Instant;

use super::context::Run;
use super::deleted::{Deleted, ReadPod};
use super::targets::Targets;
use crate::run::elapsed::show_elapsed;
use crate::run::interruption::Interruption;
use crate::run::replacements::outcomes;
use crate::words::force_deletion as words;
use crate::words::waiting::WAITING_FOR_REPLACEMENTS;

/// How long to wait for replacements.
const FOR_REPLACEMENTS: Duration = Duration::from_secs(30);

/// How long to wait for the pods of a deleted Node: the pod garbage collector takes up to 80 seconds.
const FOR_PODS: Duration = Duration::from_secs(120);

/// The time between two reads of the pods of a deleted Node.
const PERIOD: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Waits until the outcome of every pod is known, in parallel, or until it is interrupted.
    pub(super) async fn follow_outcomes(&self, deleted: &mut [Deleted], ended: &Interruption) {
        let (pods, removed): (Vec<&mut Deleted>, Vec<Removed>) = { deleted.iter_mut() }
            .filter(|one| one.outcome.is_open())
            .filter_map(|one| Some(removed(one.seen.as_ref()?)).map(|removed| (one, removed)))
            .unzip();
        let limit = self.timeout();
        let expected = removed.iter().filter(|pod| pod.is_expected);
        if limit > Duration::ZERO
            && !ended.has_come()
            && let many @ 1.. = expected.count()
        {
            let remark = words::waiting_for_replacements(many, limit);
            self.session.terminal.remark(remark);
        }
        let outcomes = outcomes(self.reader, &removed, limit, ended.came());
        let outcomes = show_elapsed(self.session.terminal, WAITING_FOR_REPLACEMENTS, outcomes);
        let outcomes = outcomes.await;
        for (one, outcome) in pods.into_iter().zip(outcomes) {
            one.outcome = outcome;
        }
        for one in deleted {
            if one.seen.is_none() && one.outcome.is_open() && one.report.target.kind == "node" {
                let left = async {
                    tokio::select! {
                        biased;
                        () = ended.came() => Outcome::Unwatched,
                        outcome = self.pods_left(one) => outcome,
                    }
                };
                let line = words::WAITING_FOR_PODS;
                one.outcome = show_elapsed(self.session.terminal, line, left).await;
            }
        }
    }

    /// How long to wait for the outcome.
    fn timeout(&self) -> Duration {
        let default = match self.targets {
            Targets::Node(_) => FOR_PODS,
            Targets::Pods(_) | Targets::Labeled(_) => FOR_REPLACEMENTS,
        };
        self.args.timeout.unwrap_or(default)
    }

    /// Waits until the pods of a deleted Node are gone.
    async fn pods_left(&self, one: &Deleted) -> Outcome {
        let node = &one.report.target.name;
        let uids: Vec<&str> = one.along.iter().map(|pod| &*pod.target.uid).collect();
        let begun = Instant::now();
        let mut is_announced = false;
        loop {
            let outcome = self.reader.pods_left(node, &uids).await;
            if outcome == Outcome::Deleted {
                return outcome;
            }
            let is_over = begun.elapsed() >= self.timeout();
            if is_over {
                return outcome;
            }
            if !is_announced {
                let remark = words::waiting_for_pods(node, uids.len(), self.timeout());
                self.session.terminal.remark(remark);
                is_announced = true;
            }
            tokio::time::sleep(PERIOD.min(self.timeout())).await;
        }
    }
}

fn removed(seen: &ReadPod) -> Removed {
    Removed::by_deletion(&seen.facts, seen.same_controller.clone())
}
