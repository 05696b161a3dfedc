//! The request to delete one target, and what is known about it afterwards.

use maintenance_lease::{ApiError, Error};
use pod_safety::checks::NODE_ALIVE;
use pod_safety::cluster::{Deletion, DeletionRequest};
use pod_safety::facts::PodSnapshot;
use pod_safety::lost_deletion::{ReadLater, settled};
use pod_safety::outcome::Outcome;
use pod_safety::report::DeletionTarget;

use super::context::Run;
use super::locks::Locks;
use crate::error::Failure;
use crate::run::interruption::Interruption;
use crate::run::session::FIELD_MANAGER;

/// The result of a delete request.
#[derive(Debug)]
pub(super) enum Answer {
    /// What the server did.
    Done(Deletion),
    /// No answer, because of this or because it was not awaited: it may have taken effect, or still may.
    Lost(Option<ApiError>),
    /// The pod of a Job was marked `Failed`, and the server refused to delete it.
    MarkedFailed(Failure),
}

impl Run<'_> {
    /// Deletes `target` if it is still the one that was checked. `pod` has its facts if it is a pod. After
    /// Ctrl-C, waits briefly for the answer.
    ///
    /// # Errors
    /// If the server refuses it, or if a dry run was interrupted.
    pub(super) async fn request(
        &self,
        target: &DeletionTarget,
        pod: Option<&PodSnapshot>,
        locks: &Locks,
        ended: &Interruption,
    ) -> Result<Answer, Failure> {
        match ended.with_grace(self.delete_one(target, pod, locks)).await {
            Err(Failure::Interrupted) if !self.args.write.is_dry_run() => Ok(Answer::Lost(None)),
            answer => answer,
        }
    }

    /// The outcome so far.
    pub(super) fn outcome(&self, answer: &Answer) -> Outcome {
        match (answer, self.args.write.is_dry_run()) {
            (Answer::Lost(error), _) => Outcome::Unknown {
                error: error.as_ref().map(ToString::to_string),
            },
            (Answer::MarkedFailed(failure), _) => Outcome::Marked {
                error: failure.to_string(),
            },
            (Answer::Done(Deletion::AlreadyGone), _) => Outcome::WasGone,
            (_, true) => Outcome::WouldBeDeleted,
            (Answer::Done(Deletion::Held { finalizers }), _) => Outcome::Held {
                finalizers: finalizers.clone(),
            },
            (Answer::Done(Deletion::Done | Deletion::Changed), _) => Outcome::Deleted,
        }
    }

    async fn delete_one(
        &self,
        target: &DeletionTarget,
        pod: Option<&PodSnapshot>,
        locks: &Locks,
    ) -> Result<Answer, Failure> {
        if self.args.write.is_dry_run() {
            return Ok(Answer::Done(Deletion::Done));
        }
        let job_waits = pod.filter(|pod| pod.job_waits);
        if let Some(pod) = job_waits {
            match self.reader.fail_pod(pod, FIELD_MANAGER).await {
                Ok(()) if locks.last() => {}
                // What was checked may be outdated once the lock has ended.
                Ok(()) => return Ok(Answer::Done(Deletion::Changed)),
                Err(error) if error.is_conflict() => return Ok(Answer::Done(Deletion::Changed)),
                Err(error) if error.is_not_found() => {
                    return Ok(Answer::Done(Deletion::AlreadyGone));
                }
                Err(error) if error.leaves_writes_unknown() => {
                    return Ok(Answer::Lost(Some(error)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        // If the version of an unreachable Node changes, its kubelet may be back. The version of a live
        // Node changes all the time.
        let lives = self.args.overrides(NODE_ALIVE);
        let is_any = target.namespace.is_none() && lives;
        let request = DeletionRequest {
            uid: &target.uid,
            // The phase that was set above changed the version, and what the Job does then changes it again.
            version: (!is_any && job_waits.is_none()).then_some(&*target.resource_version),
            grace: target.namespace.as_ref().map(|_| 0),
        };
        let sent = match &target.namespace {
            Some(namespace) => {
                self.reader
                    .delete_pod(namespace, &target.name, request)
                    .await
            }
            None => self.reader.delete_node(&target.name, request).await,
        };
        match sent {
            Err(error) if error.leaves_writes_unknown() => {
                Ok(self.settle(target, request, error).await)
            }
            Err(error) if job_waits.is_some() => Ok(Answer::MarkedFailed(error.into())),
            // The Job removed its finalizer, and the pod was already deleted.
            Ok(Deletion::AlreadyGone) if job_waits.is_some() => Ok(Answer::Done(Deletion::Done)),
            sent => Ok(Answer::Done(sent?)),
        }
    }

    /// Finds out whether a deletion took effect if its answer was lost.
    async fn settle(
        &self,
        target: &DeletionTarget,
        request: DeletionRequest<'_>,
        error: ApiError,
    ) -> Answer {
        let read = match &target.namespace {
            Some(namespace) => self.reader.pod(namespace, &target.name).await.map(|pod| {
                pod.map(|pod| ReadLater {
                    is_deleted: PodSnapshot::of(&pod).was_forced(),
                    metadata: pod.metadata,
                })
            }),
            None => self
                .reader
                .node(&target.name)
                .await
                .map(|node| {
                    node.map(|node| ReadLater {
                        is_deleted: node.metadata.deletion_timestamp.is_some(),
                        metadata: node.metadata,
                    })
                })
                .map_err(Error::from),
        };
        let settled = read.ok().and_then(|read| settled(request, read));
        settled.map_or(Answer::Lost(Some(error)), Answer::Done)
    }
}
