//! What keeps a node from being fenced, and what of it an operator may know better about.

use maintenance_lease::protocol::Span;

use super::Sight;
use crate::facts::Zone;
use crate::known::{Known, Why};
use crate::node::Status;

/// Why a node is not fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its kubelet gave a sign of life so long ago.
    Alive(Span),
    /// It was fenced, and its kubelet gave a sign of life so long ago.
    BackAlive(Span),
    /// Its kubelet gives no sign of life, and the control plane has not called it silent: what its Ready
    /// condition says instead, `None` where it has none.
    NotCalledSilent(Option<Status>),
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

/// What the operator insists on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insistence {
    /// It is to be fenced though most of its zone seems lost.
    pub mass_loss: bool,
    /// It is to be fenced though nobody could read how its zone is.
    pub zone_unknown: bool,
    /// It is to be fenced though the caller may not read whether it is being remediated.
    pub remediation_unknown: bool,
}

impl Sight {
    /// Makes sure that nothing speaks against fencing a node that gives no sign of life.
    ///
    /// # Errors
    /// What does.
    pub(super) fn check_doubts(&self, insistence: Insistence) -> Result<(), Refusal> {
        // The control plane goes by what changes, whatever the clock of the kubelet says: where a heartbeat
        // is ahead of the clock, it still knows.
        let status = self.signs.status();
        if status != Some(Status::Unknown) {
            return Err(Refusal::NotCalledSilent(status));
        }
        match &self.remediation {
            Known::Yes(Some(who)) => return Err(Refusal::Remediation(who.clone())),
            Known::Yes(None) => {}
            Known::Unknown(Why::Forbidden(_)) if insistence.remediation_unknown => {}
            Known::Unknown(why) => return Err(Refusal::RemediationUnknown(why.clone())),
        }
        match &self.zone {
            Known::Yes(zone) if zone.is_lost() && !insistence.mass_loss => {
                return Err(Refusal::MassLoss(zone.clone()));
            }
            Known::Yes(_) => {}
            Known::Unknown(_) if insistence.zone_unknown => {}
            Known::Unknown(why) => return Err(Refusal::ZoneUnknown(why.clone())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Now;

    use super::super::scenes::{NOW, next, silent, zone};
    use super::*;
    use crate::fencing::steps::Step;

    #[test]
    fn the_loss_of_most_of_a_zone_is_suspect() {
        for (lost, total, suspect) in [(1, 1, true), (1, 2, false), (11, 20, false), (12, 20, true)]
        {
            let mut sight = silent();
            sight.zone = Known::Yes(zone(lost, total));
            let next = |insist| {
                let insistence = Insistence {
                    mass_loss: insist,
                    ..Insistence::default()
                };
                sight.next(Now::at(NOW), insistence)
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
        let next = |insistence| sight.next(Now::at(NOW), insistence);
        let mass_loss = Insistence {
            mass_loss: true,
            ..Insistence::default()
        };
        assert_eq!(next(mass_loss), Err(Refusal::ZoneUnknown(Why::NotRead)));
        let zone_unknown = Insistence {
            zone_unknown: true,
            ..Insistence::default()
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
            let insistence = Insistence {
                remediation_unknown: insist,
                ..Insistence::default()
            };
            let expected = match goes_on {
                true => Ok(Step::Record),
                false => Err(Refusal::RemediationUnknown(why)),
            };
            assert_eq!(sight.next(Now::at(NOW), insistence), expected);
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
