//! One change of a Lease: read, decide, write, and find out whether the write took effect.
//!
//! A [`WriteLoop`] is small state that changes with each event; each event returns what to do next. Its driver
//! does that, one request at a time, and waits between attempts. A write has three outcomes: it landed, it
//! failed, or that is unknown. An unknown write is sent again on the same version, with the present time and
//! the same nonce: at most one of the copies lands.

use std::mem::discriminant;

use super::clocks::{BootInstant, Clocks};
use super::deadline::{believed, leaves_enough, left_of};
use super::decision::{Caller, Candidacy, Decision, Refusal, Verb, Write};
use super::lease::{Acquisition, Lease, Version};
use super::names::Id;
use super::relabel::Relabel;
use super::state::{State, state};
use super::time::{SKEW_BUDGET, Span};
use super::transition::decide;
use super::unknown_write::{WriteOutcome, judge};
use crate::bugs::{self, Bug};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Read the Lease.
    Read,
    /// Send this, as a compare-and-swap on the version that it was decided on.
    Send(Attempt),
    /// It is done.
    Done(Finished),
    /// It took effect, and somebody ended that acquisition since. It is not repeated.
    Ended,
    /// The server stored other fields than were sent, for example because of an admission webhook.
    Altered,
    /// The rules refuse it.
    Refused(Refusal),
}

/// A write to send, or one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The fields.
    pub write: Write,
    /// What it was decided on, and is a compare-and-swap on; `None`: it creates the Lease.
    pub on: Option<Lease>,
    /// The boot clock before it was sent.
    pub at: BootInstant,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finished {
    /// This write took effect.
    Landed {
        /// The write that took effect. It may have been renewed since.
        write: Write,
        /// The last instant at which its holder may believe that it holds.
        deadline: BootInstant,
    },
    /// Nothing was written: nobody holds it.
    AlreadyFree,
    /// Nothing was written: the caller's own hold covers it.
    AlreadyHeld,
}

/// A change in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteLoop {
    verb: Verb,
    /// How much sooner the belief ends if it is bounded by the server's time.
    margin: Span,
    caller: Caller,
    /// The intended acquisition, once one is named, confirmed or first read.
    meant: Option<Acquisition>,
    begun: bool,
    /// The write that was sent and is not settled.
    sent: Option<Copies>,
    /// The requested write took effect, but too long ago: the lock is being renewed.
    landed: Option<Write>,
    /// The nonce of an acquisition that took effect and that the caller does not know about yet.
    unreported: Option<Id>,
    /// A pause was suspected: only reads that are sent from now on count.
    must_check: bool,
    /// The Lease was read again only to know the server's time better.
    looked: bool,
    /// The last read showed an earlier state than the write was decided on.
    went_back: bool,
}

/// The copies of one write on one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Copies {
    first: Attempt,
    last: Attempt,
    /// One of them may have been carried out, or still may be.
    unknown: bool,
    /// A pause was suspected since the first was sent: the boot clock may not have counted all the time.
    paused: bool,
    /// The uid of the Lease on which a write took effect, as an answer has shown.
    landed_on: Option<Id>,
}

impl WriteLoop {
    /// A change by `verb`, for the acquisition `meant` if the caller named or confirmed one.
    #[must_use]
    pub const fn new(verb: Verb, caller: Caller, meant: Option<Acquisition>) -> Self {
        let margin = match verb {
            // Other candidates rely on their own clocks.
            Verb::Elect(_) => SKEW_BUDGET,
            _ => Span::ZERO,
        };
        Self {
            verb,
            margin,
            caller,
            meant,
            begun: false,
            sent: None,
            landed: None,
            unreported: None,
            must_check: false,
            looked: false,
            went_back: false,
        }
    }

    /// The write that was sent last, while it is not settled.
    #[must_use]
    pub fn unsettled(&self) -> Option<Attempt> {
        self.sent.map(|copies| copies.last)
    }

    /// Whether the write that is to be sent is a copy of one that may still take effect.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.sent.is_some_and(|copies| copies.unknown)
    }

    /// Whether a write may have been carried out, or still may be.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.unreported.is_some() || self.is_copy()
    }

    /// Whether there is, or may still be, a lock that the caller does not know about.
    #[must_use]
    pub const fn is_unreported(&self) -> bool {
        self.unreported.is_some()
    }

    /// Whether the requested write took effect and is being renewed, because it took too long.
    #[must_use]
    pub const fn has_landed(&self) -> bool {
        self.landed.is_some()
    }

    /// The outcome of the last write, as `seen` shows; [`WriteOutcome::Failed`] also if nothing is unsettled.
    #[must_use]
    pub fn outcome(&self, seen: Option<&Lease>) -> WriteOutcome {
        self.sent
            .map_or(WriteOutcome::Failed, |copies| copies.judge(seen).0)
    }

    /// Whether it is in doubt: only a read that is sent from now on counts.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        self.must_check
    }

    /// The Lease was read (`None`: there is none). A write from a new decision is marked with `nonce`.
    pub fn read(&mut self, seen: Option<&Lease>, nonce: Id, clocks: Clocks) -> Step {
        if self.must_check && !clocks.server.bounded {
            return Step::Read;
        }
        self.must_check = false;
        if let Some(copies) = self.sent {
            let went_back = copies.follows(seen);
            if went_back && !std::mem::replace(&mut self.went_back, true) {
                return Step::Read;
            }
            self.went_back = false;
            match copies.judge(seen) {
                // The same version was seen twice: etcd was restored, and the version that the write is based on is gone.
                _ if went_back => self.sent = None,
                (WriteOutcome::Landed, attempt) => {
                    if let Some(lease) = seen {
                        return self.landed(copies, attempt, lease, nonce, clocks);
                    }
                    self.sent = None;
                    return Step::Done(Finished::Landed {
                        write: attempt.write,
                        deadline: clocks.boot,
                    });
                }
                (WriteOutcome::Ended, _) => {
                    self.sent = None;
                    return Step::Ended;
                }
                (WriteOutcome::Unknown, _) => return self.send_again(copies, clocks),
                (WriteOutcome::Failed, _) => self.sent = None,
            }
        }
        let ended = seen.and_then(|lease| lease.ended);
        if self.unreported.is_some() && self.unreported == ended {
            return Step::Ended;
        }
        if !self.begun && self.meant.is_none() && pins_first_read(self.verb) {
            self.meant = seen.and_then(Lease::acquisition);
        }
        if let Verb::Extend {
            end: end @ None, ..
        } = &mut self.verb
            && !bugs::active(Bug::TimeAddedAgain)
        {
            *end = seen.map(|lease| lease.end().unwrap_or(clocks.server.latest));
        }
        self.begun = true;
        match decide(
            self.verb.with_nonce(nonce),
            self.caller,
            seen,
            self.meant,
            clocks.server,
        ) {
            Ok(Decision::Write(write)) => {
                if self.needs_server_time(&write, clocks) {
                    return Step::Read;
                }
                let attempt = Attempt {
                    write,
                    on: seen.copied(),
                    at: clocks.boot,
                };
                self.sent = Some(Copies {
                    first: attempt,
                    last: attempt,
                    unknown: false,
                    paused: false,
                    landed_on: None,
                });
                Step::Send(attempt)
            }
            // No write was sent that would detect it: the Lease may have been read before a pause.
            Ok(Decision::AlreadyFree | Decision::AlreadyHeld) if !clocks.server.bounded => {
                Step::Read
            }
            Ok(Decision::AlreadyFree) => Step::Done(Finished::AlreadyFree),
            Ok(Decision::AlreadyHeld) => Step::Done(Finished::AlreadyHeld),
            // It took effect and was replaced since.
            Err(_) if self.landed.is_some() => Step::Ended,
            Err(refusal) => Step::Refused(refusal),
        }
    }

    /// The server answered the write with the current Lease.
    pub fn answered(&mut self, lease: &Lease, nonce: Id, clocks: Clocks) -> Step {
        let Some(copies) = self.sent else {
            return Step::Read;
        };
        let attempt = copies.last;
        // If a write changes nothing, the server answers with the existing version.
        let after = Lease {
            version: lease.version.max(version_after(attempt.on.as_ref())),
            ..*lease
        };
        if self.must_check {
            // It took effect before the pause, perhaps long before. A read shows whether it is still there.
            self.unanswered();
            let landed =
                judge(&attempt.write, attempt.on.as_ref(), Some(&after)) == WriteOutcome::Landed;
            if let Some(copies) = self.sent.as_mut().filter(|_| landed) {
                copies.landed_on = Some(lease.uid);
                self.unreported = nonce_of(&attempt.write).or(self.unreported);
            }
            return Step::Read;
        }
        match judge(&attempt.write, attempt.on.as_ref(), Some(&after)) {
            WriteOutcome::Landed => self.landed(copies, attempt, lease, nonce, clocks),
            WriteOutcome::Ended | WriteOutcome::Failed | WriteOutcome::Unknown => {
                self.unanswered();
                Step::Altered
            }
        }
    }

    /// The write was refused: the Lease has another version, is gone, or exists already. This attempt
    /// failed. An earlier attempt, by us or repeated by a proxy, may have taken effect; the next read
    /// shows it. For a release that makes no difference: the lock is free either way.
    pub fn conflicted(&mut self) {
        let leaves_no_trace =
            |copies: &Copies| !copies.unknown && matches!(copies.last.write, Write::Release { .. });
        if self.sent.as_ref().is_some_and(leaves_no_trace)
            || bugs::active(Bug::OwnNonceNotRecognised)
        {
            self.sent = None;
        }
    }

    /// The write was not carried out, for another cause.
    pub fn declined(&mut self) {
        self.sent = self.sent.filter(|copies| copies.unknown);
    }

    /// No answer came, or none that says whether the write was carried out.
    pub fn unanswered(&mut self) {
        if let Some(copies) = &mut self.sent {
            copies.unknown = true;
        }
    }

    /// The machine may have been paused, and the boot clock may not have counted all the time. The request
    /// under way is abandoned.
    pub fn require_check(&mut self) {
        if bugs::active(Bug::WorkBegunInDoubt) {
            return;
        }
        self.must_check = true;
        if let Some(copies) = &mut self.sent {
            copies.unknown = true;
            copies.paused = true;
        }
    }

    /// Applies a renaming to everything in it.
    #[doc(hidden)]
    pub fn relabel(&mut self, labels: &mut impl Relabel) {
        labels.id(&mut self.caller.identity);
        labels.id(&mut self.caller.hold_identity);
        if let Verb::Elect(Candidacy {
            unchanged: Some(version),
            ..
        }) = &mut self.verb
        {
            labels.version(version);
        }
        if let Some(meant) = &mut self.meant {
            labels.acquisition(meant);
        }
        if let Some(unreported) = &mut self.unreported {
            labels.id(unreported);
        }
        if let Some(write) = &mut self.landed {
            labels.write(write);
        }
        if let Some(Copies {
            first,
            last,
            landed_on,
            ..
        }) = &mut self.sent
        {
            if let Some(uid) = landed_on {
                labels.id(uid);
            }
            for attempt in [first, last] {
                labels.write(&mut attempt.write);
                if let Some(on) = &mut attempt.on {
                    labels.lease(on);
                }
                labels.since(&mut attempt.at, length(&attempt.write));
            }
        }
    }

    /// Sends an unknown write again, with the present time. If that would be another kind of write by now, it
    /// is sent as before: a copy of a renewal must not be an acquisition.
    fn send_again(&mut self, copies: Copies, clocks: Clocks) -> Step {
        let Attempt { write, on, .. } = copies.last;
        let nonce = nonce_of(&copies.first.write).unwrap_or(NO_NONCE);
        let verb = self.verb.with_nonce(nonce);
        let write = match decide(verb, self.caller, on.as_ref(), self.meant, clocks.server) {
            Ok(Decision::Write(again)) if discriminant(&again) == discriminant(&write) => again,
            _ => write,
        };
        if self.needs_server_time(&write, clocks) {
            return Step::Read;
        }
        // The belief starts at the earliest of those that wrote the same time.
        let same_time = |earlier: &&Attempt| written_at(&earlier.write) == written_at(&write);
        let earlier = [&copies.first, &copies.last].into_iter().find(same_time);
        let last = Attempt {
            write,
            on,
            at: earlier.map_or(clocks.boot, |earlier| earlier.at),
        };
        self.sent = Some(Copies { last, ..copies });
        Step::Send(last)
    }

    /// Whether the server's time should be known better before `write`, which begins or extends a lock, is
    /// sent. One more answer may be enough; if not, its latest bound is safe to write.
    fn needs_server_time(&mut self, write: &Write, clocks: Clocks) -> bool {
        let now = clocks.server;
        if matches!(write, Write::Release { .. }) || now.is_narrow() || (now.bounded && self.looked)
        {
            return false;
        }
        self.looked = true;
        true
    }

    /// `attempt` took effect, as `lease` shows.
    fn landed(
        &mut self,
        copies: Copies,
        attempt: Attempt,
        lease: &Lease,
        nonce: Id,
        clocks: Clocks,
    ) -> Step {
        self.sent = None;
        let write = self.landed.unwrap_or(attempt.write);
        let deadline = believed(&attempt.write, attempt.at, lease, clocks);
        let is_hold = lease.holder.is_some_and(|holder| holder.admin);
        if is_hold || matches!(write, Write::Release { .. }) || bugs::active(Bug::StaleSuccess) {
            return Step::Done(Finished::Landed { write, deadline });
        }
        let deadline = match copies.paused {
            true => deadline.min(clocks.boot.plus(left_of(lease, clocks.server, self.margin))),
            false => deadline,
        };
        if leaves_enough(deadline, lease.duration, clocks.boot) {
            return Step::Done(Finished::Landed { write, deadline });
        }
        // Too little time is left: if the lease has ended, acquire it again; otherwise renew it.
        self.unreported = nonce_of(&write).or(self.unreported);
        let is_over = matches!(state(Some(lease), clocks.server), State::Expired { .. });
        if !is_over || !matches!(self.verb, Verb::Acquire { .. }) {
            self.landed = Some(write);
            self.meant = lease.acquisition();
            if !matches!(self.verb, Verb::Extend { .. }) {
                self.verb = Verb::Renew {
                    duration: requested_duration(&write),
                };
            }
        }
        self.read(Some(lease), nonce, clocks)
    }
}

impl Copies {
    /// Whether they were based on a later state of the Lease than `seen`.
    fn follows(&self, seen: Option<&Lease>) -> bool {
        let on = self.last.on.as_ref();
        on.zip(seen)
            .is_some_and(|(on, seen)| on.version > seen.version)
    }

    /// The outcome, and which copy landed: the belief starts at the copy whose time the Lease has, else at the
    /// first.
    fn judge(&self, seen: Option<&Lease>) -> (WriteOutcome, Attempt) {
        let is_gone = |uid: Id| seen.is_none_or(|lease| lease.uid != uid);
        if self.landed_on.is_some_and(is_gone) && matches!(self.last.write, Write::Acquire { .. }) {
            return (WriteOutcome::Ended, self.last);
        }
        let renewed = seen.and_then(|lease| lease.renewed);
        let is_last = written_at(&self.last.write).is_some_and(|at| Some(at) == renewed);
        let attempt = match is_last {
            true => self.last,
            false => self.first,
        };
        (judge(&attempt.write, attempt.on.as_ref(), seen), attempt)
    }
}

/// A verb is for the acquisition that is read first. One that ends another's lock is for the confirmed
/// acquisition; a read can't replace a confirmation.
fn pins_first_read(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Renew { .. } | Verb::Extend { .. } | Verb::Release | Verb::Unhold { another: false }
    )
}

/// A nonce for writes that have none.
const NO_NONCE: Id = Id(u32::MAX);

fn written_at(write: &Write) -> Option<super::time::Instant> {
    match *write {
        Write::Acquire { at, .. } | Write::Renew { at, .. } => Some(at),
        Write::Release { .. } => None,
    }
}

fn nonce_of(write: &Write) -> Option<Id> {
    match *write {
        Write::Acquire { nonce, .. } => Some(nonce),
        Write::Renew { .. } | Write::Release { .. } => None,
    }
}

fn requested_duration(write: &Write) -> Option<u32> {
    match *write {
        Write::Acquire { duration, .. } | Write::Renew { duration, .. } => Some(duration),
        Write::Release { .. } => None,
    }
}

fn length(write: &Write) -> Span {
    requested_duration(write).map_or(Span::ZERO, Span::seconds)
}

/// A version later than that of `lease`.
fn version_after(lease: Option<&Lease>) -> Version {
    lease.map_or(Version(0), |lease| Version(lease.version.0 + 1))
}

#[cfg(test)]
mod tests;
