//! From what is seen of a node to the next step of its fencing, or to the reason why there is none.
//!
//! The only record of an earlier run is the state of the cluster. A run after a crash reads what was done
//! and continues from there.

mod risks;
#[cfg(test)]
mod scenes;

use maintenance_lease::protocol::{Now, Span};

pub use self::risks::{AcceptedRisks, Refusal};
use super::proof::{Machine, Proof};
use super::record::Since;
use crate::facts::Zone;
use crate::known::Known;
use crate::node::{Heartbeat, Signs};

/// What is seen of a node that is to be fenced.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Its signs of life, and its record.
    pub signs: Signs,
    /// The machine behind it.
    pub machine: Machine,
    /// How many nodes of its zone are silent.
    pub zone: Known<Zone>,
    /// Who remediates it by themselves, if anybody.
    pub remediation: Known<Option<String>>,
    /// Whose its lock is.
    pub lock: Lock,
    /// That nothing runs on a machine any more, once it is known: the operator says so, or the hook did it.
    pub proof: Option<Proof>,
    /// The record was written by this very run.
    pub is_recorded: bool,
}

/// Whose the lock of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The caller's.
    Callers,
    /// Somebody else's.
    Others,
    /// Nobody's: it is free or expired.
    Nobodys,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take an administrator's hold.
    Hold,
    /// Run the hook.
    Fence,
    /// Record it, and taint the Node.
    Record,
    /// Hold it again, because the lock that it was fenced under has ended. This applies if the lock
    /// belonged to the fencing or this run has fenced the node. All else is done.
    HoldAgain,
    /// Follow until nothing of the node is left: all else is done.
    Follow,
}

impl Sight {
    /// It was fenced, and has not been restarted or replaced since: this very Node's record and taint
    /// say so. Where its kubelet never said what it booted, only the run that wrote the record knows.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let signs = &self.signs;
        let stands = signs.is_fenced() || (self.is_recorded && signs.since == Some(Since::Unknown));
        stands && signs.out_of_service.is_evicting()
    }

    /// It was fenced, and may have been restarted since.
    fn was_fenced(&self) -> bool {
        self.signs.out_of_service.is_asserted()
            && (self.signs.since).is_some_and(|since| since != Since::NewNode)
    }

    /// How long ago its kubelet gave a sign of life, if that was recent.
    fn sign_of_life(&self, now: Now) -> Known<Option<Span>> {
        let is_fresh = self.signs.is_fresh(now) == Some(true);
        let age = |heartbeat: Heartbeat| heartbeat.age(now);
        let heartbeat = self.signs.heartbeat.clone();
        heartbeat.map(|heartbeat| is_fresh.then(|| heartbeat.map_or(Span::ZERO, age)))
    }

    /// The next step of what is fenced.
    fn go_on(&self) -> Step {
        let record = self.signs.record.as_ref();
        let took_hold = record.is_some_and(|record| record.hold.is_some());
        match self.lock {
            Lock::Nobodys if took_hold || self.is_recorded => Step::HoldAgain,
            Lock::Nobodys | Lock::Callers | Lock::Others => Step::Follow,
        }
    }

    /// The next step at `now`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn next(&self, now: Now, accepted: AcceptedRisks) -> Result<Step, Refusal> {
        let sign = self.sign_of_life(now);
        if let Known::Yes(Some(age)) = sign
            && self.was_fenced()
        {
            return Err(Refusal::BackAlive(age));
        }
        if self.is_fenced() {
            return Ok(self.go_on());
        }
        self.check_proof()?;
        match sign {
            Known::Yes(None) => {}
            Known::Yes(Some(age)) => return Err(Refusal::Alive(age)),
            Known::Unknown(why) => return Err(Refusal::HeartbeatUnknown(why)),
        }
        self.check_doubts(accepted)?;
        Ok(match (self.lock, self.proof.is_some()) {
            (Lock::Others | Lock::Nobodys, _) => Step::Hold,
            (Lock::Callers, false) => Step::Fence,
            (Lock::Callers, true) => Step::Record,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::scenes::{NOW, ago, evicting, fenced, is_now, machine, next, zone};
    use super::*;
    use crate::known::Why;
    use crate::node::{Ready, Status};
    use crate::taint::OutOfService;

    #[test]
    fn each_step_follows_from_what_was_done() {
        let undone = |sight: &mut Sight| {
            sight.lock = Lock::Nobodys;
            sight.proof = None;
        };
        assert_eq!(next(undone), Ok(Step::Hold));
        for lock in [Lock::Nobodys, Lock::Others] {
            assert_eq!(next(|sight| sight.lock = lock), Ok(Step::Hold));
        }
        assert_eq!(next(|sight| sight.proof = None), Ok(Step::Fence));
        assert_eq!(next(|_| ()), Ok(Step::Record));
        assert_eq!(next(|sight| *sight = fenced()), Ok(Step::Follow));
    }

    #[test]
    fn what_was_fenced_is_followed_whoever_did_it_and_whatever_else_is_so() {
        let followed = next(|sight| {
            *sight = fenced();
            sight.lock = Lock::Others;
            sight.proof = None;
            sight.zone = Known::Yes(zone(3, 3));
            sight.signs.heartbeat = Known::Unknown(Why::NotRead);
        });
        assert_eq!(followed, Ok(Step::Follow));
    }

    #[test]
    fn half_of_a_fencing_is_none() {
        let of_another_node = next(|sight| {
            *sight = fenced();
            is_now(
                sight,
                machine("a new node of that name", "that of its kernel"),
            );
        });
        assert_eq!(of_another_node, Ok(Step::Record));
        let of_a_node_that_was_applied_again = next(|sight| {
            *sight = fenced();
            is_now(sight, machine("a new node of that name", "b"));
        });
        assert_eq!(of_a_node_that_was_applied_again, Ok(Step::Follow));
        let before_a_restart = next(|sight| {
            *sight = fenced();
            is_now(sight, machine("u", "that of a later kernel"));
        });
        assert_eq!(before_a_restart, Ok(Step::Record));
        let without_record = next(|sight| sight.signs.out_of_service = evicting());
        assert_eq!(without_record, Ok(Step::Record));
        let without_taint = next(|sight| {
            *sight = fenced();
            sight.signs.out_of_service = OutOfService::No;
        });
        assert_eq!(without_taint, Ok(Step::Record));
        let without_eviction = next(|sight| {
            *sight = fenced();
            sight.signs.out_of_service = OutOfService::Asserted;
        });
        assert_eq!(without_eviction, Ok(Step::Record));
    }

    /// What booted, nobody knows: only the run that has just recorded it need not do so again.
    #[test]
    fn a_fencing_without_a_boot_id_is_known_to_who_recorded_it() {
        for (is_recorded, expected) in [(false, Step::Record), (true, Step::Follow)] {
            let step = next(|sight| {
                *sight = fenced();
                if let Some(record) = &mut sight.signs.record {
                    record.boot_id = String::new();
                }
                is_now(sight, machine("u", ""));
                sight.is_recorded = is_recorded;
            });
            assert_eq!(step, Ok(expected));
        }
    }

    #[test]
    fn the_hold_of_a_fencing_is_taken_again_where_it_was_ended() {
        for (lock, hold, expected) in [
            (Lock::Nobodys, Some("u.1.n"), Step::HoldAgain),
            (Lock::Callers, Some("u.1.n"), Step::Follow),
            (Lock::Others, Some("u.1.n"), Step::Follow),
            // The lock was none of the fencing's, and this run did not fence it.
            (Lock::Nobodys, None, Step::Follow),
        ] {
            let step = next(|sight| {
                *sight = fenced();
                sight.lock = lock;
                if let Some(record) = &mut sight.signs.record {
                    record.hold = hold.map(ToOwned::to_owned);
                }
            });
            assert_eq!(step, Ok(expected), "{lock:?} {hold:?}");
        }
    }

    #[test]
    fn who_has_fenced_a_node_under_a_lock_that_is_over_by_then_holds_it() {
        for (lock, expected) in [
            (Lock::Nobodys, Step::HoldAgain),
            (Lock::Callers, Step::Follow),
        ] {
            let step = next(|sight| {
                *sight = fenced();
                sight.lock = lock;
                sight.is_recorded = true;
            });
            assert_eq!(step, Ok(expected), "{lock:?}");
        }
    }

    #[test]
    fn only_a_silent_node_is_fenced() {
        let beat = |age| next(move |sight| sight.signs.heartbeat = ago(age));
        assert_eq!(beat(39), Err(Refusal::Alive(Span::seconds(39))));
        assert_eq!(beat(40), Ok(Step::Record));
        for status in [Some(Status::True), Some(Status::False), None] {
            for heartbeat in [ago(90), Known::Yes(None)] {
                let called = next(|sight| {
                    sight.signs.heartbeat = heartbeat;
                    sight.signs.ready = status.map(|status| Ready {
                        status,
                        since: None,
                    });
                });
                assert_eq!(called, Err(Refusal::NotCalledUnreachable(status)));
            }
        }
        let unheard = next(|sight| sight.signs.heartbeat = Known::Yes(None));
        assert_eq!(unheard, Ok(Step::Record));
        let unread = next(|sight| sight.signs.heartbeat = Known::Unknown(Why::NotRead));
        assert_eq!(unread, Err(Refusal::HeartbeatUnknown(Why::NotRead)));
        let back = next(|sight| {
            *sight = fenced();
            sight.signs.heartbeat = ago(5);
        });
        assert_eq!(back, Err(Refusal::BackAlive(Span::seconds(5))));
    }

    #[test]
    fn a_heartbeat_ahead_of_the_clock_is_one_of_just_now() {
        let ahead = next(|sight| {
            sight.signs.heartbeat = Known::Yes(Some((NOW + Span::seconds(9)).into()));
        });
        assert_eq!(ahead, Err(Refusal::Alive(Span::ZERO)));
    }

    #[test]
    fn what_is_far_ahead_of_the_clock_keeps_no_silent_node_from_being_fenced() {
        let far = || Known::Yes(Some((NOW + Span::seconds(70 * 60)).into()));
        assert_eq!(
            next(|sight| sight.signs.heartbeat = far()),
            Ok(Step::Record)
        );
        let followed = next(|sight| {
            *sight = fenced();
            sight.signs.heartbeat = far();
        });
        assert_eq!(followed, Ok(Step::Follow));
    }
}
