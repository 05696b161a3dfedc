//! Clients around one Lease, and a network that loses answers and delivers late.

use maintenance_lease::protocol::transition::HOLD_SECONDS;
use maintenance_lease::protocol::{
    Acquisition, Attempt, Candidacy, Expiry, Id, Instant, Keeper, Lease, Loss, Now, Span, Terms,
    Verb, Waiter, Write, WriteLoop, WriteOutcome, deadline, judge,
};

use crate::client::{Changing, Client, Contender, Knowledge, Move, Role, StepContext, Violation};
use crate::store::{NO_ID, Store};

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
    /// How many answers may be another's than the server's yet.
    pub(crate) foreign: u8,
    /// The first step that should never have been taken.
    pub(crate) violation: Option<Violation>,
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
    pub(crate) fn bid(&self, seen: Option<&Lease>) -> Verb {
        // Every event marks what it decides.
        let nonce = NO_ID;
        let duration = self.terms.duration;
        match self.expiry {
            Expiry::ServerTime => Verb::Acquire {
                duration,
                nonce,
                reentry: self.reentry,
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
    pub(crate) kind: RequestKind,
    /// Its client has not given it up.
    pub(crate) awaited: bool,
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    Read,
    Write {
        sent: Attempt,
        /// The acquisition of another that it was confirmed to break.
        breaks: Option<Acquisition>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// What a read shows.
    NodeAndLease(Option<Lease>),
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
            foreign: u8::MAX,
            violation: None,
        }
    }

    /// An estimate of the server's time that errs by this.
    pub(crate) fn estimate(&self, earliest: Span, latest: Span) -> Now {
        Now::between(self.now + earliest, self.now + latest)
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

    /// Nobody works after a standstill before having read that the Lease is still their own.
    pub(crate) fn nobody_works_in_doubt(&self) -> bool {
        self.clients
            .iter()
            .all(|client| client.knowledge == Knowledge::Lease || client.works_under().is_none())
    }

    /// Who declared that another took the Lease, released or deleted it, is right.
    pub(crate) fn no_loss_is_imagined(&self) -> bool {
        let held_state = self.store.lease.and_then(|lease| lease.acquisition());
        self.clients.iter().all(|client| {
            client.keeper().is_none_or(|keeper| {
                matches!(keeper.loss(), None | Some(Loss::Expired))
                    || held_state != Some(keeper.acquisition())
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

    /// Time passes, for all whose machines run.
    pub(crate) fn tick(&mut self, span: Span) {
        self.now = self.now + span;
        for client in self.clients.iter_mut().filter(|client| !client.halted) {
            client.boot = client.boot.plus(span);
        }
    }

    /// A client begins to wait for the Lease.
    pub(crate) fn want(&mut self, who: usize, server: Now, setting: &Setting) {
        let waiter = Waiter::new(setting.expiry);
        let waiter = match setting.reentry {
            true => waiter.or_own(self.clients[who].caller),
            false => waiter,
        };
        self.clients[who].becomes(Role::Waiting(Contender::new(waiter)));
        self.run(who, server, setting);
    }

    /// A client's machine stands still, and its boot clock with it.
    pub(crate) fn halt(&mut self, who: usize) {
        self.halts -= 1;
        self.clients[who].halted = true;
    }

    /// A client's machine goes on. What it awaited it listens to no longer.
    pub(crate) fn resume(&mut self, who: usize) {
        self.input(who, Client::resume);
        self.abandon(who);
    }

    /// A client's machine goes on, and an answer to what it sent before is there.
    pub(crate) fn resume_to(&mut self, index: usize, server: Now, setting: &Setting) {
        let request = self.requests[index];
        self.input(request.who, Client::resume);
        self.requests.remove(index);
        self.hear(request, server, setting);
        self.abandon(request.who);
    }

    /// A client ends what it is at; what it sent may land yet.
    pub(crate) fn give_up(&mut self, who: usize) {
        self.clients[who].becomes(Role::Idle);
        self.abandon(who);
    }

    /// A client is scheduled.
    pub(crate) fn run(&mut self, who: usize, server: Now, setting: &Setting) {
        let next = self.scheduled(who, server, setting);
        self.act(who, next, server, setting);
    }

    /// A client is scheduled, and reads something that is not of the server. Says whether it did read.
    pub(crate) fn misread(&mut self, who: usize, server: Now, setting: &Setting) -> bool {
        let next = self.scheduled(who, server, setting);
        if let Move::Check = next {
            self.abandon(who);
        }
        self.foreign -= 1;
        let clocks = self.clients[who].clocks(server);
        self.input(who, |client| client.unread(clocks));
        matches!(next, Move::Read | Move::Check)
    }

    fn scheduled(&mut self, who: usize, server: Now, setting: &Setting) -> Move {
        let busy = self.is_busy(who);
        self.hand(who, server, setting, |client, context| {
            client.run(busy, context)
        })
    }

    /// What a client does is carried out.
    fn act(&mut self, who: usize, next: Move, server: Now, setting: &Setting) {
        match next {
            Move::Nothing => {}
            Move::Write(sent) => self.write(who, sent),
            Move::Check => {
                self.abandon(who);
                self.act(who, Move::Read, server, setting);
            }
            Move::Read if setting.slow => self.send(who, RequestKind::Read),
            Move::Read => {
                self.clients[who].learns(Knowledge::Lease);
                self.look(who, self.store.lease, server, setting);
            }
        }
    }

    /// A holder's work is over, and it gives the lease back.
    pub(crate) fn release(&mut self, who: usize) {
        let client = &mut self.clients[who];
        if let Some(of) = client.keeper().map(Keeper::acquisition) {
            client.becomes(Role::Changing(Changing {
                steps: WriteLoop::new(Verb::Release, client.caller, Some(of)),
                breaks: None,
            }));
            self.abandon(who);
        }
    }

    /// The work of a client whose lease was lost is over.
    pub(crate) fn stop(&mut self, who: usize) {
        self.give_up(who);
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
        setting: &Setting,
    ) {
        let breaks = self.confirmed.filter(|_| breaks(verb));
        let changing = Changing {
            steps: WriteLoop::new(verb, self.clients[who].caller, breaks),
            breaks,
        };
        let next = self.hand(who, server, setting, |client, context| {
            client.becomes(Role::Idle);
            client.change(changing, seen, context)
        });
        self.act(who, next, server, setting);
    }

    /// A request arrives: it is carried out, or conflicts.
    pub(crate) fn serve(&mut self, index: usize) {
        let request = self.requests[index];
        let answer = match request.kind {
            RequestKind::Read => Answer::NodeAndLease(self.store.lease),
            RequestKind::Write { sent, breaks } => {
                let before = self.store.lease.and_then(|lease| lease.acquisition());
                match self.store.lease {
                    _ if !self.store.land(&sent.write, sent.on.as_ref()) => Answer::Conflict,
                    _ => {
                        if breaks.is_some() && breaks == before {
                            self.break_lock(before);
                        }
                        let lease = self.store.lease.expect("something landed");
                        self.landed(request.who, &sent, &lease);
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
        self.clients[request.who].learns(match request.answer {
            Some(Answer::NodeAndLease(_) | Answer::Landed(_)) => Knowledge::Lease,
            Some(Answer::Conflict) | None => Knowledge::ServerTime,
        });
        self.hear(request, server, setting);
    }

    /// Whether this is a write that would be carried out if it arrived now.
    pub(crate) fn may_be_carried_out(&self, index: usize) -> bool {
        let request = &self.requests[index];
        request.answer.is_none()
            && matches!(request.kind, RequestKind::Write { sent, .. } if self.store.is_at(sent.on.as_ref()))
    }

    /// What a client sent is carried out, and something on the way that sends it again tells of the
    /// second time only.
    pub(crate) fn serve_twice(&mut self, index: usize) {
        self.foreign -= 1;
        self.serve(index);
        self.requests[index].answer = Some(Answer::Conflict);
    }

    /// Something that is not the server answers in its place, without a date; the request may arrive yet.
    pub(crate) fn answer_falsely(&mut self, index: usize, server: Now) {
        self.foreign -= 1;
        let who = self.requests[index].who;
        self.time_out(who, server);
    }

    fn hear(&mut self, request: Request, server: Now, setting: &Setting) {
        let who = request.who;
        let clocks = self.clients[who].clocks(server);
        match request.answer.expect("it was served") {
            Answer::NodeAndLease(lease) => self.look(who, lease, server, setting),
            Answer::Landed(lease) => {
                let next = self.hand(who, server, setting, |client, context| {
                    client.answered(&lease, context)
                });
                self.act(who, next, server, setting);
            }
            Answer::Conflict => self.input(who, |client| client.conflicted(clocks)),
        }
    }

    /// The time limit of a client's request passes: no answer to it is heard any more.
    pub(crate) fn time_out(&mut self, who: usize, server: Now) {
        let Some(index) = self.awaited(who) else {
            return;
        };
        let clocks = self.clients[who].clocks(server);
        let request = self.requests[index];
        self.abandon(who);
        self.input(who, |client| match request.kind {
            RequestKind::Read => client.unread(clocks),
            RequestKind::Write { .. } => client.unanswered(clocks),
        });
    }

    /// A watch shows the newest event, or the one before it.
    pub(crate) fn watch(&mut self, who: usize, event: usize, server: Now, setting: &Setting) {
        if let Some(event) = self.store.events[event] {
            let next = self.hand(who, server, setting, |client, context| {
                client.watched(&event, context)
            });
            self.act(who, next, server, setting);
        }
    }

    /// The Node goes, and its Lease with it.
    pub(crate) fn delete(&mut self) {
        self.breaks -= 1;
        self.break_lock(self.store.lease.and_then(|lease| lease.acquisition()));
        self.store.delete();
    }

    fn look(&mut self, who: usize, lease: Option<Lease>, server: Now, setting: &Setting) {
        let next = self.hand(who, server, setting, |client, context| {
            client.read(lease.as_ref(), context)
        });
        self.act(who, next, server, setting);
    }

    /// Whether a write may be carried out yet.
    fn may_land(&self, open: &Attempt) -> bool {
        self.store.is_at(open.on.as_ref())
            && self.requests.iter().any(|request| {
                matches!(request.kind, RequestKind::Write { sent, .. } if is_copy(&sent, open))
                    && request.answer.is_none()
            })
    }

    /// Hands something to a client, which says what it does next.
    fn hand(
        &mut self,
        who: usize,
        server: Now,
        setting: &Setting,
        hand: impl FnOnce(&mut Client, StepContext<'_>) -> Result<Move, Violation>,
    ) -> Move {
        let context = StepContext {
            clocks: self.clients[who].clocks(server),
            nonce: self.store.fresh_id(),
            setting,
        };
        let next = self.input(who, |client| hand(client, context));
        next.unwrap_or_else(|violation| {
            self.violation = self.violation.or(Some(violation));
            Move::Nothing
        })
    }

    /// Hands something to a client, and sees to what must hold at every such step.
    fn input<R>(&mut self, who: usize, hand: impl FnOnce(&mut Client) -> R) -> R {
        let client = &mut self.clients[who];
        let is_lost = |client: &Client| client.keeper().map(|keeper| keeper.loss().is_some());
        let before = is_lost(client);
        let open: Vec<Attempt> = client.unsettled().collect();
        let result = hand(client);
        if before == Some(true) && is_lost(client) == Some(false) {
            self.violation = Some(Violation::Revived);
        }
        client.wake_work();
        let client = &self.clients[who];
        if client.waits_for_itself() {
            self.violation = self.violation.or(Some(Violation::Unrecognized));
        }
        let is_open = |open: &Attempt| client.unsettled().any(|sent| is_copy(&sent, open));
        let is_acquisition = |open: &&Attempt| matches!(open.write, Write::Acquire { .. });
        let settled = open
            .iter()
            .filter(is_acquisition)
            .filter(|open| !is_open(open));
        if client.is_waiting() && settled.into_iter().any(|open| self.may_land(open)) {
            self.violation = self.violation.or(Some(Violation::Misjudged));
        }
        result
    }

    fn write(&mut self, who: usize, mut sent: Attempt) {
        if let Write::Acquire { transitions, .. } = &mut sent.write
            && *transitions == LOST_COUNT
        {
            *transitions = next_transition(sent.on.as_ref());
        }
        let breaks = match &self.clients[who].role {
            Role::Changing(changing) => changing.breaks,
            Role::Idle | Role::Waiting(_) | Role::Holding(_) => None,
        };
        self.send(who, RequestKind::Write { sent, breaks });
    }

    fn send(&mut self, who: usize, kind: RequestKind) {
        self.requests.push(Request {
            who,
            kind,
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
            request.awaited || (request.kind != RequestKind::Read && request.answer.is_none())
        });
    }

    /// The server carried out a request; its client may not get the answer.
    fn landed(&mut self, who: usize, sent: &Attempt, lease: &Lease) {
        let client = &mut self.clients[who];
        if let Write::Acquire { nonce, .. } = sent.write
            && client.unsettled().any(|open| is_copy(&open, sent))
        {
            client.landed = Some(nonce);
        }
        if let Write::Acquire { .. } | Write::Renew { .. } = sent.write {
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
                // It may have just read that its own hold stands there, which has no end.
                let enters = client.is_waiting() && of.holder == client.caller.hold_identity;
                let entered = enters.then(|| deadline(client.boot, HOLD_SECONDS));
                let until = believed.max(client.granted).max(entered);
                client.broken = until.map(|until| (of, until));
            }
        }
    }
}

/// Whether a verb may end what another holds: each such needs a confirmation.
pub(crate) fn breaks(verb: Verb) -> bool {
    match verb {
        Verb::Acquire { .. }
        | Verb::Elect(_)
        | Verb::Renew { .. }
        | Verb::Extend { .. }
        | Verb::Release => false,
        Verb::ForceRelease => true,
        Verb::Hold { take_over, .. } => take_over,
        Verb::Unhold { another } => another,
    }
}

/// Whether a write has landed, as far as anybody can tell from the Lease.
pub(crate) fn landed(sent: &Attempt, lease: Option<&Lease>) -> bool {
    judge(&sent.write, sent.on.as_ref(), lease) == WriteOutcome::Landed
}

/// Whether these are copies of one write, which may carry different times.
fn is_copy(one: &Attempt, other: &Attempt) -> bool {
    match (one.write, other.write) {
        (Write::Acquire { nonce, .. }, Write::Acquire { nonce: other, .. }) => nonce == other,
        (one, other) => one == other,
    }
}

/// Stands for the count that a write makes while nobody looks at it.
pub(crate) const LOST_COUNT: u32 = u32::MAX;

fn next_transition(on: Option<&Lease>) -> u32 {
    match on {
        Some(lease) if lease.transitions == i32::MAX as u32 => 0,
        Some(lease) => lease.transitions + 1,
        None => 1,
    }
}

/// A holder that is no administrator.
pub(crate) fn is_lease_of(lease: &Lease, id: Id) -> bool {
    lease.holder.is_some_and(|holder| holder.id == id)
}
