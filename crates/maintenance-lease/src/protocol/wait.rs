//! One contender for one Lease: what it saw, and when it may try to acquire it.
//!
//! It does not poll: a change that it sees, or the passing of time, makes it try once, on the version that it
//! saw. Contenders that lose a race wait for the next change.

use super::clocks::{BootInstant, Clocks};
use super::decision::Caller;
use super::expiry::takeover;
use super::lease::{Holder, Lease, Version};
use super::relabel::Relabel;
use super::state::{State, state};
use super::terms::Expiry;
use super::time::{Instant, Now, SKEW_BUDGET, Span};

/// How long to wait for a change after a lost race, before the Lease is read.
pub const SILENCE: Span = Span::seconds(1);

/// What a contender does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaiterAction {
    /// Try to take it, once, on the version that was seen.
    Try,
    /// Read the Lease.
    Read,
    /// Nothing before this instant, unless a change is seen; `None`: only a change can help.
    Wait(Option<BootInstant>),
}

/// A contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    expiry: Expiry,
    /// The identity whose lock it may acquire although it is held: its own.
    own: Option<Caller>,
    known: bool,
    seen: Option<Lease>,
    /// When the record was first seen in its present form, if the contender saw it change.
    sight: Option<BootInstant>,
    /// The race on this version was lost.
    lost: Option<Option<Version>>,
    /// Nothing is read or tried before this.
    not_before: Option<BootInstant>,
}

impl Waiter {
    /// A contender that has seen nothing yet.
    #[must_use]
    pub const fn new(expiry: Expiry) -> Self {
        Self {
            expiry,
            own: None,
            known: false,
            seen: None,
            sight: None,
            lost: None,
            not_before: None,
        }
    }

    /// Also accepts a lock of `own`: to enter it again, or to replace it with a hold.
    #[must_use]
    pub const fn or_own(mut self, own: Caller) -> Self {
        self.own = Some(own);
        self
    }

    /// The newest state of the Lease that was seen; `None`: there is none, or nothing was seen.
    #[must_use]
    pub const fn seen(&self) -> Option<&Lease> {
        self.seen.as_ref()
    }

    /// Uses the result of a read, as of `boot`, when its answer came: the state may be as new as that.
    pub fn read(&mut self, lease: Option<&Lease>, boot: BootInstant) {
        self.observe_at(lease, boot);
        self.lost = None;
        self.not_before = None;
    }

    /// Uses a state from a watch (`None`: the Lease was deleted). A state older than the known one is ignored,
    /// and so is every state before the first read: it may show a hold that the caller has ended since.
    pub fn watched(&mut self, lease: Option<&Lease>, boot: BootInstant) {
        if !self.known {
            return;
        }
        let newer = match (lease, &self.seen) {
            (Some(lease), Some(seen)) => lease.version > seen.version,
            (None, None) => false,
            _ => true,
        };
        if newer {
            self.observe_at(lease, boot);
            self.lost = None;
            self.not_before = None;
        }
    }

    /// The Lease had changed: somebody else wrote first. The watch will show what they did. If no event comes,
    /// the Lease is read.
    pub fn conflicted(&mut self, boot: BootInstant) {
        self.lost = Some(self.version());
        self.not_before = Some(boot.plus(SILENCE));
    }

    /// The request failed for a temporary reason: retry after `pause`.
    pub fn failed(&mut self, pause: Span, boot: BootInstant) {
        self.not_before = Some(boot.plus(pause));
    }

    /// What to do next.
    #[must_use]
    pub fn due(&self, clocks: Clocks) -> WaiterAction {
        self.first(clocks)
            .unwrap_or_else(|| match self.ready_at(clocks) {
                Some(at) if at <= clocks.boot => WaiterAction::Try,
                _ if self.is_own(clocks.server) => WaiterAction::Try,
                at => WaiterAction::Wait(at),
            })
    }

    /// What to do before the next decision, for any holder: a pause, or a read.
    fn first(&self, clocks: Clocks) -> Option<WaiterAction> {
        if let Some(not_before) = self.not_before
            && clocks.boot < not_before
        {
            return Some(WaiterAction::Wait(Some(not_before)));
        }
        (!self.known || self.lost == Some(self.version())).then_some(WaiterAction::Read)
    }

    /// Applies a renaming to everything in it.
    #[doc(hidden)]
    pub fn relabel(&mut self, labels: &mut impl Relabel) {
        if let Some(own) = &mut self.own {
            labels.id(&mut own.identity);
            labels.id(&mut own.hold_identity);
        }
        if let Some(seen) = &mut self.seen {
            labels.lease(seen);
        }
        if let Some(sight) = &mut self.sight {
            let held = self.seen.filter(|lease| lease.holder.is_some());
            let length = match (self.expiry, held) {
                (_, None) => Span::ZERO,
                (Expiry::OwnEyes, Some(lease)) => Span::seconds(lease.duration),
                (Expiry::ServerTime, Some(lease)) => Span::micros(
                    Span::seconds(lease.duration).as_micros() + SKEW_BUDGET.as_micros(),
                ),
            };
            labels.since(sight, length);
        }
        if let Some(Some(version)) = &mut self.lost {
            labels.version(version);
        }
        if let Some(not_before) = &mut self.not_before {
            labels.until(not_before);
        }
    }

    fn version(&self) -> Option<Version> {
        self.seen.map(|lease| lease.version)
    }

    fn observe_at(&mut self, lease: Option<&Lease>, boot: BootInstant) {
        let changed = self.known && record(self.seen.as_ref()) != record(lease);
        if changed || (!self.known && self.expiry == Expiry::OwnEyes) {
            self.sight = Some(boot);
        }
        self.known = true;
        self.seen = lease.copied();
    }

    /// Whether it is the caller's own lock, which needs no waiting. If it has expired, anybody may acquire it,
    /// and a colleague with the same name may still hold it by their own clock.
    fn is_own(&self, now: Now) -> bool {
        let (Some(own), Some(lease)) = (self.own, &self.seen) else {
            return false;
        };
        let names = [own.identity, own.hold_identity];
        lease
            .holder
            .is_some_and(|holder| names.contains(&holder.id))
            && !(lease.elected || lease.deleting || lease.foreign)
            && !matches!(state(Some(lease), now), State::Expired { .. })
    }

    /// When it may be tried, by the boot clock; `None` if waiting alone does not help.
    fn ready_at(&self, clocks: Clocks) -> Option<BootInstant> {
        let now = clocks.boot;
        let Some(lease) = &self.seen else {
            return Some(now);
        };
        if lease.elected || lease.deleting || lease.foreign {
            return None;
        }
        let Some(holder) = lease.holder else {
            return Some(now);
        };
        if holder.admin {
            return None;
        }
        let duration = Span::seconds(lease.duration);
        match self.expiry {
            // The last instant still belongs to the holder.
            Expiry::OwnEyes => Some(self.sight.unwrap_or(now).plus(duration).plus(Span::TICK)),
            Expiry::ServerTime => {
                let by_server = match lease.end() {
                    // The time is unreadable or missing.
                    Some(_) => {
                        now.plus((takeover(lease)? - clocks.server.earliest).max(Span::ZERO))
                    }
                    None => now,
                };
                let by_sight = self
                    .sight
                    .map_or(now, |sight| sight.plus(duration).plus(SKEW_BUDGET));
                Some(by_server.max(by_sight))
            }
        }
    }
}

/// The fields that a holder writes and a renewal changes.
#[derive(PartialEq, Eq)]
struct Record {
    holder: Option<Holder>,
    acquired: Option<Instant>,
    renewed: Option<Instant>,
    duration: u32,
    transitions: u32,
}

fn record(lease: Option<&Lease>) -> Option<Record> {
    lease.map(|lease| Record {
        holder: lease.holder,
        acquired: lease.acquired,
        renewed: lease.renewed,
        duration: lease.duration,
        transitions: lease.transitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::testing::{ADMIN, ALICE, BOB, OTHER_ADMIN, alice, held, secs};

    fn boot(seconds: u32) -> BootInstant {
        BootInstant::from_micros(secs(seconds).as_micros())
    }

    /// The boot clock began 1,000 s before the server's time.
    fn at(seconds: u32) -> Clocks {
        Clocks {
            boot: boot(seconds + 1_000),
            server: Now::at(secs(seconds)),
        }
    }

    fn waiter(lease: &Lease) -> Waiter {
        let mut waiter = Waiter::new(Expiry::ServerTime);
        assert_eq!(waiter.due(at(0)), WaiterAction::Read);
        waiter.read(Some(lease), boot(1_000));
        waiter
    }

    #[test]
    fn it_takes_what_it_found_expired_and_waits_out_the_margin() {
        let waiter = waiter(&held(BOB, 100, 60));
        let ready_at = boot(1_163).plus(Span::micros(1));
        assert_eq!(waiter.due(at(110)), WaiterAction::Wait(Some(ready_at)));
        assert_eq!(waiter.due(at(163)), WaiterAction::Wait(Some(ready_at)));
        assert_eq!(waiter.due(at(164)), WaiterAction::Try);
    }

    #[test]
    fn an_observed_change_gives_the_holder_the_duration_and_the_margin() {
        let mut waiter = waiter(&held(BOB, 100, 60));
        let renewed_by_a_slow_clock = Lease {
            version: Version(2),
            ..held(BOB, 101, 60)
        };
        waiter.watched(Some(&renewed_by_a_slow_clock), boot(1_150));
        assert_eq!(waiter.due(at(165)), WaiterAction::Wait(Some(boot(1_213))));
        assert_eq!(waiter.due(at(213)), WaiterAction::Try);
    }

    #[test]
    fn an_annotation_is_no_change_of_the_record() {
        let mut waiter = waiter(&held(BOB, 100, 60));
        let annotated = Lease {
            version: Version(2),
            ..held(BOB, 100, 60)
        };
        waiter.watched(Some(&annotated), boot(1_150));
        assert_eq!(waiter.due(at(164)), WaiterAction::Try);
    }

    #[test]
    fn a_freed_lease_is_tried_at_once_and_one_that_went_too() {
        let mut waiter = waiter(&held(BOB, 100, 60));
        let free = Lease {
            holder: None,
            version: Version(2),
            ..held(BOB, 100, 1)
        };
        waiter.watched(Some(&free), boot(1_110));
        assert_eq!(waiter.due(at(110)), WaiterAction::Try);
        waiter.watched(None, boot(1_110));
        assert_eq!(waiter.due(at(110)), WaiterAction::Try);
    }

    #[test]
    fn a_lost_race_is_not_run_again_before_something_newer_is_seen() {
        let mut waiter = waiter(&held(BOB, 100, 60));
        waiter.conflicted(boot(1_170));
        assert_eq!(waiter.due(at(170)), WaiterAction::Wait(Some(boot(1_171))));
        assert_eq!(
            waiter.due(at(171)),
            WaiterAction::Read,
            "the watch was silent"
        );
        let mut watching = waiter;
        let taken = Lease {
            version: Version(2),
            ..held(ALICE, 170, 60)
        };
        watching.watched(Some(&taken), boot(1_170));
        assert!(matches!(watching.due(at(170)), WaiterAction::Wait(Some(at)) if at > boot(1_230)));
        waiter.read(Some(&held(BOB, 100, 60)), boot(1_171));
        assert_eq!(
            waiter.due(at(171)),
            WaiterAction::Try,
            "read again, decided again"
        );
    }

    #[test]
    fn a_late_event_says_nothing() {
        let mut waiter = waiter(&Lease {
            version: Version(5),
            ..held(BOB, 100, 60)
        });
        let old = Lease {
            holder: None,
            version: Version(4),
            ..held(BOB, 90, 60)
        };
        waiter.watched(Some(&old), boot(1_110));
        assert!(matches!(waiter.due(at(110)), WaiterAction::Wait(Some(_))));
    }

    #[test]
    fn before_the_first_read_a_watch_says_nothing() {
        let mut waiter = Waiter::new(Expiry::ServerTime).or_own(alice());
        waiter.watched(Some(&held(ADMIN, 100, 60)), boot(1_110));
        assert_eq!(waiter.due(at(110)), WaiterAction::Read);
    }

    #[test]
    fn leases_that_may_not_be_written_are_not_tried() {
        let free = Lease {
            holder: None,
            ..held(BOB, 100, 60)
        };
        let elected = Lease {
            elected: true,
            ..free
        };
        let deleting = Lease {
            deleting: true,
            ..free
        };
        let foreign = Lease {
            foreign: true,
            ..free
        };
        for lease in [elected, deleting, foreign] {
            assert_eq!(
                waiter(&lease).due(at(90_000)),
                WaiterAction::Wait(None),
                "{lease:?}"
            );
        }
    }

    #[test]
    fn holds_never_expire_while_waiting() {
        assert_eq!(
            waiter(&held(ADMIN, 100, 60)).due(at(90_000)),
            WaiterAction::Wait(None)
        );
    }

    #[test]
    fn own_locks_are_entered_at_once_until_they_expire() {
        let entering = |lease: &Lease| {
            let mut waiter = Waiter::new(Expiry::ServerTime).or_own(alice());
            waiter.read(Some(lease), boot(1_000));
            waiter
        };
        let own = held(ALICE, 100, 60);
        assert_eq!(entering(&own).due(at(110)), WaiterAction::Try);
        assert!(matches!(
            waiter(&own).due(at(110)),
            WaiterAction::Wait(Some(_))
        ));
        let mut renewed_late = entering(&held(ALICE, 90, 60));
        renewed_late.watched(
            Some(&Lease {
                version: Version(2),
                ..own
            }),
            boot(1_150),
        );
        assert_eq!(renewed_late.due(at(163)), WaiterAction::Try);
        let by_sight = WaiterAction::Wait(Some(boot(1_213)));
        assert_eq!(renewed_late.due(at(164)), by_sight, "anybody's by now");
        assert_eq!(
            entering(&held(ADMIN, 100, 60)).due(at(110)),
            WaiterAction::Try
        );
        for theirs in [held(BOB, 100, 60), held(OTHER_ADMIN, 100, 60)] {
            assert!(matches!(
                entering(&theirs).due(at(110)),
                WaiterAction::Wait(_)
            ));
        }
        let deleting = Lease {
            deleting: true,
            ..own
        };
        assert_eq!(entering(&deleting).due(at(110)), WaiterAction::Wait(None));
    }

    #[test]
    fn a_lease_without_times_is_anybodys_and_one_with_unreadable_times_is_not() {
        let mut lease = held(BOB, 100, 60);
        lease.renewed = None;
        lease.acquired = None;
        assert_eq!(waiter(&lease).due(at(0)), WaiterAction::Try);
        lease.renewed = Some(Instant::UNREADABLE);
        assert_eq!(waiter(&lease).due(at(90_000)), WaiterAction::Wait(None));
    }

    #[test]
    fn in_an_election_only_the_own_eyes_count() {
        let mut waiter = Waiter::new(Expiry::OwnEyes);
        waiter.read(Some(&held(BOB, 100, 15)), boot(90_000));
        let late = Clocks {
            boot: boot(90_014),
            server: Now::at(secs(1_000_000)),
        };
        let ready_at = boot(90_015).plus(Span::TICK);
        assert_eq!(waiter.due(late), WaiterAction::Wait(Some(ready_at)));
        let due = Clocks {
            boot: ready_at,
            ..late
        };
        assert_eq!(waiter.due(due), WaiterAction::Try);
    }
}
