//! What became of the pods that were deleted.

use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::protocol::Span;
use pod_safety::cluster::{Aftermath, Taken};
use pod_safety::constants::JOB_TRACKING;
use pod_safety::facts::{NodeSight, Owner, Promise};
use pod_safety::known::Known;

use super::carry_out::{Deleted, Run};
use super::read::{Seen, is_forbidden};
use crate::output::safety::Outcome;
use crate::run::interruption::Interruption;
use crate::words::time::length;

impl Run<'_> {
    /// Waits until the outcome of every pod is known, in parallel, or until it is interrupted.
    pub(super) async fn see_what_became(&self, deleted: &mut [Deleted], ended: &Interruption) {
        let expecting = deleted
            .iter()
            .filter(|one| matches!(&one.seen, Some(seen) if one.is_open() && is_expected(seen)));
        let limit = self.args.timeout;
        if limit > Duration::ZERO
            && !ended.has_come()
            && let many @ 1.. = expecting.count()
        {
            let what = match many {
                1 => "the replacement".to_owned(),
                _ => format!("{many} replacements"),
            };
            self.session.terminal.remark(format!(
                "waiting up to {} for {what}",
                length(Span::from(limit))
            ));
        }
        let taken = Taken::default();
        let seeing = deleted.iter().map(|one| async {
            match &one.seen {
                Some(seen) if one.is_open() => {
                    tokio::select! {
                        biased;
                        () = ended.came() => Outcome::Unwatched,
                        outcome = self.became(seen, &taken) => outcome,
                    }
                }
                _ => one.outcome.clone(),
            }
        });
        let outcomes = join_all(seeing).await;
        for (one, outcome) in deleted.iter_mut().zip(outcomes) {
            one.outcome = outcome;
        }
    }

    async fn became(&self, seen: &Seen, taken: &Taken) -> Outcome {
        let expected = is_expected(seen);
        // A pod of a StatefulSet is only replaced by one of the same name.
        let kin = seen.kin.as_ref().filter(|_| !is_of_a_set(seen));
        let aftermath =
            self.reader
                .aftermath(&seen.facts.pod, kin, taken, expected, self.args.timeout);
        match aftermath.await {
            Ok(Aftermath::Gone) if expected => Outcome::Unreplaced,
            Ok(Aftermath::Gone) => Outcome::Deleted,
            Ok(Aftermath::Held { finalizers }) => Outcome::Held { finalizers },
            Ok(Aftermath::Replaced(replacement)) => Outcome::Replaced {
                name: replacement.name,
                uid: replacement.uid,
                node: replacement.node,
            },
            // Without permission to read other pods, report only this one.
            Err(error) if is_forbidden(&error) && !expected => Outcome::Deleted,
            Err(error) => Outcome::Unseen {
                error: error.to_string(),
            },
        }
    }
}

impl Deleted {
    /// It is gone, and its replacement is not known yet.
    fn is_open(&self) -> bool {
        match &self.outcome {
            Outcome::Deleted => true,
            // Its Job removes the finalizer.
            Outcome::Held { finalizers } => finalizers.iter().all(|name| name == JOB_TRACKING),
            _ => false,
        }
    }
}

fn promise(seen: &Seen) -> Option<Promise> {
    match &seen.facts.owner {
        Owner::Controller { promise, .. } => promise.yes().copied(),
        Owner::Nothing | Owner::Gone { .. } => None,
    }
}

fn is_of_a_set(seen: &Seen) -> bool {
    promise(seen) == Some(Promise::OneOfEachName)
}

/// Whether a replacement is created only now. Other controllers create it as soon as a pod is terminating.
fn is_expected(seen: &Seen) -> bool {
    match promise(seen) {
        Some(Promise::OneOfEachName | Promise::NoneBeforeTheEnd) => true,
        Some(Promise::OnePerNode) => matches!(seen.facts.node, Known::Yes(NodeSight::There(_))),
        Some(Promise::None | Promise::Perhaps) | None => false,
    }
}
