//! What keeps a node from being fenced, and what of it an operator may know better about.

use maintenance_lease::protocol::Span;

use super::Sight;
use crate::facts::Zone;
use crate::fencing::Attempt;
use crate::fencing::proof::{Machine, Proof};
use crate::known::{Known, Why};
use crate::node::Status;

/// Why a node is not fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its kubelet gave a sign of life so long ago.
    Alive(Span),
    /// It was fenced, and its kubelet gave a sign of life so long ago.
    BackAlive(Span),
    /// It is not the machine of which it is known that nothing runs there any more, or was started since:
    /// what is known, and the machine of now.
    OtherMachine {
        /// How it is known, and of which machine.
        proof: Box<Proof>,
        /// The one that the Node tells of now.
        now: Box<Machine>,
    },
    /// The hook of another run may still be running for it.
    HookRunning(Box<Attempt>),
    /// The lock under which this run began was ended, so somebody else may have changed the machine.
    LockLost,
    /// Its kubelet gives no sign of life, and the control plane has not called it silent: what its Ready
    /// condition says instead, `None` if it has none.
    NotCalledUnreachable(Option<Status>),
    /// It is not known whether its kubelet is alive.
    HeartbeatUnknown(Why),
    /// Too many of its zone are silent.
    MassLoss(Zone),
    /// It is not known how many of its zone are.
    ZoneUnknown(Why),
    /// Somebody is at work on it already, who doesn't know of holds.
    Remediation(String),
    /// It is not known whether somebody is.
    RemediationUnknown(Why),
}

impl Refusal {
    /// The server did not answer, so another read may tell more.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        matches!(
            self,
            Self::HeartbeatUnknown(Why::NoAnswer(_))
                | Self::ZoneUnknown(Why::NoAnswer(_))
                | Self::RemediationUnknown(Why::NoAnswer(_))
        )
    }
}

/// What the operator insists on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedRisks {
    /// It is to be fenced though most of its zone seems lost.
    pub mass_loss: bool,
    /// It is to be fenced though nobody could read how its zone is.
    pub zone_unknown: bool,
    /// It is to be fenced though the caller may not read whether it is being remediated.
    pub remediation_unknown: bool,
}

impl Sight {
    /// Makes sure that what is known is known of this machine.
    ///
    /// # Errors
    /// That it is known of another.
    pub(super) fn check_proof(&self) -> Result<(), Refusal> {
        match &self.proof {
            Some(proof) if !proof.of.is(&self.machine) => Err(Refusal::OtherMachine {
                proof: Box::new(proof.clone()),
                now: Box::new(self.machine.clone()),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the kubelet does not report any more, by its heartbeat `sign` and by the control plane. That
    /// looks for changes and ignores the kubelet's clock, so it is right even if a heartbeat is ahead.
    ///
    /// # Errors
    /// If it does, or if that is unknown.
    pub(super) fn check_silence(&self, sign: Known<Option<Span>>) -> Result<(), Refusal> {
        match (sign, self.signs.status()) {
            (Known::Yes(Some(age)), _) => Err(Refusal::Alive(age)),
            (Known::Unknown(why), _) => Err(Refusal::HeartbeatUnknown(why)),
            (Known::Yes(None), Some(Status::Unknown)) => Ok(()),
            (Known::Yes(None), status) => Err(Refusal::NotCalledUnreachable(status)),
        }
    }

    /// Makes sure that nothing speaks against fencing a node that gives no sign of life.
    ///
    /// # Errors
    /// What does.
    pub(super) fn check_doubts(&self, accepted: AcceptedRisks) -> Result<(), Refusal> {
        match &self.remediation {
            Known::Yes(Some(who)) => return Err(Refusal::Remediation(who.clone())),
            Known::Yes(None) => {}
            Known::Unknown(Why::Forbidden(_)) if accepted.remediation_unknown => {}
            Known::Unknown(why) => return Err(Refusal::RemediationUnknown(why.clone())),
        }
        match &self.zone {
            Known::Yes(zone) if zone.is_lost() && !accepted.mass_loss => {
                return Err(Refusal::MassLoss(zone.clone()));
            }
            Known::Yes(_) => {}
            Known::Unknown(_) if accepted.zone_unknown => {}
            Known::Unknown(why) => return Err(Refusal::ZoneUnknown(why.clone())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Now;

    use super::super::scenes::{NOW, ago, fenced, machine, next, silent, zone};
    use super::*;
    use crate::fencing::record::Since;
    use crate::fencing::steps::{Lock, Step};

    /// Be it another Node, another boot, or a boot where none was told of, or the other way round.
    #[test]
    fn what_is_known_of_another_machine_is_not_known_of_this_one() {
        for (uid, boot_id, proven) in [
            ("u", "b", "b"),
            ("u", "", ""),
            ("v", "b", "b"),
            ("v", "", ""),
            ("u", "c", "b"),
            ("u", "b", ""),
            ("u", "", "b"),
        ] {
            let mut sight = silent();
            sight.machine = machine(uid, boot_id);
            sight.machine.provider_id = "rack://7".to_owned();
            let mut proof = sight.proof.take().expect("it is proven");
            proof.of = machine("u", proven);
            sight.proof = Some(proof.clone());
            let refusal = Refusal::OtherMachine {
                proof: Box::new(proof),
                now: Box::new(sight.machine.clone()),
            };
            let expected = match uid == "u" && boot_id == proven {
                true => Ok(Step::Record),
                false => Err(refusal),
            };
            let step = sight.next(Now::at(NOW), AcceptedRisks::default());
            assert_eq!(step, expected, "{uid} {boot_id} {proven}");
        }
    }

    /// That comes before anything that is said of the machine of now, and before it is put on hold.
    #[test]
    fn what_is_known_of_another_machine_is_told_of_first() {
        type Change = fn(&mut Sight);
        let changes: [Change; 4] = [
            |sight| sight.signs.ready = None,
            |sight| sight.signs.heartbeat = ago(5),
            |sight| sight.signs.heartbeat = Known::Unknown(Why::NotRead),
            |sight| sight.lock = Lock::Nobodys,
        ];
        for change in changes {
            let step = next(|sight| {
                change(sight);
                sight.machine.boot_id = "a later one".to_owned();
            });
            assert!(
                matches!(step, Err(Refusal::OtherMachine { .. })),
                "{step:?}"
            );
        }
        // A node that was fenced and came back is reported as back, even if other facts are unknown.
        let back = next(|sight| {
            *sight = fenced();
            sight.signs.heartbeat = ago(5);
            sight.signs.since = Some(Since::Restarted);
            sight.machine.boot_id = "a later one".to_owned();
        });
        assert_eq!(back, Err(Refusal::BackAlive(Span::seconds(5))));
        // What somebody else has fenced is followed.
        let by_another = next(|sight| {
            *sight = fenced();
            if let Some(proof) = &mut sight.proof {
                proof.of = machine("the Node before", "b");
            }
        });
        assert_eq!(by_another, Ok(Step::Follow));
    }

    #[test]
    fn the_loss_of_most_of_a_zone_is_suspect() {
        for (lost, total, suspect) in [(1, 1, true), (1, 2, false), (10, 20, false), (11, 20, true)]
        {
            let mut sight = silent();
            sight.zone = Known::Yes(zone(lost, total));
            let next = |insist| {
                let accepted = AcceptedRisks {
                    mass_loss: insist,
                    ..AcceptedRisks::default()
                };
                sight.next(Now::at(NOW), accepted)
            };
            let expected = match suspect {
                true => Err(Refusal::MassLoss(zone(lost, total))),
                false => Ok(Step::Record),
            };
            assert_eq!(next(false), expected);
            assert_eq!(next(true), Ok(Step::Record));
        }
    }

    #[test]
    fn a_zone_that_nobody_could_read_is_a_doubt_of_its_own() {
        let mut sight = silent();
        sight.zone = Known::Unknown(Why::NotRead);
        let next = |accepted| sight.next(Now::at(NOW), accepted);
        let mass_loss = AcceptedRisks {
            mass_loss: true,
            ..AcceptedRisks::default()
        };
        assert_eq!(next(mass_loss), Err(Refusal::ZoneUnknown(Why::NotRead)));
        let zone_unknown = AcceptedRisks {
            zone_unknown: true,
            ..AcceptedRisks::default()
        };
        assert_eq!(next(zone_unknown), Ok(Step::Record));
    }

    #[test]
    fn an_unknown_remediation_is_none_only_for_who_may_not_ask_and_insists() {
        let forbidden = || Why::Forbidden("get leases".to_owned());
        let silent_server = || Why::NoAnswer("no answer within 10s".to_owned());
        for (why, insist, goes_on) in [
            (forbidden(), false, false),
            (forbidden(), true, true),
            (silent_server(), false, false),
            (silent_server(), true, false),
        ] {
            let mut sight = silent();
            sight.remediation = Known::Unknown(why.clone());
            let accepted = AcceptedRisks {
                remediation_unknown: insist,
                ..AcceptedRisks::default()
            };
            let expected = match goes_on {
                true => Ok(Step::Record),
                false => Err(Refusal::RemediationUnknown(why)),
            };
            assert_eq!(sight.next(Now::at(NOW), accepted), expected);
        }
    }

    #[test]
    fn who_is_at_work_already_is_left_alone() {
        let by_another = next(|sight| {
            sight.remediation = Known::Yes(Some("a controller".to_owned()));
        });
        let who = "a controller".to_owned();
        assert_eq!(by_another, Err(Refusal::Remediation(who)));
    }
}
