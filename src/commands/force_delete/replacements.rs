//! The replacements of pods that were deleted.

use std::time::Duration;

use futures::future::join;
use k8s_openapi::api::core::v1::Pod;
use pod_safety::Removed;
use pod_safety::constants::JOB_TRACKING;
use pod_safety::facts::{Owner, Promise};
use pod_safety::known::Known;
use pod_safety::node_health::Status;
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
        let expecting = deleted
            .iter()
            .filter(|one| matches!(&one.seen, Some(seen) if one.is_open() && is_expected(seen)));
        let limit = self.timeout();
        if limit > Duration::ZERO
            && !ended.has_come()
            && let many @ 1.. = expecting.count()
        {
            let remark = words::waiting_for_replacements(many, limit);
            self.session.terminal.remark(remark);
        }
        let (pods, removed): (Vec<&mut Deleted>, Vec<Removed>) = { deleted.iter_mut() }
            .filter(|one| one.is_open())
            .filter_map(|one| Some(removed(one.seen.as_ref()?)).map(|removed| (one, removed)))
            .unzip();
        let outcomes = outcomes(self.reader, &removed, limit, ended.came());
        let outcomes = show_elapsed(self.session.terminal, WAITING_FOR_REPLACEMENTS, outcomes);
        let outcomes = outcomes.await;
        for (one, outcome) in pods.into_iter().zip(outcomes) {
            one.outcome = outcome;
        }
        for one in deleted {
            if one.seen.is_none() && one.is_open() && one.report.target.kind == "node" {
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

    /// Waits until the pods of a deleted Node are gone. Nobody collects them while there is another Node of
    /// that name.
    async fn pods_left(&self, one: &Deleted) -> Outcome {
        let node = &one.report.target.name;
        let uids: Vec<&str> = one.along.iter().map(|pod| &*pod.target.uid).collect();
        let begun = Instant::now();
        let mut is_announced = false;
        loop {
            let (pods, current) =
                join(self.reader.pods_of_node(node), self.reader.node(node)).await;
            let is_over = begun.elapsed() >= self.timeout();
            let outcome = match (pods, current) {
                (Ok(pods), Ok(current)) => {
                    let is_of_node = |pod: &&Pod| {
                        let uid = pod.metadata.uid.as_deref();
                        uid.is_some_and(|uid| uids.contains(&uid))
                    };
                    let left: Vec<String> = pods.iter().filter(is_of_node).map(name).collect();
                    if left.is_empty() {
                        return Outcome::Deleted;
                    }
                    Outcome::PodsLeft {
                        pods: left,
                        registered_again: current.is_some(),
                    }
                }
                (Err(error), _) => Outcome::Unseen {
                    error: error.to_string(),
                },
                (_, Err(error)) => Outcome::Unseen {
                    error: error.to_string(),
                },
            };
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

/// The name of a pod, as `NAMESPACE/NAME`.
fn name(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    format!(
        "{}/{}",
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default()
    )
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

fn promise(seen: &ReadPod) -> Option<Promise> {
    match &seen.facts.owner {
        Owner::Controller { promise, .. } => promise.value().copied(),
        Owner::Nothing | Owner::Gone { .. } => None,
    }
}

fn removed(seen: &ReadPod) -> Removed {
    let pod = &seen.facts.pod;
    Removed {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        same_controller: seen.same_controller.clone(),
        is_expected: is_expected(seen),
    }
}

/// Whether a replacement is created only now. Other controllers create it as soon as a pod is terminating.
fn is_expected(seen: &ReadPod) -> bool {
    match promise(seen) {
        Some(Promise::OneOfEachName | Promise::NoneBeforeTheEnd) => true,
        // It is for the same node. Its pods don't tolerate the taints of a node that is not ready or out of service.
        Some(Promise::OnePerNode) => matches!(
            &seen.facts.node.node,
            Known::Yes(Some(node)) if node.state.status() == Some(Status::True)
                && !node.state.out_of_service.is_asserted()
        ),
        Some(Promise::None | Promise::Perhaps) | None => false,
    }
}
