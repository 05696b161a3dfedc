//! Clients around one Lease, and a network that loses answers and delivers late.

use maintenance_lease::protocol::{
    Acquisition, Candidacy, Clocks, Decision, Expiry, Id, Instant, Keeper, Lease, Loss, Now,
    Outcome, Refusal, Span, Terms, Verb, Waiter, Write, deadline, decide, judge,
};

use crate::client::{Client, Contender, Flaw, Move, Role, Sent};
use crate::store::Store;

pub(crate) const CLIENTS: usize = 3;

/// Everything that is the case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time. Estimates of the server's time err from it.
    pub(crate) now: Instant,
    pub(crate) store: Store,
    pub(crate) clients: Vec<Client>,
    pub(crate) requests: Vec<Request>,
    /// What an administrator was last asked whether to break, and said yes.
    pub(crate) confirmed: Option<Acquisition>,
    /// How many locks may be broken yet.
    pub(crate) breaks: u8,
    /// How often machines may stand still yet.
    pub(crate) halts: u8,
    /// The first step that should never have been taken.
    pub(crate) flaw: Option<Flaw>,
}

/// How clients are set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) terms: Terms,
    pub(crate) expiry: Expiry,
    /// Clients enter what is theirs already, left over from before.
    pub(crate) reentry: bool,
    /// What is asked for and what is answered are two events, so that other things happen between.
    pub(crate) slow: bool,
}

impl Setting {
    /// How a client tries to take the Lease, as it has `seen` it.
    pub(crate) fn bid(&self, nonce: Id, seen: Option<&Lease>) -> Verb {
        let duration = self.terms.duration;
        match self.expiry {
            Expiry::ServerTime => Verb::Acquire {
                duration,
                nonce,
                reentry: self.reentry,
                free_only: false,
            },
            Expiry::OwnEyes => Verb::Elect(Candidacy {
                duration,
                nonce,
                unchanged: seen.map(|lease| lease.version),
            }),
        }
    }
}

/// A request between its client and the server, or its answer on the way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) who: usize,
    pub(crate) asked: Asked,
    /// Its client has not given it up.
    pub(crate) awaited: bool,
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    Read,
    Write {
        sent: Sent,
        /// The acquisition of another that it was confirmed to break.
        breaks: Option<Acquisition>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// What a read shows.
    Seen(Option<Lease>),
    /// The write landed, and this is the Lease now.
    Landed(Lease),
    /// The Lease is at another version.
    Conflict,
}

impl World {
    pub(crate) fn new(lease: Option<Lease>) -> Self {
        Self {
            now: Instant::from_micros(0),
            store: Store::with(lease),
            clients: (0..CLIENTS as u32).map(Client::new).collect(),
            requests: Vec::new(),
            confirmed: None,
            breaks: u8::MAX,
            halts: u8::MAX,
            flaw: None,
        }
    }

    /// An estimate of the server's time that errs by this.
    pub(crate) fn estimate(&self, earliest: Span, latest: Span) -> Now {
        Now {
            earliest: self.now + earliest,
            latest: self.now + latest,
        }
    }

    /// The clients whose work may be running, but for those whose lock was broken.
    pub(crate) fn believers(&self) -> impl Iterator<Item = usize> {
        self.clients
            .iter()
            .enumerate()
            .filter(|(_, client)| {
                let working = client.works_under();
                working.is_some() && working != client.excused()
            })
            .map(|(who, _)| who)
    }

    /// The guarantee: two clients never believe that they hold the node at the same time.
    pub(crate) fn keeps_the_guarantee(&self) -> bool {
        self.believers().count() <= 1
    }

    /// Whose lock was broken works on until what they last wrote ends, and no longer.
    pub(crate) fn nobody_overstays(&self) -> bool {
        self.clients.iter().all(|client| {
            let Some((of, until)) = client.broken else {
                return true;
            };
            client.boot <= until || client.works_under() != Some(of)
        })
    }

    /// Who declared that another took the Lease, released or deleted it, is right.
    pub(crate) fn no_loss_is_imagined(&self) -> bool {
        let standing = self.store.lease.and_then(|lease| lease.acquisition());
        self.clients.iter().all(|client| {
            client.keeper().is_none_or(|keeper| {
                matches!(keeper.loss(), None | Some(Loss::Expired))
                    || standing != Some(keeper.acquisition())
            })
        })
    }

    pub(crate) fn is_busy(&self, who: usize) -> bool {
        self.awaited(who).is_some()
    }

    pub(crate) fn awaited(&self, who: usize) -> Option<usize> {
        self.requests
            .iter()
            .position(|request| request.who == who && request.awaited)
    }

    /// Whether a client wants nothing, and awaits nothing.
    pub(crate) fn is_idle(&self, who: usize) -> bool {
        self.clients[who].role == Role::Idle && !self.is_busy(who)
    }

    fn clocks(&self, who: usize, server: Now) -> Clocks {
        Clocks {
            boot: self.clients[who].boot,
            server,
        }
    }

    /// Time passes, for all whose machines run.
    pub(crate) fn tick(&mut self, span: Span) {
        self.now = self.now + span;
        for client in self.clients.iter_mut().filter(|client| !client.halted) {
            client.boot = client.boot.plus(span);
        }
    }

    /// A client begins to wait for the Lease.
    pub(crate) fn want(&mut self, who: usize, server: Now, setting: &Setting) {
        let waiter = Waiter::new(setting.expiry, false);
        let waiter = match setting.reentry {
            true => waiter.or_own(self.clients[who].caller),
            false => waiter,
        };
        self.clients[who].role = Role::Waiting(Contender {
            waiter,
            open: None,
            jumped: false,
        });
        self.run(who, server, setting);
    }

    /// A client's machine stands still, and its boot clock with it.
    pub(crate) fn halt(&mut self, who: usize) {
        self.halts -= 1;
        self.clients[who].halted = true;
    }

    /// A client stops waiting; what it sent may land yet.
    pub(crate) fn give_up(&mut self, who: usize) {
        self.clients[who].role = Role::Idle;
        self.abandon(who);
    }

    /// A client is scheduled.
    pub(crate) fn run(&mut self, who: usize, server: Now, setting: &Setting) {
        let clocks = self.clocks(who, server);
        let busy = self.is_busy(who);
        let nonce = self.store.fresh_id();
        let next = self.input(who, |client| client.run(clocks, busy, (setting, nonce)));
        match next {
            Ok(Move::Nothing) => {}
            Ok(Move::Read) if setting.slow => self.send(who, Asked::Read),
            Ok(Move::Read) => self.look(who, self.store.lease, server, setting),
            Ok(Move::Write(sent)) => self.send(who, Asked::Write { sent, breaks: None }),
            Err(flaw) => self.flaw = self.flaw.or(Some(flaw)),
        }
    }

    /// A holder's work is over, and it gives the lease back.
    pub(crate) fn give_back(&mut self, who: usize) {
        if let Some(of) = self.clients[who].keeper().map(Keeper::acquisition) {
            self.clients[who].role = Role::Leaving(of);
            self.abandon(who);
        }
    }

    /// The work of a client whose lease was lost is over.
    pub(crate) fn stop(&mut self, who: usize) {
        self.clients[who].role = Role::Idle;
        self.abandon(who);
    }

    /// An administrator looks, is asked whether to break what stands there, and says yes.
    pub(crate) fn confirm(&mut self, seen: Option<&Lease>) {
        self.confirmed = seen.and_then(Lease::acquisition);
    }

    /// An administrator does this, on what is there now.
    pub(crate) fn command(
        &mut self,
        who: usize,
        verb: Verb,
        seen: Option<&Lease>,
        server: Now,
    ) -> Result<(), Refusal> {
        let clocks = self.clocks(who, server);
        let meant = self.confirmed.filter(|_| breaks(verb));
        let caller = self.clients[who].caller;
        let Decision::Write(write) = decide(verb, caller, seen, meant, server)? else {
            return Ok(());
        };
        if let Write::Release { of, .. } = write
            && self.clients[who].owns(of.holder)
        {
            self.clients[who].role = Role::Idle;
        }
        let sent = Sent {
            write,
            on: seen.copied(),
            at: clocks.boot,
        };
        self.send(
            who,
            Asked::Write {
                sent,
                breaks: meant,
            },
        );
        Ok(())
    }

    /// A request arrives: it is carried out, or conflicts.
    pub(crate) fn serve(&mut self, index: usize) {
        let request = self.requests[index];
        let answer = match request.asked {
            Asked::Read => Answer::Seen(self.store.lease),
            Asked::Write { sent, breaks } => {
                let before = self.store.lease.and_then(|lease| lease.acquisition());
                match self.store.lease {
                    _ if !self.store.land(&sent.write, sent.on.as_ref()) => Answer::Conflict,
                    _ => {
                        if breaks.is_some() && breaks == before {
                            self.break_lock(before);
                        }
                        let lease = self.store.lease.expect("something landed");
                        self.grant(request.who, &sent, &lease);
                        Answer::Landed(lease)
                    }
                }
            }
        };
        if request.awaited {
            self.requests[index].answer = Some(answer);
        } else {
            self.requests.remove(index);
        }
    }

    /// A request arrives, unless it has already.
    pub(crate) fn serve_once(&mut self, index: usize) {
        if self.requests[index].answer.is_none() {
            self.serve(index);
        }
    }

    /// The answer to a request arrives.
    pub(crate) fn answer(&mut self, index: usize, server: Now, setting: &Setting) {
        let request = self.requests.remove(index);
        let (who, terms) = (request.who, setting.terms);
        let clocks = self.clocks(who, server);
        match (request.asked, request.answer.expect("it was served")) {
            (_, Answer::Seen(lease)) => self.look(who, lease, server, setting),
            (Asked::Write { sent, .. }, Answer::Landed(lease)) => {
                self.input(who, |client| client.answered(&sent, &lease, clocks, terms));
            }
            (_, Answer::Landed(_) | Answer::Conflict) => {
                self.input(who, |client| client.conflicted(clocks));
            }
        }
    }

    /// The time limit of a client's request passes: no answer to it is heard any more.
    pub(crate) fn time_out(&mut self, who: usize, server: Now) {
        let Some(index) = self.awaited(who) else {
            return;
        };
        let clocks = self.clocks(who, server);
        let request = self.requests[index];
        self.abandon(who);
        self.input(who, |client| match request.asked {
            Asked::Read => client.unread(clocks),
            Asked::Write { sent, .. } => client.unanswered(&sent, clocks),
        });
    }

    /// A watch shows the newest event, or the one before it.
    pub(crate) fn watch(&mut self, who: usize, event: usize, server: Now) {
        let clocks = self.clocks(who, server);
        if let Some(event) = self.store.events[event] {
            self.input(who, |client| client.watched(&event, clocks));
        }
    }

    /// The Node goes, and its Lease with it.
    pub(crate) fn delete(&mut self) {
        self.breaks -= 1;
        self.break_lock(self.store.lease.and_then(|lease| lease.acquisition()));
        self.store.delete();
    }

    fn look(&mut self, who: usize, lease: Option<Lease>, server: Now, setting: &Setting) {
        let clocks = self.clocks(who, server);
        let terms = setting.terms;
        let open = self.open(who);
        let next = self.input(who, |client| client.read(lease.as_ref(), clocks, terms));
        if let Some(open) = open
            && self.clients[who].is_waiting()
            && self.open(who).is_none()
            && self.may_land(&open)
        {
            self.flaw = Some(Flaw::Misjudged);
        }
        if let Some(sent) = next {
            self.send(who, Asked::Write { sent, breaks: None });
        }
    }

    fn open(&self, who: usize) -> Option<Sent> {
        match &self.clients[who].role {
            Role::Waiting(contender) => contender.open,
            _ => None,
        }
    }

    fn may_land(&self, open: &Sent) -> bool {
        self.store.is_at(open.on.as_ref())
            && self.requests.iter().any(|request| {
                matches!(request.asked, Asked::Write { sent, .. } if sent.write == open.write)
                    && request.answer.is_none()
            })
    }

    /// Hands something to a client, and sees to what must hold at every such step.
    fn input<R>(&mut self, who: usize, hand: impl FnOnce(&mut Client) -> R) -> R {
        let client = &mut self.clients[who];
        let is_lost = |client: &Client| client.keeper().map(|keeper| keeper.loss().is_some());
        let before = is_lost(client);
        let result = hand(client);
        if before == Some(true) && is_lost(client) == Some(false) {
            self.flaw = Some(Flaw::Revived);
        }
        client.wake_work();
        result
    }

    fn send(&mut self, who: usize, asked: Asked) {
        self.requests.push(Request {
            who,
            asked,
            awaited: true,
            answer: None,
        });
    }

    /// Whatever a client has under way, it listens to no answer.
    fn abandon(&mut self, who: usize) {
        for request in &mut self.requests {
            request.awaited &= request.who != who;
        }
        self.requests.retain(|request| {
            request.awaited || (request.asked != Asked::Read && request.answer.is_none())
        });
    }

    fn grant(&mut self, who: usize, sent: &Sent, lease: &Lease) {
        if let Write::Acquire { .. } | Write::Renew { .. } = sent.write {
            let client = &mut self.clients[who];
            client.granted = client.granted.max(Some(deadline(sent.at, lease.duration)));
        }
    }

    /// The lock of an acquisition was broken: who holds it may act on it until what they wrote
    /// ends.
    fn break_lock(&mut self, of: Option<Acquisition>) {
        let Some(of) = of else { return };
        for client in &mut self.clients {
            // Of two, only the one that it works under counts.
            let excused =
                client.works_under().is_some() && client.works_under() == client.excused();
            if client.owns(of.holder) && !excused {
                let believed = client
                    .keeper()
                    .filter(|keeper| keeper.acquisition() == of)
                    .map(Keeper::deadline);
                client.broken = believed.max(client.granted).map(|until| (of, until));
            }
        }
    }
}

/// Whether a verb may end what another holds: each such needs a confirmation.
pub(crate) fn breaks(verb: Verb) -> bool {
    match verb {
        Verb::Acquire { .. } | Verb::Elect(_) | Verb::Renew { .. } | Verb::Release => false,
        Verb::ForceRelease => true,
        Verb::Hold { take_over, .. } => take_over,
        Verb::Unhold { another } => another,
    }
}

/// Whether a write has landed, as far as anybody can tell from the Lease.
pub(crate) fn landed(sent: &Sent, lease: Option<&Lease>) -> bool {
    judge(&sent.write, sent.on.as_ref(), lease) == Outcome::Landed
}

/// A holder that is no administrator.
pub(crate) fn is_lease_of(lease: &Lease, id: Id) -> bool {
    lease.holder.is_some_and(|holder| holder.id == id)
}
