//! One form for all worlds that differ in nothing that a rule can see.
//!
//! Rules compare instants by their differences, ids and versions by equality, and a count of
//! transitions with the one that it was. So the present is moved to zero, names are numbered in the
//! order in which they are met, and what can have no consequence any more is left away.

use maintenance_lease::protocol::{
    BootInstant, Id, Instant, Lease, Outcome, SKEW_BUDGET, Span, Write, deadline, judge,
};

use crate::client::Sent;
use crate::store::FIRST_FRESH;
use crate::world::{Request, World};

/// A count of transitions from which one acquisition more or less is far from wrapping.
const TRANSITIONS: u32 = 1_000;

/// Deadlines that are further away than any of a lease are those of holds, and stay this far.
const FAR: BootInstant = BootInstant::from_micros(1_000_000_000);

/// From when on the past of a world has no consequences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Horizon {
    /// The longest duration that a lease can have here.
    pub(crate) longest: Span,
    /// Leases may be deleted, so that a creation which conflicted may succeed later.
    pub(crate) deletions: bool,
}

impl Horizon {
    /// A lease that was renewed before this is expired by every clock, when it is now zero.
    fn expired(self) -> Instant {
        Instant::from_micros(0) - self.longest - SKEW_BUDGET - Span::micros(1)
    }
}

impl World {
    /// This world, without what makes no difference.
    pub(crate) fn canonical(mut self, horizon: Horizon) -> Self {
        self.forget(horizon);
        self.shift_to_zero(horizon);
        self.rename();
        self
    }

    fn forget(&mut self, horizon: Horizon) {
        let boot = self.boot();
        let current = self.store.lease;
        for client in &mut self.clients {
            if !client.believes(boot) {
                client.belief = None;
            }
            client.unanswered = client.unanswered.filter(|sent| {
                let creates = sent.on.is_none() && horizon.deletions;
                let verdict = judge(&sent.write, sent.on.as_ref(), current.as_ref());
                may_make_believe(sent, boot) && (creates || verdict != Outcome::Failed)
            });
        }
        self.in_flight
            .retain(|request| match (request.sent.on, current) {
                (Some(on), Some(current)) => on.version == current.version,
                (Some(_), None) => false,
                (None, Some(_)) => horizon.deletions,
                (None, None) => true,
            });
        for request in &mut self.in_flight {
            if self.clients[request.who].unanswered != Some(request.sent) {
                request.sent.at = boot;
            }
            // These go into an annotation, and into a field that nobody reads in a free Lease.
            if let Write::Release { at, renewed, .. } = &mut request.sent.write {
                (*at, *renewed) = (self.now, self.now);
            }
        }
        self.in_flight.sort_by_key(order);
        self.in_flight.dedup();
        self.each_lease(&mut |lease| {
            // No rule looks at the acquisition's time where there is one of a renewal, nor at any
            // field but the count where nobody holds the Lease.
            lease.acquired = None;
            if lease.holder.is_none() {
                lease.renewed = None;
            }
        });
        for client in &mut self.clients {
            if let Some(Sent { on: Some(on), .. }) = &mut client.unanswered
                && let Some(current) = self.store.lease
            {
                // Of a landed write, only that what it was decided on has passed matters.
                *on = Lease {
                    version: on.version,
                    ..current
                };
            }
        }
    }

    fn shift_to_zero(&mut self, horizon: Horizon) {
        let now = self.now - Instant::from_micros(0);
        let oldest = horizon.expired();
        let instant = |instant: &mut Instant| *instant = (*instant - now).max(oldest);
        let boot = |boot: &mut BootInstant| {
            let oldest = BootInstant::from_micros(oldest.as_micros());
            *boot = boot.plus(Span::micros(-now.as_micros())).max(oldest);
        };
        self.now = Instant::from_micros(0);
        let zero = self.boot();
        self.each_lease(&mut |lease| {
            lease.acquired.iter_mut().for_each(instant);
            lease.renewed.iter_mut().for_each(instant);
        });
        for client in &mut self.clients {
            client.belief.iter_mut().for_each(boot);
            client.belief = client.belief.map(|until| {
                let of_a_hold = until.since(zero) > horizon.longest;
                if of_a_hold { FAR } else { until }
            });
        }
        self.each_sent(&mut |sent| {
            boot(&mut sent.at);
            match &mut sent.write {
                Write::Acquire { at, .. } | Write::Renew { at, .. } => instant(at),
                Write::Release { at, renewed, .. } => {
                    instant(at);
                    instant(renewed);
                }
            }
        });
    }

    fn rename(&mut self) {
        let mut versions = Numbering::default();
        let mut ids = Numbering::default();
        let mut id = |id: &mut Id| {
            if id.0 > FIRST_FRESH {
                id.0 = FIRST_FRESH + ids.number(u64::from(id.0));
            }
        };
        let transitions = self
            .store
            .lease
            .map_or(0, |lease| TRANSITIONS.wrapping_sub(lease.transitions));
        let count = |count: &mut u32| *count = count.wrapping_add(transitions);
        self.each_lease(&mut |lease| {
            lease.version.0 = u64::from(versions.number(lease.version.0));
            id(&mut lease.uid);
            lease.nonce.iter_mut().for_each(&mut id);
            count(&mut lease.transitions);
        });
        self.each_sent(&mut |sent| match &mut sent.write {
            Write::Acquire {
                nonce, transitions, ..
            } => {
                id(nonce);
                if sent.on.is_some() {
                    count(transitions);
                }
            }
            Write::Renew { of, .. } | Write::Release { of, .. } => {
                id(&mut of.uid);
                of.nonce.iter_mut().for_each(&mut id);
                count(&mut of.transitions);
            }
        });
        self.store.last_version = versions.known.len() as u64;
        self.store.last_id = FIRST_FRESH + ids.known.len() as u32;
    }

    fn each_sent(&mut self, change: &mut dyn FnMut(&mut Sent)) {
        for client in &mut self.clients {
            client.unanswered.iter_mut().for_each(&mut *change);
        }
        for request in &mut self.in_flight {
            change(&mut request.sent);
        }
    }

    /// The stored Lease first, then the memories of it.
    fn each_lease(&mut self, change: &mut dyn FnMut(&mut Lease)) {
        self.store.lease.iter_mut().for_each(&mut *change);
        self.each_sent(&mut |sent| sent.on.iter_mut().for_each(&mut *change));
    }
}

/// Whether an answer could still make its client believe: not one to a release, nor one that comes
/// after the lease has ended.
fn may_make_believe(sent: &Sent, boot: BootInstant) -> bool {
    match sent.write {
        Write::Acquire { duration, .. } | Write::Renew { duration, .. } => {
            boot <= deadline(sent.at, duration)
        }
        Write::Release { .. } => false,
    }
}

/// Requests arrive in any order, so that theirs means nothing.
fn order(request: &Request) -> (usize, bool, i64, i64) {
    let at = match request.sent.write {
        Write::Acquire { at, .. } | Write::Renew { at, .. } | Write::Release { at, .. } => at,
    };
    (
        request.who,
        request.breaks,
        request.sent.at.as_micros(),
        at.as_micros(),
    )
}

/// Numbers in the order in which they are met, from 1.
#[derive(Default)]
struct Numbering {
    known: Vec<u64>,
}

impl Numbering {
    fn number(&mut self, name: u64) -> u32 {
        let index = self
            .known
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                self.known.push(name);
                self.known.len() - 1
            });
        u32::try_from(index).expect("a small world") + 1
    }
}
