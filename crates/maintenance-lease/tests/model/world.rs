//! Three clients, one Lease, and a network that loses answers and delivers late.

use maintenance_lease::protocol::{
    Acquisition, BootInstant, Id, Instant, Lease, Now, Refusal, Span, Verb,
};

use crate::client::{Client, Clocks, Sent};
use crate::store::Store;

pub(crate) const CLIENTS: usize = 3;

/// Everything that is the case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time. Every boot clock runs with it; estimates of the server's time err from it.
    pub(crate) now: Instant,
    pub(crate) store: Store,
    pub(crate) clients: [Client; CLIENTS],
    pub(crate) in_flight: Vec<Request>,
}

/// A write between its client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) who: usize,
    pub(crate) sent: Sent,
    /// It breaks another's lock on purpose.
    pub(crate) breaks: bool,
}

impl World {
    pub(crate) fn new(lease: Option<Lease>) -> Self {
        Self {
            now: Instant::from_micros(0),
            store: Store::with(lease),
            clients: [Client::new(0), Client::new(1), Client::new(2)],
            in_flight: Vec::new(),
        }
    }

    pub(crate) fn boot(&self) -> BootInstant {
        BootInstant::from_micros(self.now.as_micros())
    }

    /// Estimates of the server's time that err by these.
    pub(crate) fn estimate(&self, earliest: Span, latest: Span) -> Now {
        Now {
            earliest: self.now + earliest,
            latest: self.now + latest,
        }
    }

    /// How many believe that they hold the node, of an acquisition that nobody broke.
    pub(crate) fn believers(&self) -> usize {
        let boot = self.boot();
        let believing = self.clients.iter().filter(|client| client.believes(boot));
        believing.count()
    }

    /// The guarantee: two clients never believe that they hold the node at the same time.
    pub(crate) fn keeps_the_guarantee(&self) -> bool {
        self.believers() <= 1
    }

    /// A client decides on what it has `seen`, and sends.
    pub(crate) fn want(
        &mut self,
        who: usize,
        verb: Verb,
        seen: Option<&Lease>,
        meant: Option<Acquisition>,
        server: Now,
    ) -> Result<(), Refusal> {
        let boot = self.boot();
        let clocks = Clocks { boot, server };
        if let Some(sent) = self.clients[who].want(verb, seen, meant, clocks)? {
            self.in_flight.push(Request {
                who,
                sent,
                breaks: breaks(verb),
            });
        }
        Ok(())
    }

    /// A client that had no answer sends the very same write again.
    pub(crate) fn send_again(&mut self, who: usize) {
        let awaited = |request: &&Request| Some(request.sent) == self.clients[who].unanswered;
        let first = self.in_flight.iter().find(awaited).copied();
        self.in_flight.extend(first);
    }

    /// A request arrives: it lands, or conflicts. Where it is not `answered`, its client never
    /// hears of either; told of a conflict, it reads again.
    pub(crate) fn deliver(&mut self, request: usize, answered: bool) {
        let Request { who, sent, breaks } = self.in_flight.remove(request);
        let before = self.holder();
        let landed = self.store.land(&sent.write, sent.on.as_ref());
        if landed && breaks {
            self.excuse(before);
        }
        match self.store.lease {
            Some(lease) if landed && answered => self.clients[who].hear(&sent, &lease),
            _ if answered => self.read(who),
            _ => {}
        }
    }

    /// A client reads, and learns what became of its write.
    pub(crate) fn read(&mut self, who: usize) {
        self.clients[who].read(self.store.lease.as_ref());
    }

    /// The Node goes, and its Lease with it.
    pub(crate) fn delete(&mut self) {
        self.excuse(self.holder());
        self.store.lease = None;
    }

    fn holder(&self) -> Option<Id> {
        self.store.lease?.holder.map(|holder| holder.id)
    }

    /// The lock of `holder` was broken: what they believe so far they may act on until it ends, so
    /// that it counts no more. A belief of any later write counts again.
    fn excuse(&mut self, holder: Option<Id>) {
        for client in &mut self.clients {
            if holder.is_some_and(|holder| client.owns(holder)) {
                client.belief = None;
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
