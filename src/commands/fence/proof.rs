//! What proves that the node is off, and whether that proof is about the current machine.

use maintenance_lease::NodeLease;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::BootInstant;
use pod_safety::fencing::steps::{self, AcceptedRisks, FencingEvidence, Step};
use pod_safety::fencing::{How, Proof, Recording, UnchangedHeartbeat};

use super::args::Risk;
use super::steps::FenceRun;
use crate::error::{Failure, FencingRefusal, HookError};
use crate::run::fencing::Observed;
use crate::words::fencing::replaced;

impl FenceRun<'_> {
    /// Records the operator's word as the proof for the machine that is seen first.
    pub(super) fn take_word(&mut self, observed: &Observed) {
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
            let reading = async || target.observed().await;
            let begun = Machine.boot();
            let observed = self.retries.read(target, reading).await?;
            self.take_word(&observed);
            self.judge_record(&observed).await;
            self.has_found_hold = !target.is_dry_run() && self.is_broken_off(&observed);
            self.watch_suspect(&observed);
            match self.judge(&observed, begun).await? {
                Err(refusal) if refusal.is_unread() && !self.retries.rest().is_zero() => {
                    let failure = self.refused(&refusal);
                    self.retries.report(target, &failure);
                    self.retries.pause(target).await?;
                }
                Err(refusal) => return Err(self.refused(&refusal)),
                Ok(step @ (Step::Hold | Step::Fence | Step::Record)) if !self.is_watched => {
                    self.is_watched = true;
                    if !target.watch_heartbeat(&observed).await? {
                        return Ok((observed, step));
                    }
                }
                Ok(step) => return Ok((observed, step)),
            }
        }
    }

    /// Watches the heartbeat of a suspect from the time on when it is proven to be off.
    fn watch_suspect(&mut self, observed: &Observed) {
        if self.args.suspect && self.proof.is_some() {
            let heartbeat = &observed.evidence.signs.heartbeat;
            self.unchanged = Some(UnchangedHeartbeat::after(
                self.unchanged.take(),
                heartbeat,
                Machine.boot(),
            ));
        }
    }

    /// Warns once of the record that this run will replace.
    fn warn_of_replaced(&mut self, evidence: &FencingEvidence) {
        if let Some((record, why)) = evidence.replaced()
            && self.replaced.is_none()
            && !self.recording.is_open()
        {
            let replaced = replaced(&self.target.node, record, why);
            self.target.session.terminal.warn(&replaced);
            self.replaced = Some(record.clone());
        }
    }

    fn refused(&self, why: &steps::Refusal) -> Failure {
        let node = self.target.node.clone();
        match why {
            steps::Refusal::HookRunning(other) => Failure::Hook(HookError::Running {
                node,
                other: (**other).clone(),
                now: self.target.now().latest,
            }),
            why => Failure::Fencing(FencingRefusal::Fence {
                node,
                why: why.clone(),
            }),
        }
    }

    /// Whether another acquisition has begun or ended since this run began under one.
    fn has_lost_lock(&self, observed: &Observed) -> bool {
        let id = observed.lease.as_ref().and_then(NodeLease::lock_id);
        self.under.is_some() && id != self.under
    }

    /// The next step, judged by what was read since `begun`, or why there is none.
    ///
    /// # Errors
    /// That the command was interrupted.
    async fn judge(
        &mut self,
        observed: &Observed,
        begun: BootInstant,
    ) -> Result<Result<Step, steps::Refusal>, Failure> {
        let target = self.target;
        let reading = async { Ok(target.zone(observed).await) };
        let evidence = FencingEvidence {
            signs: observed.evidence.signs.clone(),
            machine: observed.evidence.machine(),
            zone: target.or_interrupted(reading).await?,
            remediation: observed.evidence.remediation.clone(),
            lock: target.lock(observed.lease.as_ref()),
            is_lost: self.has_lost_lock(observed),
            is_suspect: self.args.suspect,
            has_stopped_reporting: self
                .unchanged
                .as_ref()
                .is_some_and(|unchanged| unchanged.is_over(begun)),
            hook: self.hook.other(observed),
            proof: self.proof.clone(),
            is_recorded: self.recording.is_there(),
        };
        let accepts = |doubt| self.args.common.risks.accepts(&doubt);
        let accepted = AcceptedRisks {
            mass_loss: accepts(Risk::MassLoss),
            unread: accepts(Risk::Unread),
        };
        let next = evidence.next(observed.at, accepted);
        self.warn_of_replaced(&evidence);
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
