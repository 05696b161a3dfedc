//! One acquisition as its holder keeps it: when to renew, what became of a renewal whose answer
//! never came, and when it is lost.
//!
//! A [`Keeper`] is small state that inputs move on; [`Keeper::due`] says what to do next. Whoever
//! drives it has one request under way at a time and does what it says, no later.

use super::belief::{BootInstant, deadline};
use super::lease::{Acquisition, Lease};
use super::names::Id;
use super::outcome::{Outcome, judge};
use super::relabel::Relabel;
use super::time::{Now, Span};
use super::transition::{Caller, Decision, Refusal, Verb, Write, decide};
use crate::bugs::{self, Bug};

/// What a client's clocks show.
///
/// The boot clock is read first: who is stopped between the two must not believe for longer than
/// what the write says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clocks {
    /// The clock that runs on through suspend.
    pub boot: BootInstant,
    /// The estimate of the server's time.
    pub server: Now,
}

/// How an acquisition is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The length that every renewal asks for, in seconds.
    pub duration: u32,
    /// How long before the deadline the work is asked to stop, so that it is over by then.
    pub stop: Span,
    /// How long after one renewal was sent the next is due.
    pub every: Span,
}

impl Terms {
    /// The shortest time between two renewals that can be asked for by how many may fail.
    pub const SHORTEST_INTERVAL: Span = Span::seconds(1);

    /// Renewals at a third of the duration.
    #[must_use]
    pub const fn new(duration: u32, stop: Span) -> Self {
        Self {
            duration,
            stop,
            every: third(duration),
        }
    }

    /// Renewals so often that the work has to stop once `missed` of them in a row (at least one) have
    /// failed, each for as long as until the next: every (duration − stop) / (missed + 1). `None`
    /// where that is under [`SHORTEST_INTERVAL`](Self::SHORTEST_INTERVAL).
    #[must_use]
    pub fn tolerating(missed: u32, duration: u32, stop: Span) -> Option<Self> {
        let work = Span::seconds(duration).as_micros() - stop.as_micros();
        let every = Span::micros(work / (i64::from(missed.max(1)) + 1));
        (every >= Self::SHORTEST_INTERVAL).then_some(Self {
            duration,
            stop,
            every,
        })
    }

    /// The shortest duration, in seconds, that [`tolerating`](Self::tolerating) takes:
    /// stop + (missed + 1) × 1 s, rounded up to whole seconds.
    #[must_use]
    pub fn shortest_tolerating(missed: u32, stop: Span) -> u32 {
        let renewals = Self::SHORTEST_INTERVAL.as_micros() * (i64::from(missed.max(1)) + 1);
        let seconds = Span::micros(stop.as_micros() + renewals).ceil_seconds();
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// A renewal is due at a third of the duration. If it takes all of `request` to fail, there
    /// must be time left before the work has to stop: duration ≥ 3/2 × (request + stop), rounded up
    /// to whole seconds.
    #[must_use]
    pub const fn shortest(request: Span, stop: Span) -> u32 {
        let doubled = 3 * (request.as_micros() + stop.as_micros());
        let seconds = Span::micros((doubled + 1) / 2).ceil_seconds();
        if seconds < 1 { 1 } else { seconds as u32 }
    }

    /// How long to wait before a request is tried again.
    fn pause(self) -> Span {
        let tenth = Span::micros(self.every.as_micros() / 10);
        tenth.min(Span::seconds(1))
    }

    /// The longest that a request may take: until the next is due, and no more than half of the time
    /// between the moment that a renewal is due and the moment that the work has to stop, so that
    /// another can be tried.
    #[must_use]
    pub fn request(self) -> Span {
        let until_stop = self.ahead(self.duration).as_micros() - self.stop.as_micros();
        let until_next = self.every.as_micros() - self.pause().as_micros();
        Span::micros((until_stop / 2).min(until_next))
    }

    /// When a renewal is due, as the time before the end of a Lease of `duration` seconds, which may
    /// be shorter than what was asked for.
    fn ahead(self, duration: u32) -> Span {
        let duration = duration.min(self.duration);
        // A hold's duration, in microseconds, leaves no room for a product in 64 bits.
        let every = i128::from(self.every.as_micros()) * i128::from(duration)
            / i128::from(self.duration.max(1));
        let every = i64::try_from(every).unwrap_or(i64::MAX);
        Span::micros(Span::seconds(duration).as_micros() - every)
    }
}

/// A write under way, or of unknown fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// The fields.
    pub write: Write,
    /// What it was decided on, and is a compare-and-swap on.
    pub on: Lease,
    /// The boot clock before it was first sent.
    pub at: BootInstant,
}

/// How an acquisition was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// It could not be renewed in time.
    Expired,
    /// Another acquisition stands there.
    Taken {
        /// Its holder.
        by: Id,
    },
    /// Nobody holds the Lease: it was released from outside.
    Released,
    /// The Lease is gone, or about to be.
    Deleted,
    /// It was deleted and made again.
    Replaced {
        /// Its holder, if any.
        by: Option<Id>,
    },
    /// Coordinated leader election took the Lease over.
    Elected,
}

/// What a holder does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// Send this renewal, as a compare-and-swap on the version that it was decided on.
    Send(Sent),
    /// Read the Lease.
    Read,
    /// Nothing, before this instant.
    Wait(BootInstant),
    /// Stop the work: it is lost. Nothing is written any more.
    Lost(Loss),
}

/// An acquisition that is being kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keeper {
    caller: Caller,
    of: Acquisition,
    terms: Terms,
    /// The newest that was seen of the Lease, while it was ours.
    held: Lease,
    deadline: BootInstant,
    /// How much earlier than due the next renewal goes out, so that holders come apart.
    early: Span,
    /// The renewal that is not settled.
    sent: Option<Sent>,
    /// A copy of it was sent whose fate is unknown.
    open: bool,
    /// The boot clock may not have counted all the time since it was sent.
    jumped: bool,
    /// A request is under way.
    busy: bool,
    /// The last renewal met another version than it was decided on.
    contended: bool,
    next: Next,
    /// Nothing is sent before this.
    not_before: BootInstant,
    loss: Option<Loss>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    /// A renewal, when it is due.
    Renew,
    /// A read, to learn why a renewal was refused.
    Read,
    /// A read before the work may go on: time may have passed that the boot clock did not count.
    Check,
    /// That read is under way.
    Checking,
}

impl Keeper {
    /// Keeps the acquisition that stands on `lease`, believed until `deadline`. `None` where nobody
    /// holds the Lease.
    #[must_use]
    pub fn new(caller: Caller, terms: Terms, lease: &Lease, deadline: BootInstant) -> Option<Self> {
        let admin = lease.holder?.admin;
        Some(Self {
            caller,
            of: lease.acquisition()?,
            terms,
            held: *lease,
            deadline: if admin { NEVER } else { deadline },
            early: Span::ZERO,
            sent: None,
            open: false,
            jumped: false,
            busy: false,
            contended: false,
            next: Next::Renew,
            not_before: BootInstant::from_micros(i64::MIN),
            loss: None,
        })
    }

    /// The acquisition.
    #[must_use]
    pub const fn acquisition(&self) -> Acquisition {
        self.of
    }

    /// The newest that was seen of the Lease, while it was ours.
    #[must_use]
    pub const fn held(&self) -> &Lease {
        &self.held
    }

    /// The last instant at which it may be believed to be ours.
    #[must_use]
    pub const fn deadline(&self) -> BootInstant {
        self.deadline
    }

    /// The instant at which the work is asked to stop, unless a renewal comes before.
    #[must_use]
    pub const fn stop_at(&self) -> BootInstant {
        self.deadline
            .plus(Span::micros(-self.terms.stop.as_micros()))
    }

    /// The loss, once it is lost.
    #[must_use]
    pub const fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Whether the work may go on at `boot`: not while a check is due.
    #[must_use]
    pub fn may_work(&self, boot: BootInstant) -> bool {
        let checking = matches!(self.next, Next::Check | Next::Checking);
        self.loss.is_none() && !checking && boot < self.stop_at()
    }

    /// Sends the next renewal `early`, so that holders who began together come apart.
    pub fn hasten(&mut self, early: Span) {
        self.early = early;
    }

    /// What to do next. A request that it asks for counts as under way until one of
    /// [`answered`](Self::answered), [`conflicted`](Self::conflicted),
    /// [`declined`](Self::declined), [`unanswered`](Self::unanswered), [`read`](Self::read) and
    /// [`unread`](Self::unread) says how it ended.
    pub fn due(&mut self, clocks: Clocks) -> Due {
        let hanging = self.busy && bugs::active(Bug::LossWaitsForRequest);
        if self.loss.is_none() && clocks.boot >= self.stop_at() && !hanging {
            self.loss = Some(Loss::Expired);
        }
        if let Some(loss) = self.loss {
            return Due::Lost(loss);
        }
        if self.busy {
            return Due::Wait(self.stop_at());
        }
        if clocks.boot < self.not_before {
            return Due::Wait(self.not_before.min(self.stop_at()));
        }
        if self.next == Next::Renew {
            let renew_at = self.renew_at();
            if clocks.boot < renew_at {
                return Due::Wait(renew_at.min(self.stop_at()));
            }
        }
        self.busy = true;
        if self.next == Next::Check {
            self.next = Next::Checking;
        }
        if self.next != Next::Renew || self.is_hold() {
            return Due::Read;
        }
        match self.renewal(clocks) {
            Ok(sent) => Due::Send(sent),
            Err(loss) => {
                self.loss = Some(loss);
                Due::Lost(loss)
            }
        }
    }

    /// The server answered the renewal with the Lease as it is now.
    pub fn answered(&mut self, lease: &Lease, clocks: Clocks) {
        self.busy = false;
        self.observe(Some(lease), clocks);
        if let Some(sent) = self.sent
            && self.loss.is_none()
            && lands_on(&sent.write, lease)
        {
            // It changed nothing, which the server answers with the version that was there.
            self.landed(sent, lease, clocks);
        }
    }

    /// The renewal was refused: the Lease is at another version, or gone.
    pub fn conflicted(&mut self, clocks: Clocks) {
        self.busy = false;
        if self.contended {
            self.not_before = clocks.boot.plus(self.terms.pause());
        }
        self.contended = true;
        if self.next == Next::Renew {
            self.next = Next::Read;
        }
        if !self.open {
            self.sent = None;
        }
    }

    /// The renewal was turned away for another cause, such as too many requests or a right that is
    /// missing. It is tried again after `wait`, if that leaves time to.
    pub fn declined(&mut self, wait: Span, clocks: Clocks) {
        self.busy = false;
        let longest = Span::micros(self.terms.every.as_micros() / 2);
        let wait = wait.min(longest).max(self.terms.pause());
        self.not_before = clocks.boot.plus(wait);
        if !self.open {
            self.sent = None;
        }
    }

    /// No answer came, or none that says whether the renewal was carried out: it may have landed,
    /// and may still land. The very same write is sent again on the same version: whichever of the
    /// two lands first makes the other fail.
    pub fn unanswered(&mut self, clocks: Clocks) {
        self.busy = false;
        self.open = true;
        self.not_before = clocks.boot.plus(self.terms.pause());
    }

    /// The Lease was read (`None`: there is none).
    pub fn read(&mut self, seen: Option<&Lease>, clocks: Clocks) {
        self.busy = false;
        let checked = self.next == Next::Checking;
        if self.next != Next::Check {
            self.next = Next::Renew;
        }
        self.observe(seen, clocks);
        if self.is_hold() {
            self.not_before = clocks.boot.plus(self.terms.every);
        } else if checked {
            self.cut(clocks);
        }
    }

    /// The Lease could not be read.
    pub fn unread(&mut self, clocks: Clocks) {
        self.busy = false;
        if self.next == Next::Checking {
            self.next = Next::Check;
        }
        self.not_before = clocks.boot.plus(self.terms.pause());
    }

    /// A watch showed a state of the Lease; one that is older than what is known already says
    /// nothing.
    pub fn watched(&mut self, lease: &Lease, clocks: Clocks) {
        if lease.version > self.held.version || bugs::active(Bug::StaleWatchBelieved) {
            self.observe(Some(lease), clocks);
        }
    }

    /// A watch showed that the Lease went, as it was `last`.
    pub fn watched_deletion(&mut self, last: &Lease) {
        if last.version > self.held.version && self.loss.is_none() {
            self.loss = Some(Loss::Deleted);
        }
    }

    /// A list of all Leases, from after the acquisition, did not have it.
    pub fn missing(&mut self) {
        self.loss.get_or_insert(Loss::Deleted);
    }

    /// The wall clock or the server's time ran ahead of the boot clock: the machine may have been
    /// paused. The Lease is read before the work may go on.
    pub fn jumped(&mut self) {
        if !bugs::active(Bug::JumpUnchecked) {
            self.next = Next::Check;
            self.jumped = self.sent.is_some();
        }
    }

    /// Renames everything in it.
    #[doc(hidden)]
    pub fn relabel(&mut self, labels: &mut impl Relabel) {
        labels.id(&mut self.caller.identity);
        labels.id(&mut self.caller.hold_identity);
        labels.acquisition(&mut self.of);
        labels.lease(&mut self.held);
        labels.until(&mut self.deadline);
        labels.until(&mut self.not_before);
        if let Some(sent) = &mut self.sent {
            labels.write(&mut sent.write);
            labels.lease(&mut sent.on);
            let Write::Renew { duration, .. } = sent.write else {
                unreachable!("a keeper renews");
            };
            labels.since(&mut sent.at, Span::seconds(duration));
        }
        if let Some(Loss::Taken { by } | Loss::Replaced { by: Some(by) }) = &mut self.loss {
            labels.id(by);
        }
    }

    fn is_hold(&self) -> bool {
        self.held.holder.is_some_and(|holder| holder.admin)
    }

    fn renew_at(&self) -> BootInstant {
        if self.is_hold() {
            return self.not_before;
        }
        let ahead = self.terms.ahead(self.held.duration).as_micros() + self.early.as_micros();
        self.deadline.plus(Span::micros(-ahead))
    }

    /// The renewal to send: the unsettled one once more, or a new one.
    fn renewal(&mut self, clocks: Clocks) -> Result<Sent, Loss> {
        if let Some(sent) = self.sent.filter(|_| self.open) {
            return Ok(sent);
        }
        let duration = Some(self.terms.duration);
        let verb = Verb::Renew { duration };
        let held = Some(&self.held);
        let write = match decide(verb, self.caller, held, Some(self.of), clocks.server) {
            Ok(Decision::Write(write)) => write,
            Err(Refusal::Elected) => return Err(Loss::Elected),
            Ok(Decision::AlreadyFree | Decision::AlreadyHeld) | Err(_) => {
                return Err(Loss::Released);
            }
        };
        let sent = Sent {
            write,
            on: self.held,
            at: clocks.boot,
        };
        self.sent = Some(sent);
        self.open = false;
        self.jumped = false;
        Ok(sent)
    }

    /// Takes in a state of the Lease that is no older than what is known.
    fn observe(&mut self, seen: Option<&Lease>, clocks: Clocks) {
        if self.loss.is_some() && !bugs::active(Bug::RevivedAfterLoss) {
            return;
        }
        self.loss = self.lost(seen);
        let Some(lease) = seen.filter(|_| self.loss.is_none()) else {
            return;
        };
        let outcome = self
            .sent
            .map(|sent| (sent, judge(&sent.write, Some(&sent.on), Some(lease))));
        match outcome {
            Some((sent, Outcome::Landed)) => self.landed(sent, lease, clocks),
            Some((_, Outcome::Failed)) | None => {
                self.sent = None;
                self.open = false;
                let ours = (self.held.renewed, self.held.duration);
                self.held = *lease;
                if ours != (lease.renewed, lease.duration) {
                    self.cut(clocks);
                }
            }
            Some((_, Outcome::Unsettled)) => {}
        }
    }

    fn lost(&self, seen: Option<&Lease>) -> Option<Loss> {
        let Some(lease) = seen else {
            return Some(Loss::Deleted);
        };
        let by = lease.holder.map(|holder| holder.id);
        if lease.uid != self.of.uid {
            return Some(Loss::Replaced { by });
        }
        match (lease.acquisition(), by) {
            (None, _) | (_, None) => Some(Loss::Released),
            (Some(standing), Some(by)) if standing != self.of => Some(Loss::Taken { by }),
            _ if lease.deleting => Some(Loss::Deleted),
            _ if lease.elected => Some(Loss::Elected),
            _ => None,
        }
    }

    fn landed(&mut self, sent: Sent, lease: &Lease, clocks: Clocks) {
        self.sent = None;
        self.open = false;
        self.contended = false;
        self.held = *lease;
        let from = if bugs::active(Bug::DeadlineAfterAnswer) {
            clocks.boot
        } else {
            sent.at
        };
        let duration = match sent.write {
            Write::Renew { duration, .. } if bugs::active(Bug::AskedDuration) => duration,
            _ => lease.duration,
        };
        self.deadline = deadline(from, duration);
        if self.jumped && !bugs::active(Bug::JumpForgotten) {
            self.cut(clocks);
        }
        self.jumped = false;
    }

    /// Believes no longer than the Lease says, by the server's time: somebody else changed its
    /// times, or time passed that the boot clock did not count.
    fn cut(&mut self, clocks: Clocks) {
        let left = match self.held.end() {
            Some(end) => end - clocks.server.latest,
            None => Span::ZERO,
        };
        self.deadline = self.deadline.min(clocks.boot.plus(left));
    }
}

/// A third of so many seconds.
const fn third(seconds: u32) -> Span {
    Span::micros(Span::seconds(seconds).as_micros() / 3)
}

/// Later than any deadline.
const NEVER: BootInstant = BootInstant::from_micros(i64::MAX);

/// Whether `lease` shows what `write`, a renewal, would have made of it.
fn lands_on(write: &Write, lease: &Lease) -> bool {
    matches!(*write, Write::Renew { of, at, .. }
        if lease.acquisition() == Some(of) && lease.renewed == Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::lease::Version;
    use crate::protocol::testing::{ADMIN, ALICE, BOB, alice, held, secs};
    use crate::protocol::time::Instant;

    const TERMS: Terms = Terms::new(60, Span::seconds(10));

    /// Boot clock and server's time agree, to make the cases easy to read.
    fn at(seconds: u32) -> Clocks {
        let server = secs(seconds);
        Clocks {
            boot: boot(seconds),
            server: Now::at(server),
        }
    }

    fn boot(seconds: u32) -> BootInstant {
        BootInstant::from_micros(secs(seconds).as_micros())
    }

    fn keeper() -> Keeper {
        Keeper::new(alice(), TERMS, &held(ALICE, 100, 60), boot(160)).expect("somebody holds it")
    }

    fn send(keeper: &mut Keeper, seconds: u32) -> Sent {
        match keeper.due(at(seconds)) {
            Due::Send(sent) => sent,
            other => panic!("{other:?}"),
        }
    }

    /// What the server has once `sent` landed.
    fn after(sent: &Sent) -> Lease {
        let Write::Renew { at, duration, .. } = sent.write else {
            panic!("{sent:?}");
        };
        Lease {
            version: Version(sent.on.version.0 + 1),
            renewed: Some(at),
            duration,
            ..sent.on
        }
    }

    #[test]
    fn it_renews_at_a_third_and_believes_from_before_it_sent() {
        let mut keeper = keeper();
        assert_eq!(keeper.due(at(101)), Due::Wait(boot(120)));
        let sent = send(&mut keeper, 120);
        assert_eq!(keeper.due(at(121)), Due::Wait(boot(150)), "one at a time");
        keeper.answered(&after(&sent), at(125));
        assert_eq!(keeper.deadline(), boot(180));
        assert_eq!(keeper.due(at(126)), Due::Wait(boot(140)));
    }

    #[test]
    fn belief_counts_the_answered_duration_not_the_asked_one() {
        let mut keeper = keeper();
        let sent = send(&mut keeper, 120);
        let shortened = Lease {
            duration: 30,
            ..after(&sent)
        };
        keeper.answered(&shortened, at(121));
        assert_eq!(keeper.deadline(), boot(150));
        assert_eq!(keeper.due(at(122)), Due::Wait(boot(130)));
    }

    #[test]
    fn it_is_lost_by_its_own_timer_while_a_request_hangs() {
        let mut keeper = keeper();
        send(&mut keeper, 120);
        assert!(keeper.may_work(boot(149)));
        assert!(!keeper.may_work(boot(150)));
        assert_eq!(keeper.due(at(150)), Due::Lost(Loss::Expired));
        keeper.answered(&held(ALICE, 149, 60), at(151));
        assert_eq!(keeper.due(at(151)), Due::Lost(Loss::Expired), "no revival");
    }

    #[test]
    fn an_unanswered_renewal_is_sent_again_as_it_was_and_counts_from_the_first_time() {
        let mut keeper = keeper();
        let sent = send(&mut keeper, 120);
        keeper.unanswered(at(130));
        assert_eq!(keeper.due(at(130)), Due::Wait(boot(131)));
        assert_eq!(send(&mut keeper, 131), sent);
        keeper.conflicted(at(131));
        assert_eq!(keeper.due(at(131)), Due::Read);
        keeper.read(Some(&after(&sent)), at(132));
        assert_eq!(keeper.deadline(), boot(180));
    }

    #[test]
    fn an_unchanged_lease_does_not_settle_a_renewal() {
        let mut keeper = keeper();
        let sent = send(&mut keeper, 120);
        keeper.unanswered(at(121));
        keeper.read(Some(&held(ALICE, 100, 60)), at(122));
        assert_eq!(send(&mut keeper, 123), sent);
    }

    #[test]
    fn a_refused_renewal_is_decided_anew_on_what_is_read() {
        let mut keeper = keeper();
        let first = send(&mut keeper, 120);
        keeper.conflicted(at(120));
        assert_eq!(keeper.due(at(120)), Due::Read);
        let annotated = Lease {
            version: Version(9),
            ..held(ALICE, 100, 60)
        };
        keeper.read(Some(&annotated), at(121));
        assert_eq!(keeper.deadline(), boot(160));
        let second = send(&mut keeper, 121);
        assert_eq!(second.on, annotated);
        assert_ne!(second.write, first.write);
    }

    #[test]
    fn losses_name_who_is_there_now() {
        let newer = |lease: Lease| Lease {
            version: Version(7),
            ..lease
        };
        let taken = newer(Lease {
            transitions: 2,
            ..held(BOB, 110, 60)
        });
        let free = newer(Lease {
            holder: None,
            ..held(ALICE, 100, 60)
        });
        let replaced = newer(Lease {
            uid: Id(99),
            ..held(BOB, 110, 60)
        });
        for (seen, loss) in [
            (taken, Loss::Taken { by: BOB.id }),
            (free, Loss::Released),
            (replaced, Loss::Replaced { by: Some(BOB.id) }),
        ] {
            let mut keeper = keeper();
            keeper.watched(&seen, at(111));
            assert_eq!(keeper.due(at(111)), Due::Lost(loss));
        }
        let mut keeper = keeper();
        keeper.watched_deletion(&newer(held(ALICE, 100, 60)));
        assert_eq!(keeper.due(at(111)), Due::Lost(Loss::Deleted));
    }

    #[test]
    fn what_a_watch_shows_late_is_no_loss() {
        let mut keeper = keeper();
        let old = Lease {
            version: Version(0),
            ..held(BOB, 20, 60)
        };
        keeper.watched(&old, at(111));
        keeper.watched_deletion(&old);
        assert_eq!(keeper.loss(), None);
    }

    #[test]
    fn times_changed_from_outside_cut_the_belief_and_never_extend_it() {
        let mut keeper = keeper();
        let shortened = Lease {
            version: Version(2),
            duration: 30,
            ..held(ALICE, 100, 60)
        };
        keeper.watched(&shortened, at(110));
        assert_eq!(keeper.deadline(), boot(130));
        let extended = Lease {
            version: Version(3),
            duration: 600,
            ..held(ALICE, 100, 60)
        };
        keeper.watched(&extended, at(111));
        assert_eq!(keeper.deadline(), boot(130));
    }

    #[test]
    fn after_a_jump_nothing_goes_on_before_a_read_and_belief_ends_by_the_servers_time() {
        let mut keeper = keeper();
        keeper.jumped();
        assert!(!keeper.may_work(boot(110)));
        assert_eq!(keeper.due(at(110)), Due::Read);
        keeper.jumped();
        keeper.read(Some(&held(ALICE, 100, 60)), at(111));
        assert!(!keeper.may_work(boot(111)), "the read was begun before");
        assert_eq!(keeper.due(at(111)), Due::Read);
        let paused = Clocks {
            boot: boot(112),
            server: Now::at(secs(132)),
        };
        keeper.read(Some(&held(ALICE, 100, 60)), paused);
        assert!(keeper.may_work(boot(112)));
        assert_eq!(keeper.deadline(), boot(140));
    }

    #[test]
    fn a_renewal_from_before_a_jump_that_lands_after_the_check_counts_by_the_servers_time() {
        let mut keeper = keeper();
        let sent = send(&mut keeper, 120);
        keeper.jumped();
        keeper.unanswered(at(120));
        // The machine stood still for 20 s.
        let paused = |seconds: u32| Clocks {
            boot: boot(seconds),
            server: Now::at(secs(seconds + 20)),
        };
        assert_eq!(keeper.due(paused(121)), Due::Read);
        keeper.read(Some(&held(ALICE, 100, 60)), paused(121));
        assert_eq!(keeper.deadline(), boot(140), "the renewal has not landed");
        assert_eq!(keeper.due(paused(122)), Due::Send(sent));
        keeper.answered(&after(&sent), paused(122));
        assert_eq!(keeper.deadline(), boot(160), "not 20 s more");
    }

    #[test]
    fn a_hold_is_read_now_and_then_and_never_renewed() {
        let hold = held(ADMIN, 100, 60);
        let mut keeper = Keeper::new(alice(), TERMS, &hold, boot(160)).expect("held");
        for seconds in [200, 221, 242] {
            assert_eq!(keeper.due(at(seconds)), Due::Read);
            keeper.read(Some(&hold), at(seconds));
            assert_eq!(keeper.due(at(seconds)), Due::Wait(boot(seconds + 20)));
        }
    }

    #[test]
    fn a_renewal_that_changed_nothing_counts() {
        let mut keeper = keeper();
        let sent = send(&mut keeper, 120);
        let same = Lease {
            version: sent.on.version,
            ..after(&sent)
        };
        keeper.answered(&same, at(121));
        assert_eq!(keeper.deadline(), boot(180));
    }

    #[test]
    fn the_shortest_duration_leaves_time_for_a_renewal_to_fail() {
        for (request, stop) in [(10, 11), (1, 0), (3, 4)] {
            let duration = Terms::shortest(Span::seconds(request), Span::seconds(stop));
            let terms = Terms::new(duration, Span::seconds(stop));
            let mut keeper = Keeper::new(
                alice(),
                terms,
                &held(ALICE, 0, duration),
                BootInstant::from_micros(Instant::from_micros(0).as_micros())
                    .plus(Span::seconds(duration)),
            )
            .expect("held");
            let Due::Wait(due) = keeper.due(at(0)) else {
                panic!("{duration}");
            };
            assert!(due.plus(Span::seconds(request)) <= keeper.stop_at());
        }
        assert_eq!(Terms::shortest(Span::seconds(10), Span::seconds(11)), 32);
    }

    #[test]
    fn the_longest_duration_that_a_lease_can_have_is_kept_like_any_other() {
        let longest = i32::MAX.unsigned_abs();
        let terms = Terms::new(longest, Span::seconds(1));
        let two_thirds = Span::micros(Span::seconds(longest).as_micros() - terms.every.as_micros());
        assert_eq!(terms.ahead(longest), two_thirds);
        assert!(terms.request() > Span::seconds(longest / 4));
    }

    #[test]
    fn as_many_renewals_fail_as_were_asked_for_before_the_work_has_to_stop() {
        for (missed, duration, stop) in [(3, 15, 6), (2, 10, 1), (5, 8, 2)] {
            let terms =
                Terms::tolerating(missed, duration, Span::seconds(stop)).expect("it can be");
            let end = boot(duration);
            let mut keeper =
                Keeper::new(alice(), terms, &held(ALICE, 0, duration), end).expect("held");
            let mut clocks = at(0);
            let mut failed = 0;
            let loss = loop {
                match keeper.due(clocks) {
                    Due::Wait(until) => clocks.boot = until,
                    Due::Send(_) => {
                        clocks.boot = clocks.boot.plus(terms.request());
                        keeper.unanswered(clocks);
                        failed += 1;
                    }
                    Due::Lost(loss) => break loss,
                    Due::Read => panic!("nothing refused it"),
                }
            };
            assert_eq!((failed, loss), (missed, Loss::Expired), "{duration} s");
            assert_eq!(clocks.boot, boot(duration - stop));
        }
    }

    #[test]
    fn the_next_renewal_is_due_its_interval_after_the_last_was_sent() {
        let terms = Terms::tolerating(4, 60, Span::seconds(10)).expect("it can be");
        assert_eq!(terms.every, Span::seconds(10));
        let lease = held(ALICE, 100, 60);
        let mut keeper = Keeper::new(alice(), terms, &lease, boot(160)).expect("held");
        assert_eq!(keeper.due(at(101)), Due::Wait(boot(110)));
        let sent = send(&mut keeper, 111);
        keeper.answered(&after(&sent), at(112));
        assert_eq!(keeper.due(at(113)), Due::Wait(boot(121)));
    }

    #[test]
    fn renewals_closer_than_a_second_are_not_to_be_had() {
        for (missed, stop) in [(1, 0), (3, 6), (40, 11)] {
            let stop = Span::seconds(stop);
            let shortest = Terms::shortest_tolerating(missed, stop);
            assert!(Terms::tolerating(missed, shortest, stop).is_some());
            assert_eq!(Terms::tolerating(missed, shortest - 1, stop), None);
        }
        assert_eq!(Terms::shortest_tolerating(3, Span::seconds(6)), 10);
        assert_eq!(Terms::tolerating(3, 5, Span::seconds(6)), None);
    }
}
