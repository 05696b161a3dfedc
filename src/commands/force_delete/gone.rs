//! Waits until what was deleted is gone, and reads which of its owners are not complete yet.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use pod_safety::outcome::Outcome;
use pod_safety::owners::{IncompleteOwner, PodOwner};
use tokio::time::Instant;

use super::context::Run;
use super::deleted::Deleted;
use crate::run::elapsed::show_elapsed;
use crate::run::interruption::Interruption;
use crate::words::force_deletion as words;

/// The time between two reads.
const PERIOD: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Waits until everything that was deleted is gone, or until it is interrupted: the pods of a Node, and pods
    /// that their Jobs still count. Other finalizers may stay for long.
    pub(super) async fn wait_until_gone(&self, deleted: &mut [Deleted], ended: &Interruption) {
        let open = deleted.iter_mut().filter(|one| one.is_open());
        let waiting = join_all(open.map(|one| async {
            one.outcome = tokio::select! {
                biased;
                () = ended.came() => Outcome::Unwatched,
                outcome = self.left(one) => outcome,
            };
        }));
        show_elapsed(self.session.terminal, words::WAITING_FOR_PODS, waiting).await;
    }

    /// The outcome once everything is gone, or at the end of the time.
    async fn left(&self, one: &Deleted) -> Outcome {
        let target = &one.report.target;
        let uids: Vec<&str> = one.along.iter().map(|pod| &*pod.target.uid).collect();
        let limit = self.args.timeout;
        let begun = Instant::now();
        let mut is_announced = false;
        loop {
            let outcome = match &target.namespace {
                Some(namespace) => {
                    let pod = self.reader.pod_left(namespace, &target.name, &target.uid);
                    pod.await
                }
                None => self.reader.pods_left(&target.name, &uids).await,
            };
            if outcome == Outcome::Deleted || begun.elapsed() >= limit {
                return outcome;
            }
            if !std::mem::replace(&mut is_announced, true) {
                let terminal = self.session.terminal;
                terminal.remark(words::waiting_until_gone(target, uids.len(), limit));
            }
            tokio::time::sleep(PERIOD.min(limit)).await;
        }
    }

    /// The owners of deleted pods that do not have all their pods ready.
    pub(super) async fn incomplete_owners(
        &self,
        deleted: &[Deleted],
        ended: &Interruption,
    ) -> Vec<IncompleteOwner> {
        let gone = deleted.iter().filter(|one| one.outcome == Outcome::Deleted);
        let owners: BTreeSet<PodOwner> = gone.flat_map(|one| one.owners.clone()).collect();
        tokio::select! {
            biased;
            () = ended.came() => Vec::new(),
            incomplete = self.reader.incomplete(&owners) => incomplete,
        }
    }
}
