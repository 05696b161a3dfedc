//! One form for all worlds that differ in nothing that a rule can see.
//!
//! Rules compare instants by their differences, ids by equality, versions by order, and a count of
//! transitions with the previous one. So this moves the present to zero, numbers names in the order of
//! their first use, sorts clients that are alike, and removes what has no effect any more.

mod names;

use std::array;

use maintenance_lease::protocol::relabel::Relabel;
use maintenance_lease::protocol::{
    Attempt, BootInstant, Clocks, Id, Instant, Lease, Now, Span, Version, WaiterAction, Write,
    WriteLoop, WriteOutcome,
};

use self::names::{
    FailedWrite, KnownEnds, Names, PastLease, UidAndVersion, Versions, failed_write, nothing_but,
};
use crate::client::{Client, Knowledge, Role};
use crate::store::{Event, FIRST_FRESH, NO_ID};
use crate::world::{Answer, CLIENTS, Request, RequestKind, World};

/// What can still matter in a world, and what can't.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Horizon {
    /// Leases are stored no longer than this.
    pub(crate) longest: u32,
    /// Locks are broken, so that it matters for how long who held them may believe.
    pub(crate) breaks: bool,
    /// Leases are deleted, so that a creation which conflicted may succeed later.
    pub(crate) deletions: bool,
    /// How many events a watch may show.
    pub(crate) events: usize,
    /// Answers take time, so that old states of the Lease are under way.
    pub(crate) slow: bool,
    /// This many clients, the first ones, are alike: which of them is which makes no difference.
    pub(crate) alike: usize,
}

impl Horizon {
    /// Whether anybody may come to see an old state of the Lease.
    fn is_old_news_shown(&self) -> bool {
        self.slow || self.events > 1
    }
}

/// A list of this capacity hardly ever grows.
const MANY: usize = 32;

/// In microseconds: before anything that matters.
const FAR_BACK: i64 = 1_000_000_000;

impl World {
    /// This world, without what makes no difference.
    pub(crate) fn canonical(mut self, horizon: Horizon) -> Self {
        self.forget(horizon);
        let places = self.places(horizon);
        self.rename(horizon, places);
        self.requests.sort_by_key(order);
        self.requests.dedup();
        self
    }

    fn forget(&mut self, horizon: Horizon) {
        for event in &mut self.store.events[horizon.events..] {
            *event = None;
        }
        if self.store.events[0].is_some() && self.store.events[1].is_some() && self.is_old_news(1) {
            self.store.events[1] = None;
        }
        if self.breaks == 0 {
            self.confirmed = None;
        }
        let breaks = self.breaks > 0;
        let busy: [bool; CLIENTS] = array::from_fn(|who| self.is_busy(who));
        for (client, busy) in self.clients.iter_mut().zip(busy) {
            client.granted = client
                .granted
                .filter(|until| breaks && *until >= client.boot)
                .filter(|_| busy || matches!(client.role, Role::Waiting(_) | Role::Holding(_)));
            if client.role == Role::Idle {
                // A client that starts again reads first.
                client.knowledge = Knowledge::Lease;
            }
            if let Some((of, until)) = client.broken
                && until < client.boot
                && client.works_under() != Some(of)
            {
                client.broken = None;
            }
        }
        self.forget_what_passed(horizon);
        let store = &self.store;
        let may_land = |sent: &Attempt| {
            store.is_at(sent.on.as_ref()) || (sent.on.is_none() && horizon.deletions)
        };
        self.requests.retain_mut(|request| match &mut request.kind {
            RequestKind::Write { sent, .. } if request.answer.is_none() && !may_land(sent) => {
                request.answer = Some(Answer::Conflict);
                request.awaited
            }
            // Its answer is ignored.
            RequestKind::Write { sent, .. } if !request.awaited && !horizon.breaks => {
                sent.at = BootInstant::from_micros(i64::MIN);
                true
            }
            _ => true,
        });
        if !horizon.is_old_news_shown() {
            let has_failed = |steps: &WriteLoop| {
                let sent = steps.unsettled();
                sent.is_some_and(|sent| !may_land(&sent))
                    && steps.outcome(store.lease.as_ref()) == WriteOutcome::Failed
            };
            for client in &mut self.clients {
                if let Role::Waiting(contender) = &mut client.role {
                    contender.contended = contender.contended.filter(|steps| !has_failed(steps));
                }
                for steps in client.changes() {
                    if has_failed(steps) {
                        steps.relabel(&mut FailedWrite);
                    } else if steps.unsettled().is_some_and(|sent| !may_land(&sent)) {
                        steps.relabel(&mut UidAndVersion);
                    }
                }
                let stands = |nonce: Id| {
                    store
                        .lease
                        .is_some_and(|lease| [lease.nonce, lease.ended].contains(&Some(nonce)))
                };
                client.landed = client.landed.filter(|nonce| stands(*nonce));
            }
        }
        self.forget_ends();
    }

    /// Which acquisition was ended matters to who made it, and has not been told.
    fn forget_ends(&mut self) {
        let acquisition = |sent: Attempt| match sent.write {
            Write::Acquire { nonce, .. } => Some(nonce),
            Write::Renew { .. } | Write::Release { .. } => None,
        };
        let untold = self.clients.iter().flat_map(|client| {
            let sent = client.unsettled().filter_map(acquisition);
            sent.chain(client.landed)
        });
        let mut ended = KnownEnds(untold.collect());
        self.visit(&mut ended, |_, _| {});
    }

    /// Who knows an old state of the Lease can do nothing with it. So one old state stands for all:
    /// one at which a contender would fail at once.
    fn forget_what_passed(&mut self, horizon: Horizon) {
        let current = self.store.lease;
        for client in &mut self.clients {
            match &mut client.role {
                Role::Waiting(contender) => {
                    let seen = contender.waiter.seen();
                    let passed = seen.is_some_and(|seen| !says_the_same(seen, current.as_ref()));
                    if passed {
                        contender.waiter.relabel(&mut PastLease { contender: true });
                    }
                }
                Role::Holding(holding) if !horizon.slow => {
                    let of = holding.keeper.acquisition();
                    if current.and_then(|lease| lease.acquisition()) != Some(of) {
                        holding.keeper.relabel(&mut PastLease { contender: false });
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether an event tells nobody anything, now or later.
    fn is_old_news(&self, index: usize) -> bool {
        let Some(event) = self.store.events[index] else {
            return true;
        };
        self.store.lease.is_some()
            && self.clients.iter().all(|client| {
                let clocks = Clocks {
                    boot: client.boot,
                    server: Now::at(self.now),
                };
                let writes = match &client.role {
                    Role::Waiting(contender) => contender.running.is_some(),
                    _ => false,
                };
                let mut told = client.clone();
                told.sees(&event, clocks);
                !writes && told == *client
            })
    }

    /// Where each client goes, so that those that are alike come in an order of their own.
    fn places(&self, horizon: Horizon) -> [usize; CLIENTS] {
        let mut order: [usize; CLIENTS] = array::from_fn(|who| who);
        if horizon.alike > 1 {
            order[..horizon.alike].sort_by_cached_key(|who| self.looks(*who));
        }
        let mut places = [0; CLIENTS];
        for (place, who) in order.into_iter().enumerate() {
            places[who] = place;
        }
        places
    }

    /// What tells a client from others, apart from names.
    fn looks(&self, who: usize) -> [i64; 8] {
        let client = &self.clients[who];
        let ahead = |at: BootInstant| at.since(client.boot).as_micros();
        let looks_of = |steps: WriteLoop| {
            let flags = i64::from(steps.is_unknown()) * 2 + i64::from(steps.is_in_doubt());
            let sent = steps.unsettled().map_or(1, |sent| ahead(sent.at));
            sent.max(-FAR_BACK) * 4 + flags
        };
        let role = match &client.role {
            Role::Idle => [0; 4],
            Role::Waiting(contender) => {
                let clocks = Clocks {
                    boot: client.boot,
                    server: Now::at(self.now),
                };
                let turn = match contender.waiter.due(clocks) {
                    WaiterAction::Try => -1,
                    WaiterAction::Read => -2,
                    WaiterAction::Wait(None) => -3,
                    WaiterAction::Wait(Some(at)) => ahead(at),
                };
                let version = contender.waiter.seen().map_or(0, |lease| lease.version.0);
                let running = contender.running.map_or(FAR_BACK, looks_of);
                let contended = contender.contended.map_or(FAR_BACK, looks_of);
                [1, turn, version as i64, running * FAR_BACK + contended]
            }
            Role::Holding(holding) => {
                let keeper = &holding.keeper;
                let working = i64::from(keeper.loss().is_some()) * 2 + i64::from(holding.resting);
                let version = keeper.held().version.0;
                [2, ahead(keeper.deadline()), version as i64, working]
            }
            Role::Changing(changing) => [3, looks_of(changing.steps), 0, 0],
        };
        let holds = self
            .store
            .lease
            .and_then(|lease| lease.holder)
            .is_some_and(|holder| client.owns(holder.id));
        let (mut writes, mut awaited) = (0, 0);
        for request in self.requests.iter().filter(|request| request.who == who) {
            let kind = order(request);
            awaited += i64::from(kind.2);
            writes = writes * 1_000 + i64::from(kind.2) * 4 + i64::from(kind.1) + 1;
        }
        let broken = [
            client.broken.is_some(),
            client.halted,
            client.landed.is_some(),
            client.knowledge == Knowledge::Nothing,
            client.knowledge == Knowledge::ServerTime,
        ];
        let broken = broken
            .into_iter()
            .fold(0, |all, flag| all * 2 + i64::from(flag));
        [
            role[0],
            role[1],
            role[2],
            role[3],
            i64::from(holds),
            writes,
            awaited,
            broken,
        ]
    }

    fn rename(&mut self, horizon: Horizon, places: [usize; CLIENTS]) {
        let mut seen = Versions(Vec::with_capacity(MANY));
        seen.0.push(self.store.last_version);
        self.visit(&mut seen, |_, _| {});
        seen.0.sort_unstable();
        seen.0.dedup();

        let mut left = places;
        for who in 0..CLIENTS {
            while left[who] != who {
                let place = left[who];
                self.clients.swap(who, place);
                left.swap(who, place);
            }
        }
        for request in &mut self.requests {
            request.who = places[request.who];
        }
        self.requests.sort_by_key(order);

        let mut names = Names {
            // If no old request is under way, old versions need not be told apart.
            versions: match (horizon.slow, horizon.events) {
                (false, 1) => &[],
                _ => &seen.0,
            },
            current: self.store.last_version,
            places: &places,
            ids: Vec::with_capacity(MANY),
            counts: Vec::with_capacity(MANY),
            now: self.now,
            boot: BootInstant::from_micros(0),
            longest: horizon.longest,
        };
        let boots: [BootInstant; CLIENTS] = array::from_fn(|who| self.clients[who].boot);
        self.visit(&mut names, |names, who| names.boot = boots[who]);
        self.store.last_version = names.rank(self.store.last_version);
        self.store.last_id = FIRST_FRESH + names.ids.len() as u32;
        self.now = Instant::from_micros(0);
        for client in &mut self.clients {
            client.boot = BootInstant::from_micros(0);
        }
    }

    /// Shows everything that has a name or a time: first what is stored, then each client's. Says
    /// whose clock it is.
    fn visit<R: Relabel>(&mut self, labels: &mut R, whose: impl Fn(&mut R, usize)) {
        if let Some(lease) = &mut self.store.lease {
            labels.lease(lease);
        }
        for event in self.store.events.iter_mut().flatten() {
            event.visit(labels);
        }
        for (who, client) in self.clients.iter_mut().enumerate() {
            whose(labels, who);
            client.visit(labels);
        }
        for request in &mut self.requests {
            whose(labels, request.who);
            request.visit(labels);
        }
        if let Some(of) = &mut self.confirmed {
            labels.acquisition(of);
        }
    }
}

impl Event {
    fn visit(&mut self, labels: &mut impl Relabel) {
        match self {
            Self::Shown(lease) => labels.lease(lease),
            Self::Gone(last) => {
                *last = nothing_but(last.uid, last.version);
                labels.lease(last);
            }
        }
    }
}

impl Client {
    /// The changes that it makes.
    fn changes(&mut self) -> impl Iterator<Item = &mut WriteLoop> {
        let (running, contended, steps) = match &mut self.role {
            Role::Waiting(contender) => (
                contender.running.as_mut(),
                contender.contended.as_mut(),
                None,
            ),
            Role::Changing(changing) => (None, None, Some(&mut changing.steps)),
            Role::Idle | Role::Holding(_) => (None, None, None),
        };
        running.into_iter().chain(contended).chain(steps)
    }

    fn visit(&mut self, labels: &mut impl Relabel) {
        labels.id(&mut self.caller.identity);
        labels.id(&mut self.caller.hold_identity);
        match &mut self.role {
            Role::Idle => {}
            Role::Waiting(contender) => contender.waiter.relabel(labels),
            Role::Holding(holding) => holding.keeper.relabel(labels),
            Role::Changing(changing) => {
                if let Some(of) = &mut changing.breaks {
                    labels.acquisition(of);
                }
            }
        }
        for steps in self.changes() {
            steps.relabel(labels);
        }
        if let Some(landed) = &mut self.landed {
            labels.id(landed);
        }
        if let Some(until) = &mut self.granted {
            labels.until(until);
        }
        if let Some((of, until)) = &mut self.broken {
            labels.acquisition(of);
            labels.until(until);
        }
    }
}

impl Request {
    fn visit(&mut self, labels: &mut impl Relabel) {
        match (&mut self.kind, &mut self.answer) {
            // What it said matters no more.
            (RequestKind::Write { sent, breaks }, Some(Answer::Conflict)) => {
                *sent = doomed();
                *breaks = None;
            }
            (RequestKind::Write { sent, breaks }, answer) => {
                visit(sent, labels);
                if let Some(of) = breaks {
                    labels.acquisition(of);
                }
                if let Some(Answer::Landed(lease)) = answer {
                    labels.lease(lease);
                }
            }
            (RequestKind::Read, Some(Answer::NodeAndLease(Some(lease)))) => labels.lease(lease),
            (RequestKind::Read, _) => {}
        }
    }
}

fn visit(sent: &mut Attempt, labels: &mut impl Relabel) {
    if let Some(on) = &mut sent.on {
        UidAndVersion.lease(on);
        labels.lease(on);
    }
    labels.write(&mut sent.write);
    if let Write::Acquire { transitions, .. } = &mut sent.write {
        *transitions = sent.on.map_or(1, |on| on.transitions + 1);
    }
    let length = match sent.write {
        Write::Acquire { duration, .. } | Write::Renew { duration, .. } => duration,
        Write::Release { .. } => 0,
    };
    labels.since(&mut sent.at, Span::seconds(length));
}

/// A write of which only its conflict is awaited: it was decided on a Lease that went.
fn doomed() -> Attempt {
    Attempt {
        write: failed_write(0),
        on: Some(nothing_but(NO_ID, Version(0))),
        at: BootInstant::from_micros(0),
    }
}

/// Whether these are one record, maybe at different versions.
fn says_the_same(one: &Lease, other: Option<&Lease>) -> bool {
    other.is_some_and(|other| {
        *one == Lease {
            version: one.version,
            ..*other
        }
    })
}

/// Requests arrive in any order, so that theirs means nothing.
fn order(request: &Request) -> (usize, bool, u8, i64, i64) {
    let (kind, sent, at) = match request.kind {
        RequestKind::Read => (0, 0, 0),
        RequestKind::Write { sent, .. } => match sent.write {
            Write::Acquire { at, .. } => (1, sent.at.as_micros(), at.as_micros()),
            Write::Renew { at, .. } => (2, sent.at.as_micros(), at.as_micros()),
            Write::Release { at, .. } => (3, sent.at.as_micros(), at.as_micros()),
        },
    };
    let kind = kind * 2 + u8::from(request.answer.is_some());
    (request.who, request.awaited, kind, sent, at)
}
