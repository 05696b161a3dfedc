//! What proves that the node is off, and whether that proof is about the current machine.

use pod_safety::fencing::steps::{self, AcceptedRisks, Sight, Step};
use pod_safety::fencing::{How, Proof};

use super::{FenceRun, Risk};
use crate::error::{Failure, FencingRefusal};
use crate::run::fencing::{Observed, Recording};

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
            let observed = self.retries.read(target, reading).await?;
            self.take_word(&observed);
            self.judge_record(&observed).await;
            self.has_found_hold = !target.is_dry_run() && self.is_broken_off(&observed);
            match self.judge(&observed).await? {
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

    fn refused(&self, why: &steps::Refusal) -> Failure {
        Failure::Fencing(FencingRefusal::Fence {
            node: self.target.node.clone(),
            why: why.clone(),
        })
    }

    /// The next step, judged by what is seen now, or why there is none.
    ///
    /// # Errors
    /// That the command was interrupted.
    async fn judge(
        &mut self,
        observed: &Observed,
    ) -> Result<Result<Step, steps::Refusal>, Failure> {
        let target = self.target;
        let reading = async { Ok(target.zone(observed).await) };
        let sight = Sight {
            signs: observed.evidence.signs.clone(),
            machine: observed.evidence.machine(),
            zone: target.or_interrupted(reading).await?,
            remediation: observed.evidence.remediation.clone(),
            lock: target.lock(observed.lease.as_ref()),
            proof: self.proof.clone(),
            is_recorded: self.recording.is_there(),
        };
        let insists = |doubt| self.args.doubts.insists(&doubt);
        let accepted = AcceptedRisks {
            mass_loss: insists(Risk::MassLoss),
            zone_unknown: insists(Risk::ZoneUnknown),
            remediation_unknown: insists(Risk::RemediationUnknown),
        };
        let next = sight.next(observed.at, accepted);
        if let Err(steps::Refusal::OtherMachine { proof, now }) = &next {
            // The proof and the marks on the Node belong to another machine. Nothing is known about this
            // one.
            self.proof = None;
            if proof.of.uid != now.uid {
                self.recording = Recording::Absent;
            }
        }
        Ok(next)
    }
}
