//! What prevents a node from being fenced, and which of these risks the user can accept.

use maintenance_lease::protocol::Span;

use super::FencingEvidence;
use crate::bugs::{self, Bug};
use crate::facts::Zone;
use crate::fencing::Attempt;
use crate::fencing::machine::Machine;
use crate::fencing::record::Proof;
use crate::known::{Known, Why};
use crate::node_health::Status;

/// Why a node is not fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its kubelet last reported this long ago.
    Alive(Span),
    /// It was fenced, and its kubelet last reported this long ago.
    BackAlive(Span),
    /// The proof is about another machine, or the machine was restarted since the proof.
    OtherMachine {
        /// The proof, with the machine that it is about.
        proof: Box<Proof>,
        /// The machine that the Node represents now.
        now: Box<Machine>,
    },
    /// The hook of another run may still be running for this node.
    HookRunning(Box<Attempt>),
    /// The lock under which this run began has ended, so somebody else may have changed the machine.
    LockLost,
    /// Its kubelet does not report, but the control plane has not reported the node as unreachable. The
    /// status is that of its Ready condition; `None` if it has none.
    NotCalledUnreachable(Option<Status>),
    /// It is unknown whether its kubelet is alive.
    HeartbeatUnknown(Why),
    /// Too many nodes of its zone are unreachable.
    MassLoss(Zone),
    /// A tool that does not know our holds is already repairing the node.
    Remediation(String),
    /// Facts that could not be read and may speak against fencing.
    Unread(Vec<Unread>),
    /// These pods would be lost, because nothing recreates them.
    NoOwner(Vec<String>),
}

/// A check that could not be made, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// How many nodes of its zone are unreachable.
    Zone(Why),
    /// Whether another tool is repairing the node.
    Remediation(Why),
}

impl Unread {
    /// Whether the user can accept it. If another tool may be repairing the node, only a missing permission
    /// can be accepted. After any other failure, a retry may succeed.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        matches!(self, Self::Zone(_) | Self::Remediation(Why::Forbidden(_)))
    }

    /// Why it could not be read.
    #[must_use]
    pub fn why(&self) -> &Why {
        match self {
            Self::Zone(why) | Self::Remediation(why) => why,
        }
    }
}

impl Refusal {
    /// Whether the server did not answer, so that a retry may succeed.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        let is_open = |why: &Why| matches!(why, Why::NoAnswer(_));
        match self {
            Self::HeartbeatUnknown(why) => is_open(why),
            Self::Unread(unread) => unread.iter().any(|unread| is_open(unread.why())),
            _ => false,
        }
    }
}

/// The risks that the user accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedRisks {
    /// Most nodes of its zone are unreachable.
    pub mass_loss: bool,
    /// Some facts could not be read.
    pub unread: bool,
    /// Some pods are lost, because nothing recreates them.
    pub no_owner: bool,
}

impl FencingEvidence {
    /// Checks that the proof is about this machine.
    ///
    /// # Errors
    /// If it is about another machine.
    pub(super) fn check_proof(&self) -> Result<(), Refusal> {
        match &self.proof {
            Some(_) if bugs::active(Bug::ProofOfAnyMachine) => Ok(()),
            Some(proof) if !proof.of.is(&self.machine) => Err(Refusal::OtherMachine {
                proof: Box::new(proof.clone()),
                now: Box::new(self.machine.clone()),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the kubelet does not report any more, by its `recent_report` and by the control plane. The
    /// control plane watches for changes and ignores the kubelet's clock, so it is right even if a heartbeat
    /// is ahead.
    ///
    /// # Errors
    /// If the kubelet still reports, or if this is unknown.
    pub(super) fn check_reports_stopped(
        &self,
        recent_report: Known<Option<Span>>,
    ) -> Result<(), Refusal> {
        match (recent_report, self.state.status()) {
            (Known::Yes(Some(age)), _) => Err(Refusal::Alive(age)),
            (Known::Unknown(why), _) => Err(Refusal::HeartbeatUnknown(why)),
            (Known::Yes(None), Some(Status::Unknown)) => Ok(()),
            (Known::Yes(None), status) => Err(Refusal::NotCalledUnreachable(status)),
        }
    }

    /// Checks the risks of fencing an unreachable node, except those in `accepted`.
    ///
    /// # Errors
    /// The first risk that was found.
    pub(super) fn check_risks(&self, accepted: AcceptedRisks) -> Result<(), Refusal> {
        if let Known::Yes(Some(who)) = &self.remediation {
            return Err(Refusal::Remediation(who.clone()));
        }
        if let Known::Yes(zone) = &self.zone
            && zone.is_lost()
            && !accepted.mass_loss
        {
            return Err(Refusal::MassLoss(zone.clone()));
        }
        let mut unread = self.unread();
        unread.retain(|unread| !(accepted.unread && unread.is_acceptable()));
        if !unread.is_empty() {
            return Err(Refusal::Unread(unread));
        }
        match self.no_owner.is_empty() || accepted.no_owner {
            true => Ok(()),
            false => Err(Refusal::NoOwner(self.no_owner.clone())),
        }
    }

    /// The risks that could not be read.
    #[must_use]
    pub fn unread(&self) -> Vec<Unread> {
        let remediation = self.remediation.why().cloned().map(Unread::Remediation);
        let zone = self.zone.why().cloned().map(Unread::Zone);
        remediation.into_iter().chain(zone).collect()
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Now;

    use super::super::fixtures::{NOW, ago, fenced, machine, next, unreachable, zone};
    use super::*;
    use crate::fencing::record::Since;
    use crate::fencing::steps::{Lock, Step};

    /// Another Node, another boot, or a boot id that is missing on one side.
    #[test]
    fn facts_about_another_machine_are_unknown_for_this_one() {
        for (uid, boot_id, proven) in [
            ("u", "b", "b"),
            ("u", "", ""),
            ("v", "b", "b"),
            ("v", "", ""),
            ("u", "c", "b"),
            ("u", "b", ""),
            ("u", "", "b"),
        ] {
            let mut evidence = unreachable();
            evidence.machine = machine(uid, boot_id);
            evidence.machine.provider_id = "rack://7".to_owned();
            let mut proof = evidence.proof.take().expect("it is proven");
            proof.of = machine("u", proven);
            evidence.proof = Some(proof.clone());
            let refusal = Refusal::OtherMachine {
                proof: Box::new(proof),
                now: Box::new(evidence.machine.clone()),
            };
            let expected = match uid == "u" && boot_id == proven {
                true => Ok(Step::Record),
                false => Err(refusal),
            };
            let step = evidence.next(Now::at(NOW), AcceptedRisks::default());
            assert_eq!(step, expected, "{uid} {boot_id} {proven}");
        }
    }

    /// Another machine is reported before any other fact about the current machine, and before the node is
    /// put on hold.
    #[test]
    fn another_machine_is_reported_first() {
        type Change = fn(&mut FencingEvidence);
        let changes: [Change; 4] = [
            |evidence| evidence.state.ready = None,
            |evidence| evidence.state.heartbeat = ago(5),
            |evidence| evidence.state.heartbeat = Known::Unknown(Why::NotRead),
            |evidence| evidence.lock = Lock::Nobodys,
        ];
        for change in changes {
            let step = next(|evidence| {
                change(evidence);
                evidence.machine.boot_id = "a later one".to_owned();
            });
            assert!(
                matches!(step, Err(Refusal::OtherMachine { .. })),
                "{step:?}"
            );
        }
        // A node that was fenced and came back is reported as back, even if other facts are unknown.
        let back = next(|evidence| {
            *evidence = fenced();
            evidence.state.heartbeat = ago(5);
            evidence.state.since = Some(Since::Restarted);
            evidence.machine.boot_id = "a later one".to_owned();
        });
        assert_eq!(back, Err(Refusal::BackAlive(Span::seconds(5))));
        // If somebody else has fenced the node, their fencing is followed.
        let by_another = next(|evidence| {
            *evidence = fenced();
            if let Some(proof) = &mut evidence.proof {
                proof.of = machine("the Node before", "b");
            }
        });
        assert_eq!(by_another, Ok(Step::Follow));
    }

    #[test]
    fn the_loss_of_most_of_a_zone_is_suspect() {
        for (lost, total, suspect) in [(1, 1, true), (1, 2, false), (10, 20, false), (11, 20, true)]
        {
            let mut evidence = unreachable();
            evidence.zone = Known::Yes(zone(lost, total));
            let next = |insist| {
                let accepted = AcceptedRisks {
                    mass_loss: insist,
                    ..AcceptedRisks::default()
                };
                evidence.next(Now::at(NOW), accepted)
            };
            let expected = match suspect {
                true => Err(Refusal::MassLoss(zone(lost, total))),
                false => Ok(Step::Record),
            };
            assert_eq!(next(false), expected);
            assert_eq!(next(true), Ok(Step::Record));
        }
    }

    /// If another tool may be repairing the node, only a missing permission can be accepted.
    #[test]
    fn all_unread_facts_are_one_risk() {
        let forbidden = || Why::Forbidden("get leases".to_owned());
        let no_answer = || Why::NoAnswer("no answer within 10s".to_owned());
        let zone = |why: fn() -> Why| Unread::Zone(why());
        let remediation = |why: fn() -> Why| Unread::Remediation(why());
        for (unread, stays) in [
            (vec![zone(|| Why::NotRead)], vec![]),
            (vec![zone(no_answer)], vec![]),
            (vec![remediation(forbidden)], vec![]),
            (vec![remediation(no_answer)], vec![remediation(no_answer)]),
            (vec![remediation(forbidden), zone(forbidden)], vec![]),
            (
                vec![remediation(no_answer), zone(forbidden)],
                vec![remediation(no_answer)],
            ),
        ] {
            let mut evidence = unreachable();
            for unread in &unread {
                match unread.clone() {
                    Unread::Zone(why) => evidence.zone = Known::Unknown(why),
                    Unread::Remediation(why) => evidence.remediation = Known::Unknown(why),
                }
            }
            let next = |accepted| evidence.next(Now::at(NOW), accepted);
            let mass_loss = AcceptedRisks {
                mass_loss: true,
                ..AcceptedRisks::default()
            };
            assert_eq!(next(mass_loss), Err(Refusal::Unread(unread.clone())));
            let accepted = next(AcceptedRisks {
                unread: true,
                ..AcceptedRisks::default()
            });
            match stays.is_empty() {
                true => assert_eq!(accepted, Ok(Step::Record), "{unread:?}"),
                false => assert_eq!(accepted, Err(Refusal::Unread(stays)), "{unread:?}"),
            }
        }
    }

    /// The acceptance matters until the record is written.
    #[test]
    fn pods_that_nothing_recreates_are_lost_only_if_that_is_accepted() {
        let mut evidence = unreachable();
        evidence.no_owner = vec!["shop/tool".to_owned()];
        let accepted = AcceptedRisks {
            no_owner: true,
            ..AcceptedRisks::default()
        };
        for (has_proof, lock, step) in [
            (false, Lock::Nobodys, Step::Hold),
            (false, Lock::Callers, Step::Fence),
            (true, Lock::Callers, Step::Record),
        ] {
            let mut evidence = evidence.clone();
            evidence.lock = lock;
            evidence.proof = evidence.proof.take().filter(|_| has_proof);
            let next = |accepted| evidence.next(Now::at(NOW), accepted);
            let refusal = Refusal::NoOwner(evidence.no_owner.clone());
            assert_eq!(next(AcceptedRisks::default()), Err(refusal), "{step:?}");
            assert_eq!(next(accepted), Ok(step));
        }
        let followed = next(|it| {
            *it = fenced();
            it.no_owner = evidence.no_owner;
        });
        assert_eq!(followed, Ok(Step::Follow));
    }

    #[test]
    fn a_current_holder_is_not_disturbed() {
        let by_another = next(|evidence| {
            evidence.remediation = Known::Yes(Some("a controller".to_owned()));
        });
        let who = "a controller".to_owned();
        assert_eq!(by_another, Err(Refusal::Remediation(who)));
    }
}
