//! Whether a fenced node may return to service.

use maintenance_lease::protocol::Now;

use super::record::{Record, Since};
use crate::bugs::{self, Bug};
use crate::known::{Known, Why};
use crate::node_health::NodeState;

/// The state of a node that is to be unfenced.
#[derive(Clone, Debug)]
pub struct UnfenceEvidence {
    /// Its readiness, its heartbeat and the record of its fencing.
    pub state: NodeState,
    /// It has our `fenced` annotation, even if the value is not a valid record.
    pub is_annotated: bool,
    /// A hook that undoes the fencing was run and succeeded.
    pub is_undone: bool,
}

/// Why a node stays fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its kubelet does not report.
    Unreachable,
    /// It is unknown whether its kubelet reports.
    HeartbeatUnknown(Why),
    /// It has the taint of somebody else, and no record says which boot ran before.
    Unrecorded,
    /// It is not known to have been restarted since it was fenced, so earlier pods may still run.
    NotRestarted(Box<Record>),
}

impl UnfenceEvidence {
    /// Whether there is a taint or an annotation to remove.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.state.out_of_service.is_asserted() || self.is_annotated
    }

    /// Checks whether the node may return to service at `now`. With `insist`, it may even if it was not
    /// restarted.
    ///
    /// # Errors
    /// Why it stays fenced.
    pub fn may_unfence(&self, now: Now, insist: bool) -> Result<(), Refusal> {
        match (self.state.trusted_heartbeat(now), self.state.is_fresh(now)) {
            (Known::Unknown(why), _) => return Err(Refusal::HeartbeatUnknown(why)),
            (_, Some(true)) => {}
            _ => return Err(Refusal::Unreachable),
        }
        if insist {
            return Ok(());
        }
        let Some(record) = &self.state.record else {
            return Err(Refusal::Unrecorded);
        };
        // A hook can only undo an isolation. A node that was powered off and is alive was either restarted or
        // never off.
        let is_undone = self.is_undone && record.how.is_isolated();
        match self.state.since {
            Some(Since::NewNode | Since::Restarted) => Ok(()),
            Some(Since::SameBoot) if bugs::active(Bug::UnfenceWithoutRestart) => Ok(()),
            Some(Since::SameBoot | Since::Unknown) | None if is_undone => Ok(()),
            Some(Since::SameBoot | Since::Unknown) | None => {
                Err(Refusal::NotRestarted(Box::new(record.clone())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::{Instant, Span};

    use super::*;
    use crate::fencing::How;
    use crate::taint::OutOfService;

    const NOW: Instant = Instant::from_micros(1_000_000_000);

    fn powered_off() -> How {
        How::PoweredOff("its lights are off".to_owned())
    }

    fn hook(isolated: bool) -> How {
        How::Hook {
            program: "hook".to_owned(),
            output: String::new(),
            isolated,
        }
    }

    fn record(how: How) -> Record {
        Record {
            how,
            ..Record::example()
        }
    }

    /// A node that is alive again, in the same boot as when it was fenced.
    fn alive(how: How) -> UnfenceEvidence {
        UnfenceEvidence {
            state: NodeState {
                heartbeat: Known::Yes(Some((NOW - Span::seconds(9)).into())),
                out_of_service: OutOfService::Asserted,
                record: Some(record(how)),
                since: Some(Since::SameBoot),
                ..NodeState::default()
            },
            is_annotated: true,
            is_undone: false,
        }
    }

    fn verdict(evidence: &UnfenceEvidence) -> Result<(), Refusal> {
        evidence.may_unfence(Now::at(NOW), false)
    }

    #[test]
    fn a_restart_or_a_new_node_brings_it_back() {
        let same = alive(powered_off());
        let refusal = Refusal::NotRestarted(Box::new(record(powered_off())));
        assert_eq!(verdict(&same), Err(refusal.clone()));
        assert_eq!(same.may_unfence(Now::at(NOW), true), Ok(()));
        for (since, expected) in [
            (Since::Restarted, Ok(())),
            (Since::NewNode, Ok(())),
            (Since::Unknown, Err(refusal)),
        ] {
            let mut evidence = same.clone();
            evidence.state.since = Some(since);
            assert_eq!(verdict(&evidence), expected, "{since:?}");
        }
    }

    #[test]
    fn the_opposite_hook_undoes_an_isolation_and_no_loss_of_power() {
        let undone = |how| UnfenceEvidence {
            is_undone: true,
            ..alive(how)
        };
        assert_eq!(verdict(&undone(hook(true))), Ok(()));
        assert!(verdict(&alive(hook(true))).is_err());
        assert!(verdict(&undone(hook(false))).is_err());
        assert!(verdict(&undone(powered_off())).is_err());
    }

    #[test]
    fn an_unreachable_node_stays_fenced_even_if_the_risk_is_accepted() {
        for (heartbeat, refusal) in [
            (
                Known::Yes(Some((NOW - Span::seconds(40)).into())),
                Refusal::Unreachable,
            ),
            (Known::Yes(None), Refusal::Unreachable),
            (
                Known::Yes(Some((NOW + Span::seconds(70 * 60)).into())),
                Refusal::HeartbeatUnknown(Why::Inconclusive(
                    "its heartbeat is 70m ahead of the clock".to_owned(),
                )),
            ),
            (
                Known::Unknown(Why::NotRead),
                Refusal::HeartbeatUnknown(Why::NotRead),
            ),
        ] {
            let mut evidence = alive(powered_off());
            evidence.state.since = Some(Since::Restarted);
            evidence.state.heartbeat = heartbeat;
            assert_eq!(evidence.may_unfence(Now::at(NOW), true), Err(refusal));
        }
    }

    #[test]
    fn a_taint_without_a_record_takes_somebody_who_insists() {
        let mut evidence = alive(powered_off());
        evidence.state.record = None;
        evidence.is_annotated = false;
        assert!(evidence.is_fenced());
        assert_eq!(verdict(&evidence), Err(Refusal::Unrecorded));
        assert_eq!(evidence.may_unfence(Now::at(NOW), true), Ok(()));
        evidence.state.out_of_service = OutOfService::No;
        assert!(!evidence.is_fenced());
    }
}
