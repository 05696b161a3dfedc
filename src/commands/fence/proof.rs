//! What proves that the node is off, and whether that proof is about the current machine.

use futures::future::join;
use kube::ResourceExt as _;
use maintenance_lease::NodeLease;
use maintenance_lease::env::{Env as _, Machine};
use pod_safety::fencing::record::ANNOTATION;
use pod_safety::fencing::steps::{self, FencingEvidence, Step};
use pod_safety::fencing::{Cost, How, Proof, Recording, UnchangedHeartbeat};
use pod_safety::owners::PodOwner;

use super::steps::FenceRun;
use crate::error::{Failure, FencingRefusal, HookError};
use crate::run::fencing::Observed;
use crate::words::fencing::{kept_on_hold, replaced, unreadable_replaced};

impl FenceRun<'_> {
    /// Records the operator's word as the proof for the machine that is seen first.
    pub(super) fn record_powered_off(&mut self, observed: &Observed) {
        if let Some(how) = &self.args.powered_off
            && self.proof.is_none()
        {
            self.proof = Some(Proof {
                how: How::PoweredOff(how.clone()),
                of: observed.evidence.machine(),
            });
        }
    }

    /// The proof by a hook that got `observed` in its environment and printed `output`.
    pub(super) fn by_hook(&self, observed: &Observed, output: String) -> Proof {
        Proof {
            how: How::Hook {
                program: self.hook.program(),
                output,
                isolated: self.args.isolated,
            },
            of: observed.evidence.machine(),
        }
    }

    /// Reads the node and judges the next step. What can't be read is retried, within `retries`.
    ///
    /// # Errors
    /// If it can't be read, why there is no next step, or that the command was interrupted.
    pub(super) async fn observe(&mut self) -> Result<(Observed, Step), Failure> {
        let target = self.target;
        loop {
            let reading = async || {
                let (observed, pods) = join(target.observed(), target.pods()).await;
                Ok((observed?, pods?))
            };
            let (observed, pods) = self.retries.read(target, reading).await?;
            self.record_powered_off(&observed);
            self.settle_record(&observed).await;
            self.has_found_hold = !target.is_dry_run() && self.is_hold_only(&observed);
            self.watch_suspect(&observed);
            let taint = &observed.evidence.state.out_of_service;
            let cost = Cost::of(&pods, taint, self.args.isolated);
            match self.judge(&observed, &cost).await? {
                Err(refusal) if refusal.is_unread() && !self.retries.remaining().is_zero() => {
                    let failure = self.refused(&refusal);
                    self.retries.report(target, &failure);
                    self.retries.pause(target).await?;
                }
                Err(refusal) => {
                    if matches!(refusal, steps::Refusal::NoOwner(_)) {
                        self.report_cost(&observed, cost);
                    }
                    let is_accepted = self.accept(&refusal).await;
                    if !matches!(is_accepted, Ok(true)) {
                        self.keep_if_proven(&refusal);
                    }
                    if !is_accepted? {
                        return Err(self.refused(&refusal));
                    }
                }
                Ok(step) => {
                    self.owners.extend(pods.iter().filter_map(PodOwner::of));
                    let is_changing = matches!(step, Step::Hold | Step::Fence | Step::Record);
                    let is_watched = !is_changing || std::mem::replace(&mut self.is_watched, true);
                    if !is_watched && target.watch_heartbeat(&observed).await? {
                        continue;
                    }
                    if is_changing {
                        self.report_cost(&observed, cost);
                    }
                    return Ok((observed, step));
                }
            }
        }
    }

    /// Watches the heartbeat of a suspect from the time on when it is proven to be off.
    fn watch_suspect(&mut self, observed: &Observed) {
        if self.args.suspect && self.proof.is_some() {
            let heartbeat = &observed.evidence.state.heartbeat;
            self.unchanged = Some(UnchangedHeartbeat::after(
                self.unchanged.take(),
                heartbeat,
                Machine.boot(),
            ));
        }
    }

    /// Warns once of the record that this run will replace.
    fn warn_of_replaced(&mut self, evidence: &FencingEvidence) {
        if let Some(record) = evidence.replaced()
            && self.replaced.is_none()
            && !self.recording.is_open()
        {
            let replaced = replaced(&self.target.node, record);
            self.target.terminal().warn(&replaced);
            self.replaced = Some(record.clone());
        }
    }

    /// Warns once of an annotation that is no record, and that this run will replace: a later release may have written it.
    fn warn_of_unreadable(&mut self, observed: &Observed) {
        let evidence = &observed.evidence;
        let annotation = evidence.node.annotations().get(ANNOTATION);
        if let Some(text) = annotation
            && evidence.state.record.is_none()
            && !std::mem::replace(&mut self.has_warned_of_unreadable, true)
        {
            let replaced = unreadable_replaced(&self.target.node, text);
            self.target.terminal().warn(replaced);
        }
    }

    /// The failure for a refusal. Says what stays as it is.
    fn refused(&mut self, why: &steps::Refusal) -> Failure {
        let target = self.target;
        let node = target.node.clone();
        match why {
            steps::Refusal::HookRunning(other) => {
                // The other run works under the hold of this one.
                self.taken = None;
                Failure::Hook(HookError::Running {
                    node,
                    other: (**other).clone(),
                    now: target.now().latest,
                })
            }
            why => Failure::Fencing(FencingRefusal::Fence {
                node,
                why: why.clone(),
            }),
        }
    }

    /// Keeps the hold if the node is off, and only the operator's consent is missing.
    fn keep_if_proven(&mut self, why: &steps::Refusal) {
        let is_proven = matches!(&self.proof, Some(proof) if proof.how.is_hook());
        if is_proven && matches!(why, steps::Refusal::NoOwner(_)) {
            (self.taken, self.has_found_hold) = (None, false);
            let target = self.target;
            let terminal = target.terminal();
            terminal.warn(kept_on_hold(&target.node, target.program()));
        }
    }

    /// Whether another acquisition has begun or ended since this run began under one.
    fn has_lost_lock(&self, observed: &Observed) -> bool {
        let id = observed.lease.as_ref().and_then(NodeLease::lock_id);
        self.under.is_some() && id != self.under
    }

    /// The next step, judged by what was `observed`, or why there is none.
    ///
    /// # Errors
    /// That the command was interrupted.
    async fn judge(
        &mut self,
        observed: &Observed,
        cost: &Cost,
    ) -> Result<Result<Step, steps::Refusal>, Failure> {
        let target = self.target;
        let reading = async { Ok(target.zone(observed).await) };
        let mut no_owner = cost.no_owner.clone();
        no_owner.retain(|pod| !self.accepted_losses.contains(pod));
        let evidence = FencingEvidence {
            state: observed.evidence.state.clone(),
            machine: observed.evidence.machine(),
            zone: target.interrupt.or(reading).await?,
            remediation: observed.evidence.remediation.clone(),
            lock: target.lock(observed.lease.as_ref()),
            is_lost: self.has_lost_lock(observed),
            is_suspect: self.args.suspect,
            has_stopped_reporting: self
                .unchanged
                .as_ref()
                .is_some_and(|unchanged| unchanged.is_over(observed.begun)),
            hook: self.hook.other(observed),
            proof: self.proof.clone(),
            is_recorded: self.recording.is_there(),
            no_owner,
        };
        let next = evidence.next(observed.at, self.accepted);
        if next.is_ok() {
            self.warn_of_replaced(&evidence);
            self.warn_of_unreadable(observed);
        }
        self.unread = evidence.unread();
        if let Err(steps::Refusal::OtherMachine { proof, now }) = &next {
            // The proof and the annotations on the Node belong to another machine. Nothing is known about this
            // one.
            self.proof = None;
            if proof.of.uid != now.uid {
                self.recording = Recording::Absent;
            }
        }
        Ok(next)
    }
}
