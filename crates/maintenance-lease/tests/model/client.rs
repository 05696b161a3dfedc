//! One client: intents, answers and reads go in, writes come out.

use maintenance_lease::protocol::{
    Acquisition, BootInstant, Caller, Decision, Id, Lease, Now, Outcome, Refusal, Verb, Write,
    deadline, decide, judge,
};

use crate::store::FIRST_ADMIN;

/// What a client's clocks show when it decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// Read first.
    pub(crate) boot: BootInstant,
    /// Its estimate of the server's time.
    pub(crate) server: Now,
}

/// A person or a program with one identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) caller: Caller,
    /// The last instant at which it may act as the holder.
    pub(crate) belief: Option<BootInstant>,
    /// The last write, while its answer is awaited.
    pub(crate) unanswered: Option<Sent>,
}

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) write: Write,
    /// What it was decided on, and is a compare-and-swap on.
    pub(crate) on: Option<Lease>,
    /// The boot clock before it was sent.
    pub(crate) at: BootInstant,
}

impl Client {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            caller: Caller {
                identity: Id(number),
                hold_identity: Id(FIRST_ADMIN + number),
            },
            belief: None,
            unanswered: None,
        }
    }

    /// Whether a Lease that `holder` holds is this client's own.
    pub(crate) fn owns(&self, holder: Id) -> bool {
        [self.caller.identity, self.caller.hold_identity].contains(&holder)
    }

    pub(crate) fn believes(&self, boot: BootInstant) -> bool {
        self.belief.is_some_and(|until| boot <= until)
    }

    /// Decides on what was `seen`, and says what to send, if anything.
    ///
    /// Whoever gives their own back has stopped before that, and forgets earlier writes: an answer
    /// that comes now must not revive the belief.
    pub(crate) fn want(
        &mut self,
        verb: Verb,
        seen: Option<&Lease>,
        meant: Option<Acquisition>,
        clocks: Clocks,
    ) -> Result<Option<Sent>, Refusal> {
        let Decision::Write(write) = decide(verb, self.caller, seen, meant, clocks.server)? else {
            return Ok(None);
        };
        if let Write::Release { of, .. } = write
            && self.owns(of.holder)
        {
            self.belief = None;
        }
        let sent = Sent {
            write,
            on: seen.copied(),
            at: clocks.boot,
        };
        self.unanswered = Some(sent);
        Ok(Some(sent))
    }

    /// The server's answer to `sent`: it landed, and `lease` is the Lease now.
    pub(crate) fn hear(&mut self, sent: &Sent, lease: &Lease) {
        if self.unanswered == Some(*sent) {
            self.landed(*sent, lease);
        }
    }

    /// Another read, to learn what became of the unanswered write.
    pub(crate) fn read(&mut self, seen: Option<&Lease>) {
        let Some(sent) = self.unanswered else {
            return;
        };
        match (judge(&sent.write, sent.on.as_ref(), seen), seen) {
            (Outcome::Landed, Some(lease)) => self.landed(sent, lease),
            (Outcome::Landed, None) => unreachable!("no write makes a Lease go"),
            (Outcome::Failed, _) => self.unanswered = None,
            (Outcome::Unsettled, _) => {}
        }
    }

    fn landed(&mut self, sent: Sent, lease: &Lease) {
        self.unanswered = None;
        if let Write::Acquire { .. } | Write::Renew { .. } = sent.write {
            self.belief = self.belief.max(Some(deadline(sent.at, lease.duration)));
        }
    }
}
