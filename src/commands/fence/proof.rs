//! What a fencing rests on, and whether that is true of the machine that is there.

use pod_safety::fencing::steps::{self, Insistence, Sight, Step};
use pod_safety::fencing::{How, Proof};

use super::{Course, Insist};
use crate::error::Failure;
use crate::run::fencing::{Look, Recording};
use crate::words::fencing::refusal;

impl Course<'_> {
    /// Takes the operator's word for the machine that is seen first.
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

    /// A hook that was told of what was seen, and printed this.
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

    /// The next step by what is seen now.
    ///
    /// # Errors
    /// Why there is none, or that it was interrupted.
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
            // Of the machine of now nothing is known, and what stood on the Node before went with it.
            self.proof = None;
            if proof.of.uid != now.uid {
                self.recording = Recording::Absent;
            }
        }
        next.map_err(|why| refusal(&site.node, &why, site.program()))
    }
}
