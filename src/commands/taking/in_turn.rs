//! Taking several nodes one after another, and waiting for each as long as it must.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maintenance_lease::protocol::{Refusal, State};
use maintenance_lease::{
    Change, Error, Keep, Maintenance, NodeLease, Refused, Renew, Seen, Sight, Subject,
};

use super::{Taking, is_hold, lost_to};
use crate::cli::patience::Patience;
use crate::commands::many::{self, Course};
use crate::commands::targets::Target;
use crate::commands::waiting::{Goal, Taken, Waiting};
use crate::failure::Failure;

impl Taking<'_> {
    /// Takes all of `targets` or none, in the order of their names. What is taken is kept meanwhile,
    /// and checked once more at the end.
    pub(crate) async fn in_turn(
        &mut self,
        targets: Vec<Target>,
        goal: Goal<'_>,
        patience: Patience,
    ) {
        self.refuse_missing(&targets);
        if !self.results.is_empty() {
            return;
        }
        // Nothing works under them yet: a lock is as good as its last second.
        let keep = Keep::new().stop(Duration::ZERO);
        let session = &self.work.session;
        let mut waiting = Waiting::new(session, self.work.verb, goal, patience, keep);
        let outcome = waiting.in_turn(targets).await;
        if outcome.is_interrupted() {
            self.course = Course::Interrupted;
        }
        let mut failures = outcome.failures;
        for Taken { mut change, held } in outcome.taken {
            // On its newest version the last check is one write.
            change.lease = Some(held.standing().lease);
            held.leave();
            self.results.insert(change.node.clone(), Ok(change));
        }
        if failures.is_empty() && self.results.len() > 1 {
            failures = self.check().await;
        }
        if failures.is_empty() {
            return;
        }
        self.give_back().await;
        for (node, failure) in failures {
            self.results.entry(node).or_insert(Err(failure));
        }
    }

    /// A name that no Node has is not worth waiting for.
    fn refuse_missing(&mut self, targets: &[Target]) {
        for target in targets {
            let seen = target.seen.as_ref();
            if seen.is_some_and(|seen| seen.row == Sight::Missing) {
                let missing = Error::NodeNotFound(target.node.clone());
                self.results
                    .insert(target.node.clone(), Err(missing.into()));
            }
        }
    }

    /// Makes sure that everything that was taken still is, and returns what is not.
    async fn check(&mut self) -> Vec<(String, Failure)> {
        let locks = &self.work.session.locks;
        let taken: BTreeMap<String, Change> = std::mem::take(&mut self.results)
            .into_iter()
            .filter_map(|(node, result)| Some((node, result.ok()?)))
            .collect();
        let targets = taken.keys().cloned();
        let targets = targets.map(|node| Target { node, seen: None }).collect();
        let (results, taken) = (&mut self.results, &taken);
        let mut failures = Vec::new();
        let course = many::in_order(
            targets,
            self.work.args.nodes.parallel,
            |target| async move { Ok(hold_on(locks, &taken[&target.node]).await?) },
            |node| locks.has_open_write(node),
            |node, result| match result {
                Ok(change) => {
                    results.insert(node.to_owned(), Ok(change));
                }
                Err(failure) => {
                    let failure = match failure {
                        // What is somebody else's now is not ours to give back.
                        Failure::Lock(Error::Refused(refused)) => {
                            Error::Lost(Arc::new(lost_to(*refused))).into()
                        }
                        other => {
                            results.insert(node.to_owned(), Ok(taken[node].clone()));
                            other
                        }
                    };
                    failures.push((node.to_owned(), failure));
                }
            },
        )
        .await;
        self.note(course);
        failures
    }
}

/// Makes sure of what `change` took: a lease by renewing it to its full duration, a hold by a look.
async fn hold_on(locks: &Maintenance, change: &Change) -> Result<Change, Error> {
    let node = &change.node;
    if change.lease.as_ref().is_some_and(is_hold) {
        let lease = locks.get(node).await?;
        if lease.as_ref().and_then(NodeLease::token) == change.token() {
            return Ok(change.clone());
        }
        let now = locks.server_time().now();
        let state = lease.as_ref().map_or(State::Free, |lease| lease.state(now));
        return Err(Error::Refused(Box::new(Refused {
            subject: Subject::Node,
            node: node.clone(),
            refusal: match state {
                State::Free => Refusal::NotHeld,
                _ => Refusal::ChangedHands,
            },
            lease,
            state,
        })));
    }
    let options = match change.token() {
        Some(token) => Renew::new().token(token),
        None => Renew::new(),
    };
    let seen = Seen {
        node: node.clone(),
        row: Sight::Unread,
        lease: change.lease.clone(),
    };
    let renewed = locks.renew_seen(node, &options, Some(seen)).await?;
    let mut sure = change.clone();
    sure.lease = renewed.lease;
    sure.deadline = renewed.deadline;
    Ok(sure)
}
