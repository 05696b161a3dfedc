//! One acquisition as its holder keeps it: when to renew, whether an unanswered renewal took effect, and when
//! the lock is lost.
//!
//! A [`Keeper`] is small state that changes with each input; [`Keeper::due`] says what to do next. Its driver
//! has one request under way at a time and does what is due, no later.

use super::clocks::{BootInstant, Clocks};
use super::deadline::{believed, left_of};
use super::decision::{Caller, Decision, Refusal, Verb, Write};
use super::lease::{Acquisition, Lease, Version};
use super::names::Id;
use super::relabel::Relabel;
use super::terms::Terms;
use super::time::Span;
use super::transition::decide;
use super::unknown_write::{WriteOutcome, judge};
use crate::bugs::{self, Bug};

/// A write under way, or with an unknown outcome.
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
    /// Another acquisition has replaced it.
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
pub enum KeeperAction {
    /// Send this renewal, as a compare-and-swap on the version that it was decided on.
    Send(Sent),
    /// Read the Lease.
    Read,
    /// Read the Lease at once, on a new connection. A request under way is abandoned: its answer must not be
    /// used.
    Check,
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
    /// The newest state of the Lease that was seen while it was ours.
    held: Lease,
    deadline: BootInstant,
    /// A random share, in 256ths, by which renewals are early and retries late, to spread holders that started
    /// together.
    jitter: u8,
    /// The renewal with an unknown outcome.
    sent: Option<Renewal>,
    in_flight: Option<InFlight>,
    /// The lock is in doubt: nothing continues until a read that is sent from now on is answered.
    must_check: bool,
    /// The Lease is to be read before the next renewal.
    must_read: bool,
    /// A read showed an older version than was known when it was sent.
    went_back: bool,
    /// After a failure, nothing is sent before this.
    retry_at: BootInstant,
    /// When a hold, which has no renewals, is read next. A lease is not read before this merely to know the
    /// server's time better.
    look_at: BootInstant,
    loss: Option<Loss>,
}

/// A renewal that was sent, perhaps more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Renewal {
    sent: Sent,
    /// A copy of it may have been carried out, or may still be.
    unknown: bool,
    /// A pause was suspected since it was first sent: the boot clock may not have counted all the time.
    paused: bool,
}

/// The request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum InFlight {
    Renewal,
    Read {
        /// The newest version that was known when it was sent. A quorum read returns no older one.
        known: Version,
        /// It was sent since the lock came into doubt.
        check: bool,
    },
}

impl Keeper {
    /// Keeps the acquisition in `lease`, believed until `deadline`. `None` if nobody holds the Lease.
    #[must_use]
    pub fn new(caller: Caller, terms: Terms, lease: &Lease, deadline: BootInstant) -> Option<Self> {
        let admin = lease.holder?.admin;
        Some(Self {
            caller,
            of: lease.acquisition()?,
            terms,
            held: *lease,
            deadline: if admin { NEVER } else { deadline },
            jitter: 0,
            sent: None,
            in_flight: None,
            must_check: false,
            must_read: false,
            went_back: false,
            retry_at: BEGINNING,
            look_at: BEGINNING,
            loss: None,
        })
    }

    /// The acquisition.
    #[must_use]
    pub const fn acquisition(&self) -> Acquisition {
        self.of
    }

    /// The newest state of the Lease that was seen while it was ours.
    #[must_use]
    pub const fn held(&self) -> &Lease {
        &self.held
    }

    /// The last instant at which the holder may believe in it.
    #[must_use]
    pub const fn deadline(&self) -> BootInstant {
        self.deadline
    }

    /// The instant at which the work is asked to stop, unless a renewal comes first.
    #[must_use]
    pub const fn stop_at(&self) -> BootInstant {
        self.deadline
            .plus(Span::micros(self.terms.stop.as_micros().saturating_neg()))
    }

    /// The loss, once it is lost.
    #[must_use]
    pub const fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Whether it is in doubt: nothing may start or continue before a check is answered.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        self.must_check
    }

    /// Whether the work may continue at `boot`.
    #[must_use]
    pub fn may_work(&self, boot: BootInstant) -> bool {
        self.loss.is_none() && !self.must_check && boot < self.stop_at()
    }

    /// Sets the random share, in 256ths, by which the next renewal is early and the next retry late.
    pub fn spread(&mut self, jitter: u8) {
        self.jitter = jitter;
    }

    /// What to do next. A request that it asks for counts as under way until one of
    /// [`answered`](Self::answered), [`conflicted`](Self::conflicted),
    /// [`declined`](Self::declined), [`unanswered`](Self::unanswered), [`read`](Self::read) and
    /// [`unread`](Self::unread) says how it ended, or [`KeeperAction::Check`] replaces it.
    pub fn due(&mut self, clocks: Clocks) -> KeeperAction {
        let hanging = self.in_flight.is_some() && bugs::active(Bug::LossWaitsForRequest);
        if self.loss.is_none() && clocks.boot >= self.stop_at() && !hanging {
            self.loss = Some(Loss::Expired);
        }
        if let Some(loss) = self.loss {
            if self.must_check {
                // Nobody knows since when it has been lost, so the work gets no time to end.
                self.deadline = self.deadline.min(clocks.boot);
            }
            return KeeperAction::Lost(loss);
        }
        if self.in_flight.is_some() {
            return KeeperAction::Wait(match hanging {
                // Without this, a planted mistake would loop forever at one instant.
                true => self.stop_at().max(clocks.boot.plus(Span::seconds(1))),
                false => self.stop_at(),
            });
        }
        if clocks.boot < self.retry_at {
            return KeeperAction::Wait(self.retry_at.min(self.stop_at()));
        }
        let next = self.next_at();
        let waits = !self.must_check && !self.must_read || bugs::active(Bug::CheckDelayed);
        if waits && clocks.boot < next {
            return KeeperAction::Wait(next.min(self.stop_at()));
        }
        if self.must_check {
            return self.read_due(true);
        }
        // Before the first answer after a pause, the time to write is unknown. One more answer may narrow it;
        // if not, its latest bound is safe.
        let knows_time =
            clocks.server.bounded && (clocks.server.is_narrow() || clocks.boot < self.look_at);
        if self.must_read || self.is_hold() || !knows_time {
            return self.read_due(false);
        }
        match self.renewal(clocks) {
            Ok(sent) => {
                self.in_flight = Some(InFlight::Renewal);
                KeeperAction::Send(sent)
            }
            Err(loss) => {
                self.loss = Some(loss);
                KeeperAction::Lost(loss)
            }
        }
    }

    /// The server answered the renewal with the current Lease.
    pub fn answered(&mut self, lease: &Lease, clocks: Clocks) {
        self.in_flight = None;
        self.observe(Some(lease), clocks);
        if let Some(renewal) = self.sent
            && self.loss.is_none()
            && has_landed_on(&renewal.sent.write, lease)
        {
            // It changed nothing: the server then answers with the existing version.
            self.landed(renewal, lease, clocks);
        }
    }

    /// The renewal was refused: the Lease has another version, or is gone. This attempt failed. An
    /// earlier attempt, by us or repeated by a proxy, may have taken effect.
    pub fn conflicted(&mut self, clocks: Clocks) {
        if self.in_flight.take().is_none() {
            return;
        }
        if self.must_read {
            self.retry_at = self.later(clocks);
        }
        self.must_read = true;
        if bugs::active(Bug::OwnNonceNotRecognised) {
            self.sent = None;
        }
    }

    /// The renewal was refused for another reason, such as too many requests or a missing permission. It is
    /// retried after `wait`, if there is time.
    pub fn declined(&mut self, wait: Span, clocks: Clocks) {
        if self.in_flight.take().is_none() {
            return;
        }
        let longest = Span::micros(self.every().as_micros() / 2);
        let wait = clocks.boot.plus(wait.min(longest));
        self.retry_at = self.later(clocks).max(wait);
        self.sent = self.sent.filter(|renewal| renewal.unknown);
    }

    /// No answer came, or none that says whether the renewal was carried out: it may have taken effect, or
    /// still may. The same write is sent again on the same version: the first of the two to take effect makes
    /// the other fail.
    pub fn unanswered(&mut self, clocks: Clocks) {
        if self.in_flight.take().is_none() {
            return;
        }
        if let Some(renewal) = &mut self.sent {
            renewal.unknown = true;
        }
        self.retry_at = self.later(clocks);
    }

    /// The Lease was read (`None`: there is none). A result older than what a watch has shown meanwhile is
    /// ignored, and the Lease is read again.
    pub fn read(&mut self, seen: Option<&Lease>, clocks: Clocks) {
        let Some(InFlight::Read { known, check }) = self.in_flight.take() else {
            return;
        };
        let went_back = seen.is_some_and(|lease| lease.version < known);
        if went_back && !(check && self.went_back) {
            // A single occurrence may come from a cache. Twice means that etcd may have been restored from a
            // backup.
            match std::mem::replace(&mut self.went_back, true) {
                true => self.require_check(),
                false => self.retry_at = self.later(clocks),
            }
            return;
        }
        if check && !clocks.server.bounded {
            self.retry_at = self.later(clocks);
            return;
        }
        if went_back {
            if let Some(lease) = seen {
                // Others rely on what etcd has now. A write on a version from before the restore can't take
                // effect any more.
                self.held.version = lease.version;
                self.sent = None;
            }
        } else if seen.is_some_and(|lease| self.is_outdated(lease)) {
            self.retry_at = self.later(clocks);
            return;
        }
        self.went_back = false;
        self.must_read = false;
        self.retry_at = BEGINNING;
        if self.is_hold() || !clocks.server.is_narrow() {
            self.look_at = clocks.boot.plus(self.terms.every);
        }
        self.observe(seen, clocks);
        if check && self.loss.is_none() {
            self.must_check = false;
            self.cut(clocks);
        }
    }

    /// The Lease could not be read.
    pub fn unread(&mut self, clocks: Clocks) {
        if self.in_flight.take().is_some() {
            self.retry_at = self.later(clocks);
        }
    }

    /// A watch showed a state of the Lease. A state older than the known one is ignored.
    pub fn watched(&mut self, lease: &Lease, clocks: Clocks) {
        if !self.is_outdated(lease) {
            self.observe(Some(lease), clocks);
        }
    }

    /// A watch showed that the Lease was deleted; `last` is its last state.
    pub fn watched_deletion(&mut self, last: &Lease) {
        if last.version > self.held.version && self.loss.is_none() {
            self.loss = Some(Loss::Deleted);
        }
    }

    /// A list of all Leases, from after the acquisition, does not contain it.
    pub fn missing(&mut self) {
        self.loss.get_or_insert(Loss::Deleted);
    }

    /// The lock came into doubt: the machine may have been paused, and the boot clock may not have counted all
    /// the time. The request under way is abandoned, and the Lease is read before anything continues.
    pub fn require_check(&mut self) {
        if bugs::active(Bug::JumpUnchecked) {
            return;
        }
        self.must_check = true;
        self.retry_at = BEGINNING;
        if let Some(renewal) = &mut self.sent {
            renewal.unknown |= self.in_flight == Some(InFlight::Renewal);
            renewal.paused = true;
        }
        self.in_flight = None;
    }

    /// Applies a renaming to everything in it.
    #[doc(hidden)]
    pub fn relabel(&mut self, labels: &mut impl Relabel) {
        labels.id(&mut self.caller.identity);
        labels.id(&mut self.caller.hold_identity);
        labels.acquisition(&mut self.of);
        labels.lease(&mut self.held);
        labels.until(&mut self.deadline);
        labels.until(&mut self.retry_at);
        labels.until(&mut self.look_at);
        if let Some(InFlight::Read { known, .. }) = &mut self.in_flight {
            labels.version(known);
        }
        if let Some(Renewal { sent, .. }) = &mut self.sent {
            labels.write(&mut sent.write);
            labels.lease(&mut sent.on);
            // A keeper sends nothing else.
            if let Write::Renew { duration, .. } = sent.write {
                labels.since(&mut sent.at, Span::seconds(duration));
            }
        }
        if let Some(Loss::Taken { by } | Loss::Replaced { by: Some(by) }) = &mut self.loss {
            labels.id(by);
        }
    }

    fn is_hold(&self) -> bool {
        self.held.holder.is_some_and(|holder| holder.admin)
    }

    /// How long after one renewal was sent the next is due. The Lease's duration may be shorter than requested.
    fn every(&self) -> Span {
        self.terms.every_of(self.held.duration)
    }

    /// When something is sent next: a renewal, or the read of a hold.
    fn next_at(&self) -> BootInstant {
        if self.is_hold() {
            return self.look_at;
        }
        let early = self.every().as_micros() / 10 * i64::from(self.jitter) / 256;
        let ahead = Span::seconds(self.held.duration.min(self.terms.duration)).as_micros()
            - self.every().as_micros();
        self.deadline.plus(Span::micros(-(ahead + early)))
    }

    /// When a failed request is retried: sooner if less time is left, at a random instant in the second half of
    /// the pause.
    fn later(&self, clocks: Clocks) -> BootInstant {
        let longest = self.terms.pause_of(self.held.duration);
        let left = self.stop_at().since(clocks.boot).as_micros() / 16;
        let shortest = longest.min(Span::seconds(1));
        let pause = match self.must_check {
            // The work is stopped meanwhile.
            true => shortest,
            false => Span::micros(left).clamp(shortest, longest),
        };
        let half = pause.as_micros() / 2;
        clocks.boot.plus(Span::micros(
            pause.as_micros() - half * i64::from(self.jitter) / 256,
        ))
    }

    fn read_due(&mut self, check: bool) -> KeeperAction {
        self.in_flight = Some(InFlight::Read {
            known: self.held.version,
            check,
        });
        match check {
            true => KeeperAction::Check,
            false => KeeperAction::Read,
        }
    }

    /// The renewal to send: the unsettled one again, or a new one.
    fn renewal(&mut self, clocks: Clocks) -> Result<Sent, Loss> {
        if let Some(renewal) = self.sent {
            return Ok(renewal.sent);
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
        self.sent = Some(Renewal {
            sent,
            unknown: false,
            paused: false,
        });
        Ok(sent)
    }

    /// Whether `lease` is older than the known state. Versions are ordered, even if a Lease was deleted and
    /// created again.
    fn is_outdated(&self, lease: &Lease) -> bool {
        lease.version < self.held.version && !bugs::active(Bug::StaleWatchBelieved)
    }

    /// Uses a state of the Lease, unless it is older than the known one.
    fn observe(&mut self, seen: Option<&Lease>, clocks: Clocks) {
        if self.loss.is_some() && !bugs::active(Bug::RevivedAfterLoss) {
            return;
        }
        if seen.is_some_and(|lease| self.is_outdated(lease)) {
            return;
        }
        self.loss = self.lost(seen);
        let Some(lease) = seen.filter(|_| self.loss.is_none()) else {
            return;
        };
        let outcome = self.sent.map(|renewal| {
            (
                renewal,
                judge(&renewal.sent.write, Some(&renewal.sent.on), Some(lease)),
            )
        });
        match outcome {
            Some((renewal, WriteOutcome::Landed)) => self.landed(renewal, lease, clocks),
            Some((_, WriteOutcome::Failed | WriteOutcome::Ended)) | None => {
                self.sent = None;
                let ours = (self.held.renewed, self.held.duration);
                self.held = *lease;
                if ours != (lease.renewed, lease.duration) {
                    self.cut(clocks);
                }
            }
            Some((_, WriteOutcome::Unknown)) => {}
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
            (Some(held_state), Some(by)) if held_state != self.of => Some(Loss::Taken { by }),
            _ if lease.deleting => Some(Loss::Deleted),
            _ if lease.elected => Some(Loss::Elected),
            _ => None,
        }
    }

    fn landed(&mut self, renewal: Renewal, lease: &Lease, clocks: Clocks) {
        let Sent { write, at, .. } = renewal.sent;
        self.sent = None;
        self.must_read = false;
        self.held = *lease;
        self.deadline = believed(&write, at, lease, clocks);
        if renewal.paused && !bugs::active(Bug::JumpForgotten) {
            self.cut(clocks);
        }
    }

    /// Cuts the belief to what the Lease says, by the server's time: somebody else changed its times, or time
    /// passed that the boot clock did not count. A hold does not end with its times. While a check is due, the
    /// server's time is not known well enough; the check cuts the belief.
    fn cut(&mut self, clocks: Clocks) {
        if self.is_hold() || self.must_check {
            return;
        }
        let end = left_of(&self.held, clocks.server, self.terms.margin());
        self.deadline = self.deadline.min(clocks.boot.plus(end));
    }
}

/// Before every instant.
const BEGINNING: BootInstant = BootInstant::from_micros(i64::MIN);

/// Later than any deadline.
const NEVER: BootInstant = BootInstant::from_micros(i64::MAX);

/// Whether `lease` shows what `write`, a renewal, would have made of it.
fn has_landed_on(write: &Write, lease: &Lease) -> bool {
    matches!(*write, Write::Renew { of, at, .. }
        if lease.acquisition() == Some(of) && lease.renewed == Some(at))
}

#[cfg(test)]
mod tests;
