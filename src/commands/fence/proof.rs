//! What proves that the node is off, and whether that proof is about the current machine.

use pod_safety::fencing::steps::{self, Insistence, Sight, Step};
use pod_safety::fencing::{How, Proof};

use super::{Course, Insist};
use crate::error::Failure;
use crate::run::fencing::{Look, Recording};
use crate::words::fencing::refusal;

impl Course<'_> {
    /// Records the operator's word as the proof for the machine that is seen first.
    pub(super) fn take_word(&mut self, look: &Look) {
        if let Some(how) = &self.args.powered_off
            && self.proof.is_none()
        {
            self.proof = Some(Proof {
                how: How::PoweredOff(how.clone()),
                of: look.evidence.machine(),
            });
        }
    }

    /// The proof by a hook that got `look` in its environment and printed `output`.
    pub(super) fn by_hook(&self, look: &Look, output: String) -> Proof {
        Proof {
            how: How::Hook {
                program: self.hook.program(),
                output,
                isolated: self.args.isolated,
            },
            of: look.evidence.machine(),
        }
    }

    /// The next step, judged by what is seen now.
    ///
    /// # Errors
    /// Why there is no next step, or that the command was interrupted.
    pub(super) async fn next(&mut self, look: &Look) -> Result<Step, Failure> {
        let site = self.site;
        let reading = async { Ok(site.zone(look).await) };
        let sight = Sight {
            signs: look.evidence.signs.clone(),
            machine: look.evidence.machine(),
            zone: site.or_interrupted(reading).await?,
            remediation: look.evidence.remediation.clone(),
            lock: site.lock(look.lease.as_ref()),
            proof: self.proof.clone(),
            is_recorded: self.recording.is_there(),
        };
        let insists = |doubt| self.args.doubts.insists(&doubt);
        let insistence = Insistence {
            mass_loss: insists(Insist::MassLoss),
            zone_unknown: insists(Insist::ZoneUnknown),
            remediation_unknown: insists(Insist::RemediationUnknown),
        };
        let next = sight.next(look.at, insistence);
        if let Err(steps::Refusal::OtherMachine { proof, now }) = &next {
            // The proof and the marks on the Node belong to another machine. Nothing is known about this
            // one.
            self.proof = None;
            if proof.of.uid != now.uid {
                self.recording = Recording::Absent;
            }
        }
        next.map_err(|why| refusal(&site.node, &why, site.program()))
    }
}
