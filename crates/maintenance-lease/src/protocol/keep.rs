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
use super::terms::Terms;
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
            .plus(Span::micros(self.terms.stop.as_micros().saturating_neg()))
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
            return Due::Wait(match hanging {
                // A planted mistake would else go round at one instant for ever.
                true => self.stop_at().max(clocks.boot.plus(Span::seconds(1))),
                false => self.stop_at(),
            });
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

    /// The Lease was read (`None`: there is none). What is older than what a watch has shown
    /// meanwhile says nothing: it is read again.
    pub fn read(&mut self, seen: Option<&Lease>, clocks: Clocks) {
        if seen.is_some_and(|lease| self.is_outdated(lease)) {
            return self.unread(clocks);
        }
        self.busy = false;
        let checked = self.next == Next::Checking;
        if self.next != Next::Check {
            self.next = Next::Renew;
        }
        self.observe(seen, clocks);
        if self.is_hold() {
            self.not_before = clocks.boot.plus(self.terms.every);
        }
        if checked {
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
        if !self.is_outdated(lease) {
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

    /// What stood there after the Lease went: whether it was made again, and for whom.
    pub fn stands_instead(&mut self, lease: &Lease) {
        if self.loss == Some(Loss::Deleted) && lease.uid != self.of.uid {
            self.loss = self.lost(Some(lease));
        }
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

    /// Whether `lease` is older than what is known. Versions have an order, also where a Lease was
    /// deleted and made again; only an etcd that was restored from a backup counts on from a lower
    /// one. Then nothing that is read counts any more, and the acquisition runs out.
    fn is_outdated(&self, lease: &Lease) -> bool {
        lease.version < self.held.version && !bugs::active(Bug::StaleWatchBelieved)
    }

    /// Takes in a state of the Lease, unless it is older than what is known.
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
    /// times, or time passed that the boot clock did not count. A hold does not end with its times.
    fn cut(&mut self, clocks: Clocks) {
        if self.is_hold() {
            return;
        }
        let left = match self.held.end() {
            Some(end) => end - self.terms.margin() - clocks.server.latest,
            None => Span::ZERO,
        };
        self.deadline = self.deadline.min(clocks.boot.plus(left));
    }
}

/// Later than any deadline.
const NEVER: BootInstant = BootInstant::from_micros(i64::MAX);

/// Whether `lease` shows what `write`, a renewal, would have made of it.
fn lands_on(write: &Write, lease: &Lease) -> bool {
    matches!(*write, Write::Renew { of, at, .. }
        if lease.acquisition() == Some(of) && lease.renewed == Some(at))
}

#[cfg(test)]
mod tests;
