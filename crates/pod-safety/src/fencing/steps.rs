//! Derives the next step of a fencing from the state of the node, or the reason why there is none.
//!
//! The state of the cluster is the only record of an earlier run. After a crash, a new run reads it and
//! continues from there.

#[cfg(test)]
mod fixtures;
mod risks;
#[cfg(test)]
mod suspect_model;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, Span, State};

pub use self::risks::{AcceptedRisks, Refusal, Unread};
use super::attempt::Attempt;
use super::machine::Machine;
use super::record::Proof;
use super::record::{Record, Since};
use crate::bugs::{self, Bug};
use crate::facts::Zone;
use crate::known::Known;
use crate::node_health::{Heartbeat, NodeState};

/// The state of a node that is to be fenced.
#[derive(Clone, Debug)]
pub struct FencingEvidence {
    /// Its readiness, its heartbeat and the record of its fencing.
    pub state: NodeState,
    /// The machine that the Node represents.
    pub machine: Machine,
    /// How many nodes of its zone are unreachable.
    pub zone: Known<Zone>,
    /// The operator that repairs the node, if any.
    pub remediation: Known<Option<String>>,
    /// Who holds the node's lock.
    pub lock: Lock,
    /// The acquisition under which this run began has ended, and somebody else has held the lock since.
    pub is_lost: bool,
    /// It is to be fenced although it still reports. It is put on hold and powered off first.
    pub is_suspect: bool,
    /// Its heartbeat has not changed for one heartbeat duration since the proof. Needed only for a suspect.
    pub has_stopped_reporting: bool,
    /// The hook of another run, if it may still be running.
    pub hook: Option<Attempt>,
    /// The proof that nothing runs on a machine any more: the user confirmed it, or the hook succeeded.
    pub proof: Option<Proof>,
    /// This run wrote the record.
    pub is_recorded: bool,
    /// The pods that leave the node and that nothing recreates, as `NAMESPACE/NAME`.
    pub no_owner: Vec<String>,
}

/// Who holds the lock of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The caller.
    Callers,
    /// Somebody else.
    Others,
    /// Nobody: the lock is free or expired.
    Nobodys,
}

impl Lock {
    /// Who holds the lock in `lease`. `is_callers` is only called for a lock that has not ended.
    #[must_use]
    pub fn of(
        lease: Option<&NodeLease>,
        now: Now,
        is_callers: impl FnOnce(&NodeLease) -> bool,
    ) -> Self {
        match lease.map(|lease| (lease, lease.state(now))) {
            Some((lease, State::Held { .. } | State::AdminHold)) => match is_callers(lease) {
                true => Self::Callers,
                false => Self::Others,
            },
            Some((_, State::Free | State::Expired { .. })) | None => Self::Nobodys,
        }
    }
}

/// The next step of a fencing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Acquire an administrator's hold.
    Hold,
    /// Run the hook.
    Fence,
    /// Wait until a suspect has stopped reporting. Before that, nothing is recorded.
    AwaitReportsToStop,
    /// Write the record, and taint the Node.
    Record,
    /// Acquire the hold again, because the lock that the node was fenced under has ended. This applies if
    /// fencing acquired that lock, or if this run fenced the node. All other steps are done.
    HoldAgain,
    /// Follow the fencing until no pods and volumes remain. All other steps are done.
    Follow,
}

impl FencingEvidence {
    /// Whether it was fenced, and has not been restarted or replaced since, by the record and taint of this
    /// Node. If its kubelet never reported a boot id, only the run that wrote the record knows this.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let state = &self.state;
        let stands = state.is_fenced() || (self.is_recorded && state.since == Some(Since::Unknown));
        stands && state.out_of_service.is_evicting()
    }

    /// Whether it was fenced. It may have been restarted since.
    fn was_fenced(&self) -> bool {
        self.state.out_of_service.is_asserted()
            && (self.state.since).is_some_and(|since| since != Since::NewNode)
    }

    /// How long ago its kubelet last reported, if that was recent. Zero if only a recent condition shows it.
    fn recent_report(&self, now: Now) -> Known<Option<Span>> {
        let is_fresh = self.state.is_fresh(now) == Some(true);
        let age = |heartbeat: Heartbeat| heartbeat.age(now);
        let heartbeat = self.state.heartbeat.clone();
        heartbeat.map(|heartbeat| is_fresh.then(|| heartbeat.map_or(Span::ZERO, age)))
    }

    /// The next step for a fenced node.
    fn go_on(&self) -> Step {
        let record = self.state.record.as_ref();
        let took_hold = record.is_some_and(|record| record.hold.is_some());
        match self.lock {
            Lock::Nobodys if took_hold || self.is_recorded => Step::HoldAgain,
            Lock::Nobodys | Lock::Callers | Lock::Others => Step::Follow,
        }
    }

    /// The next step at `now`.
    ///
    /// # Errors
    /// Why there is no next step.
    pub fn next(&self, now: Now, accepted: AcceptedRisks) -> Result<Step, Refusal> {
        let recent_report = self.recent_report(now);
        if let Known::Yes(Some(age)) = recent_report
            && self.was_fenced()
        {
            return Err(Refusal::BackAlive(age));
        }
        if self.is_fenced() {
            return Ok(self.go_on());
        }
        self.check_proof()?;
        let still_reports = match self.check_reports_stopped(recent_report) {
            Ok(()) => false,
            Err(Refusal::Alive(_) | Refusal::NotCalledUnreachable(_)) if self.is_suspect => true,
            Err(refusal) => return Err(refusal),
        };
        self.check_risks(accepted)?;
        if let Some(hook) = &self.hook {
            return Err(Refusal::HookRunning(Box::new(hook.clone())));
        }
        match (self.lock, self.proof.is_some()) {
            // Acquiring the hold fails with a refusal that names the holder.
            (Lock::Others, _) => Ok(Step::Hold),
            (Lock::Nobodys | Lock::Callers, _) if self.is_lost => Err(Refusal::LockLost),
            (Lock::Nobodys, _) => Ok(Step::Hold),
            (Lock::Callers, false) => Ok(Step::Fence),
            (Lock::Callers, true)
                if !bugs::active(Bug::SuspectAtOnce)
                    && (still_reports || (self.is_suspect && !self.has_stopped_reporting)) =>
            {
                Ok(Step::AwaitReportsToStop)
            }
            (Lock::Callers, true) => Ok(Step::Record),
        }
    }

    /// The record that a new one replaces; `None` if there is none.
    #[must_use]
    pub fn replaced(&self) -> Option<&Record> {
        self.state.record.as_ref().filter(|_| !self.is_fenced())
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{NOW, ago, evicting, fenced, hook, is_now, machine, next, zone};
    use super::*;
    use crate::known::Why;
    use crate::node_health::{Ready, Status};
    use crate::taint::OutOfService;

    #[test]
    fn each_step_follows_from_what_was_done() {
        let undone = |evidence: &mut FencingEvidence| {
            evidence.lock = Lock::Nobodys;
            evidence.proof = None;
        };
        assert_eq!(next(undone), Ok(Step::Hold));
        for lock in [Lock::Nobodys, Lock::Others] {
            assert_eq!(next(|evidence| evidence.lock = lock), Ok(Step::Hold));
        }
        assert_eq!(next(|evidence| evidence.proof = None), Ok(Step::Fence));
        assert_eq!(next(|_| ()), Ok(Step::Record));
        assert_eq!(next(|evidence| *evidence = fenced()), Ok(Step::Follow));
    }

    /// Somebody else held the lock while the hook ran, and may have started the node again.
    #[test]
    fn a_lock_that_ended_since_this_run_began_proves_nothing_any_more() {
        for (lock, expected) in [
            (Lock::Callers, Err(Refusal::LockLost)),
            (Lock::Nobodys, Err(Refusal::LockLost)),
            (Lock::Others, Ok(Step::Hold)),
        ] {
            for has_proof in [true, false] {
                let step = next(|evidence| {
                    (evidence.lock, evidence.is_lost) = (lock, true);
                    evidence.proof = evidence.proof.take().filter(|_| has_proof);
                });
                assert_eq!(step, expected, "{lock:?} {has_proof}");
            }
        }
        let recorded = next(|evidence| {
            *evidence = fenced();
            (evidence.lock, evidence.is_lost, evidence.is_recorded) = (Lock::Nobodys, true, true);
        });
        assert_eq!(recorded, Ok(Step::HoldAgain));
    }

    /// A suspect is put on hold and powered off while it reports. It is recorded only when it is unreachable
    /// by its heartbeat, by the control plane, and by the watch.
    #[test]
    fn a_suspect_that_still_reports_is_never_recorded() {
        let alive = || ago(5);
        let unreachable = || ago(90);
        for (heartbeat, status, has_stopped_reporting, expected) in [
            (alive(), Status::True, false, Step::AwaitReportsToStop),
            (alive(), Status::True, true, Step::AwaitReportsToStop),
            (alive(), Status::Unknown, true, Step::AwaitReportsToStop),
            (unreachable(), Status::True, true, Step::AwaitReportsToStop),
            (unreachable(), Status::False, true, Step::AwaitReportsToStop),
            (
                unreachable(),
                Status::Unknown,
                false,
                Step::AwaitReportsToStop,
            ),
            (unreachable(), Status::Unknown, true, Step::Record),
        ] {
            let at = |change: fn(&mut FencingEvidence)| {
                next(|evidence| {
                    evidence.state.heartbeat = heartbeat.clone();
                    evidence.state.ready = Some(Ready {
                        status,
                        since: None,
                    });
                    (evidence.is_suspect, evidence.has_stopped_reporting) =
                        (true, has_stopped_reporting);
                    change(evidence);
                })
            };
            let seen = format!("{heartbeat:?} {status:?} {has_stopped_reporting}");
            assert_eq!(at(|_| ()), Ok(expected), "{seen}");
            assert_eq!(
                at(|evidence| evidence.proof = None),
                Ok(Step::Fence),
                "{seen}"
            );
            assert_eq!(
                at(|evidence| evidence.lock = Lock::Nobodys),
                Ok(Step::Hold),
                "{seen}"
            );
            let lost = at(|evidence| evidence.is_lost = true);
            assert_eq!(lost, Err(Refusal::LockLost), "{seen}");
        }
        let unread = next(|evidence| {
            evidence.state.heartbeat = Known::Unknown(Why::NotRead);
            (evidence.is_suspect, evidence.has_stopped_reporting) = (true, true);
        });
        assert_eq!(unread, Err(Refusal::HeartbeatUnknown(Why::NotRead)));
        let repaired = next(|evidence| {
            evidence.is_suspect = true;
            evidence.remediation = Known::Yes(Some("a controller".to_owned()));
        });
        assert!(
            matches!(repaired, Err(Refusal::Remediation(_))),
            "{repaired:?}"
        );
    }

    /// This applies regardless of the holder, with a proof or without one.
    #[test]
    fn beside_the_hook_of_another_run_nothing_is_begun() {
        for lock in [Lock::Callers, Lock::Nobodys, Lock::Others] {
            for has_proof in [true, false] {
                let step = next(|evidence| {
                    (evidence.lock, evidence.hook) = (lock, Some(hook()));
                    evidence.proof = evidence.proof.take().filter(|_| has_proof);
                });
                assert_eq!(
                    step,
                    Err(Refusal::HookRunning(Box::new(hook()))),
                    "{lock:?}"
                );
            }
        }
        let followed = next(|evidence| {
            *evidence = fenced();
            evidence.hook = Some(hook());
        });
        assert_eq!(followed, Ok(Step::Follow));
    }

    #[test]
    fn a_fenced_node_is_followed_regardless_of_its_lock_and_risks() {
        let followed = next(|evidence| {
            *evidence = fenced();
            evidence.lock = Lock::Others;
            evidence.proof = None;
            evidence.zone = Known::Yes(zone(3, 3));
            evidence.state.heartbeat = Known::Unknown(Why::NotRead);
        });
        assert_eq!(followed, Ok(Step::Follow));
    }

    #[test]
    fn half_of_a_fencing_is_none() {
        let of_another_node = next(|evidence| {
            *evidence = fenced();
            is_now(
                evidence,
                machine("a new node of that name", "that of its kernel"),
            );
        });
        assert_eq!(of_another_node, Ok(Step::Record));
        let of_a_node_that_was_applied_again = next(|evidence| {
            *evidence = fenced();
            is_now(evidence, machine("a new node of that name", "b"));
        });
        assert_eq!(of_a_node_that_was_applied_again, Ok(Step::Follow));
        let before_a_restart = next(|evidence| {
            *evidence = fenced();
            is_now(evidence, machine("u", "that of a later kernel"));
        });
        assert_eq!(before_a_restart, Ok(Step::Record));
        let without_record = next(|evidence| evidence.state.out_of_service = evicting());
        assert_eq!(without_record, Ok(Step::Record));
        let without_taint = next(|evidence| {
            *evidence = fenced();
            evidence.state.out_of_service = OutOfService::No;
        });
        assert_eq!(without_taint, Ok(Step::Record));
        let without_eviction = next(|evidence| {
            *evidence = fenced();
            evidence.state.out_of_service = OutOfService::Asserted;
        });
        assert_eq!(without_eviction, Ok(Step::Record));
    }

    /// Nobody knows which boot was fenced. Only the run that has just written the record need not write it
    /// again.
    #[test]
    fn a_fencing_without_a_boot_id_is_known_to_who_recorded_it() {
        for (is_recorded, expected) in [(false, Step::Record), (true, Step::Follow)] {
            let step = next(|evidence| {
                *evidence = fenced();
                if let Some(record) = &mut evidence.state.record {
                    record.boot_id = String::new();
                }
                is_now(evidence, machine("u", ""));
                evidence.is_recorded = is_recorded;
            });
            assert_eq!(step, Ok(expected));
        }
    }

    #[test]
    fn a_fencing_hold_that_was_ended_is_placed_again() {
        for (lock, hold, expected) in [
            (Lock::Nobodys, Some("u.1.n"), Step::HoldAgain),
            (Lock::Callers, Some("u.1.n"), Step::Follow),
            (Lock::Others, Some("u.1.n"), Step::Follow),
            // Fencing did not acquire the lock, and this run did not fence the node.
            (Lock::Nobodys, None, Step::Follow),
        ] {
            let step = next(|evidence| {
                *evidence = fenced();
                evidence.lock = lock;
                if let Some(record) = &mut evidence.state.record {
                    record.hold = hold.map(ToOwned::to_owned);
                }
            });
            assert_eq!(step, Ok(expected), "{lock:?} {hold:?}");
        }
    }

    #[test]
    fn a_lock_that_expires_during_fence_is_replaced_by_a_hold() {
        for (lock, expected) in [
            (Lock::Nobodys, Step::HoldAgain),
            (Lock::Callers, Step::Follow),
        ] {
            let step = next(|evidence| {
                *evidence = fenced();
                evidence.lock = lock;
                evidence.is_recorded = true;
            });
            assert_eq!(step, Ok(expected), "{lock:?}");
        }
    }

    #[test]
    fn only_an_unreachable_node_is_fenced() {
        let beat = |age| next(move |evidence| evidence.state.heartbeat = ago(age));
        assert_eq!(beat(39), Err(Refusal::Alive(Span::seconds(39))));
        assert_eq!(beat(40), Ok(Step::Record));
        for status in [Some(Status::True), Some(Status::False), None] {
            for heartbeat in [ago(90), Known::Yes(None)] {
                let called = next(|evidence| {
                    evidence.state.heartbeat = heartbeat;
                    evidence.state.ready = status.map(|status| Ready {
                        status,
                        since: None,
                    });
                });
                assert_eq!(called, Err(Refusal::NotCalledUnreachable(status)));
            }
        }
        let unheard = next(|evidence| evidence.state.heartbeat = Known::Yes(None));
        assert_eq!(unheard, Ok(Step::Record));
        let unread = next(|evidence| evidence.state.heartbeat = Known::Unknown(Why::NotRead));
        assert_eq!(unread, Err(Refusal::HeartbeatUnknown(Why::NotRead)));
        let back = next(|evidence| {
            *evidence = fenced();
            evidence.state.heartbeat = ago(5);
        });
        assert_eq!(back, Err(Refusal::BackAlive(Span::seconds(5))));
    }

    #[test]
    fn a_heartbeat_ahead_of_the_clock_is_one_of_just_now() {
        let ahead = next(|evidence| {
            evidence.state.heartbeat = Known::Yes(Some((NOW + Span::seconds(9)).into()));
        });
        assert_eq!(ahead, Err(Refusal::Alive(Span::ZERO)));
    }

    #[test]
    fn heartbeats_far_ahead_of_the_clock_do_not_prevent_fencing() {
        let far = || Known::Yes(Some((NOW + Span::seconds(70 * 60)).into()));
        assert_eq!(
            next(|evidence| evidence.state.heartbeat = far()),
            Ok(Step::Record)
        );
        let followed = next(|evidence| {
            *evidence = fenced();
            evidence.state.heartbeat = far();
        });
        assert_eq!(followed, Ok(Step::Follow));
    }
}
