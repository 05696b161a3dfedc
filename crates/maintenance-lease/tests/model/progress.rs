//! What must come to pass once faults have ended, within a bound.
//!
//! From any state, [`World::end_faults`] ends all faults; from there on everything that is sent
//! arrives at once, everybody is scheduled in every tick, and there is one way on. So "at last" becomes
//! "never later than", which the exploration checks like any other property.

use maintenance_lease::protocol::{Now, SILENCE, SKEW_BUDGET, Span};

use crate::client::{Client, Role};
use crate::world::{Setting, World};

/// The world after all faults have ended, and for how many ticks they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Recovery {
    /// Those who held are gone, without a word: somebody who waits must get in.
    Vacant(u32),
    /// Who holds is served: it must not lose what is its own.
    Kept(u32),
    /// It has come to pass.
    Done,
}

/// How many ticks it may take to get in after the holder's last word: the lease, as seen by the holder's
/// clock and by one behind it, the margin, a silence, and a tick, since no time is rounded down; and
/// all of it once more, because the last word may be one's own, sent so long ago that it is too late.
pub(crate) fn takeover_bound(longest: Span, apart: Span, tick: Span) -> u32 {
    let bound = [longest, apart, SKEW_BUDGET, SILENCE, tick];
    let micros: i64 = bound.iter().map(|span| span.as_micros()).sum();
    u32::try_from(2 * micros / tick.as_micros()).expect("a small world")
}

impl World {
    /// Everybody who held is gone, and what was under way is lost; those who wait go on. Says
    /// whether anybody does, and could get in.
    pub(crate) fn desert(&mut self, server: Now) -> bool {
        for who in 0..self.clients.len() {
            if self.clients[who].is_waiting() {
                self.time_out(who, server);
            } else {
                self.clients[who].becomes(Role::Idle);
            }
            self.clients[who].granted = None;
            self.clients[who].broken = None;
        }
        self.settle_down();
        self.clients.iter().any(Client::is_waiting)
            && !self.store.lease.is_some_and(|lease| {
                lease.holder.is_some_and(|holder| holder.admin) || lease.elected || lease.deleting
            })
    }

    /// Nothing is under way any more, and the holder alone goes on. Says whether there is one, with
    /// time enough to renew.
    pub(crate) fn leave_alone(&mut self, server: Now, slack: Span) -> bool {
        let Some(holder) = self.holder() else {
            return false;
        };
        let client = &self.clients[holder];
        let in_time = client
            .keeper()
            .is_some_and(|keeper| keeper.may_work(client.boot.plus(slack)));
        self.time_out(holder, server);
        for client in &mut self.clients {
            if self
                .store
                .lease
                .and_then(|lease| lease.holder)
                .is_none_or(|holder| !client.owns(holder.id))
            {
                client.becomes(Role::Idle);
            }
            client.granted = None;
            client.broken = None;
        }
        self.settle_down();
        in_time
    }

    /// One tick in which everything works. Says whether it has come to pass: somebody who waited
    /// holds; or who held has lost it.
    pub(crate) fn go_on(&mut self, server: Now, setting: &Setting) {
        for who in 0..self.clients.len() {
            let wanted = self.clients[who].is_waiting();
            self.watch(who, 0, server, setting);
            if self.clients[who]
                .keeper()
                .is_some_and(|keeper| keeper.loss().is_some())
            {
                // What it sent before the faults ended has landed too late to be of use.
                self.want(who, server, setting);
            }
            for _ in 0..4 {
                self.run(who, server, setting);
                while let Some(request) = self.awaited(who) {
                    self.serve_once(request);
                    self.answer(request, server, setting);
                }
            }
            if wanted && self.clients[who].role == Role::Idle {
                // What it sent before the faults ended landed, and somebody has ended it since.
                self.want(who, server, setting);
            }
        }
    }

    /// The client that holds, and knows.
    pub(crate) fn holder(&self) -> Option<usize> {
        let held_state = self.store.lease?.acquisition()?;
        self.clients.iter().position(|client| {
            client
                .keeper()
                .is_some_and(|keeper| keeper.acquisition() == held_state && keeper.loss().is_none())
        })
    }

    fn settle_down(&mut self) {
        self.requests.clear();
        self.confirmed = None;
        for who in 0..self.clients.len() {
            if self.clients[who].halted {
                self.resume(who);
            }
        }
    }
}
