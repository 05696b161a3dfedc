//! The renamings that bring a world into one form.

use std::cmp::Ordering;

use maintenance_lease::protocol::relabel::Relabel;
use maintenance_lease::protocol::{
    Acquisition, BootInstant, Id, Instant, Lease, SKEW_BUDGET, Span, Version, Write,
};

use crate::store::{FIRST_ADMIN, FIRST_FRESH, NO_ID, holder};
use crate::world::LOST_COUNT;

/// A count of transitions from which one acquisition more or less is far from wrapping.
pub(super) const TRANSITIONS: u32 = 1_000;

/// A holder that is no client.
const NO_HOLDER: Id = Id(FIRST_ADMIN - 1);

/// Deadlines that are further away than any of a lease are those of holds, and stay this far.
const FAR: BootInstant = BootInstant::from_micros(i64::MAX);

/// Whatever lasts longer than this is an administrator's hold, whose times mean nothing.
const HOLD: Span = Span::seconds(1_000_000);

/// All versions that anybody remembers.
pub(super) struct Versions(pub(super) Vec<u64>);

impl Relabel for Versions {
    fn lease(&mut self, lease: &mut Lease) {
        self.0.push(lease.version.0);
    }
    fn write(&mut self, _: &mut Write) {}
    fn acquisition(&mut self, _: &mut Acquisition) {}
    fn id(&mut self, _: &mut Id) {}
    fn version(&mut self, version: &mut Version) {
        self.0.push(version.0);
    }
    fn until(&mut self, _: &mut BootInstant) {}
    fn since(&mut self, _: &mut BootInstant, _: Span) {}
}

/// Makes the Lease that somebody remembers one that has passed.
pub(super) struct PastLease {
    pub(super) contender: bool,
}

impl Relabel for PastLease {
    fn lease(&mut self, lease: &mut Lease) {
        lease.renewed = None;
        lease.acquired = None;
        if self.contender {
            lease.holder = Some(holder(NO_HOLDER));
            lease.uid = NO_ID;
            lease.duration = 1;
            lease.transitions = TRANSITIONS;
            lease.nonce = None;
        }
        lease.ended = None;
    }
    fn write(&mut self, _: &mut Write) {}
    fn acquisition(&mut self, _: &mut Acquisition) {}
    fn id(&mut self, _: &mut Id) {}
    fn version(&mut self, _: &mut Version) {}
    fn until(&mut self, _: &mut BootInstant) {}
    fn since(&mut self, at: &mut BootInstant, _: Span) {
        if self.contender {
            *at = BootInstant::from_micros(i64::MIN);
        }
    }
}

/// Makes a write one of which nothing can come any more, whatever it was.
pub(super) struct FailedWrite;

impl Relabel for FailedWrite {
    fn lease(&mut self, on: &mut Lease) {
        *on = nothing_but(NO_ID, Version(0));
    }
    fn write(&mut self, write: &mut Write) {
        *write = match *write {
            Write::Acquire { duration, .. } | Write::Renew { duration, .. } => {
                failed_write(duration)
            }
            Write::Release { .. } => failed_write(0),
        };
    }
    fn acquisition(&mut self, _: &mut Acquisition) {}
    fn id(&mut self, _: &mut Id) {}
    fn version(&mut self, _: &mut Version) {}
    fn until(&mut self, _: &mut BootInstant) {}
    fn since(&mut self, at: &mut BootInstant, _: Span) {
        *at = BootInstant::from_micros(i64::MIN);
    }
}

/// Of what a write was decided on that has passed, the rules look at the uid and the version alone.
pub(super) struct UidAndVersion;

impl Relabel for UidAndVersion {
    fn lease(&mut self, on: &mut Lease) {
        *on = Lease {
            transitions: on.transitions,
            ..nothing_but(on.uid, on.version)
        };
    }
    fn write(&mut self, _: &mut Write) {}
    fn acquisition(&mut self, _: &mut Acquisition) {}
    fn id(&mut self, _: &mut Id) {}
    fn version(&mut self, _: &mut Version) {}
    fn until(&mut self, _: &mut BootInstant) {}
    fn since(&mut self, _: &mut BootInstant, _: Span) {}
}

/// Leaves away which acquisition was ended, unless it is one of these.
pub(super) struct KnownEnds(pub(super) Vec<Id>);

impl Relabel for KnownEnds {
    fn lease(&mut self, lease: &mut Lease) {
        lease.ended = lease.ended.filter(|ended| self.0.contains(ended));
    }
    fn write(&mut self, _: &mut Write) {}
    fn acquisition(&mut self, _: &mut Acquisition) {}
    fn id(&mut self, _: &mut Id) {}
    fn version(&mut self, _: &mut Version) {}
    fn until(&mut self, _: &mut BootInstant) {}
    fn since(&mut self, _: &mut BootInstant, _: Span) {}
}

/// What a write says of which nothing can come any more, but that so much was asked for.
pub(super) fn failed_write(duration: u32) -> Write {
    Write::Acquire {
        holder: NO_ID,
        at: Instant::UNREADABLE,
        duration,
        transitions: 0,
        nonce: NO_ID,
    }
}

/// A Lease of which only this is known.
pub(super) fn nothing_but(uid: Id, version: Version) -> Lease {
    Lease {
        uid,
        version,
        holder: None,
        acquired: None,
        renewed: None,
        duration: 0,
        transitions: TRANSITIONS,
        nonce: None,
        ended: None,
        elected: false,
        deleting: false,
        foreign: false,
    }
}

/// New names: versions by rank, ids as they are met, times from the present.
pub(super) struct Names<'a> {
    pub(super) versions: &'a [u64],
    pub(super) current: u64,
    pub(super) places: &'a [usize],
    pub(super) ids: Vec<Id>,
    /// The first count that was met of each Lease.
    pub(super) counts: Vec<(Id, u32)>,
    pub(super) now: Instant,
    pub(super) boot: BootInstant,
    pub(super) longest: u32,
}

impl Names<'_> {
    pub(super) fn rank(&self, version: u64) -> u64 {
        if self.versions.is_empty() {
            return u64::from(version == self.current);
        }
        self.versions.partition_point(|known| *known < version) as u64 + 1
    }

    fn count(&mut self, uid: Id, count: &mut u32) {
        let first = match self.counts.iter().find(|(known, _)| *known == uid) {
            Some((_, first)) => *first,
            None => {
                self.counts.push((uid, *count));
                *count
            }
        };
        // What is past is past, however long ago.
        *count = match (*count).cmp(&first) {
            Ordering::Less => TRANSITIONS - 1,
            Ordering::Equal => TRANSITIONS,
            Ordering::Greater => TRANSITIONS + 1,
        };
    }

    /// A renewal of so many seconds; what has expired by every clock is equally long ago.
    fn renewal(&self, renewed: &mut Instant, duration: u32) {
        if *renewed == Instant::UNREADABLE {
            return;
        }
        if Span::seconds(duration) > HOLD {
            *renewed = Instant::from_micros(0);
            return;
        }
        let length = Span::micros(
            Span::seconds(duration.min(self.longest)).as_micros() + SKEW_BUDGET.as_micros() + 1,
        );
        let oldest = Instant::from_micros(0) - length;
        *renewed = (*renewed - (self.now - Instant::from_micros(0))).max(oldest);
    }
}

impl Relabel for Names<'_> {
    fn lease(&mut self, lease: &mut Lease) {
        self.count(lease.uid, &mut lease.transitions);
        self.id(&mut lease.uid);
        self.version(&mut lease.version);
        // No rule looks at the acquisition's time where there is one of a renewal, nor at any field
        // but the count where nobody holds the Lease.
        lease.acquired = None;
        match &mut lease.holder {
            None => lease.renewed = None,
            Some(holder) => self.id(&mut holder.id),
        }
        if let Some(renewed) = &mut lease.renewed {
            self.renewal(renewed, lease.duration);
        }
        for nonce in lease.nonce.iter_mut().chain(&mut lease.ended) {
            self.id(nonce);
        }
    }

    fn write(&mut self, write: &mut Write) {
        match write {
            Write::Acquire {
                holder,
                at,
                duration,
                nonce,
                transitions,
            } => {
                *transitions = LOST_COUNT;
                self.id(holder);
                self.id(nonce);
                self.renewal(at, *duration);
            }
            Write::Renew { of, at, duration } => {
                self.acquisition(of);
                self.renewal(at, *duration);
            }
            Write::Release { of, renewed, at } => {
                self.acquisition(of);
                // These go into an annotation, and into a field that nobody reads in a free Lease.
                (*renewed, *at) = (Instant::from_micros(0), Instant::from_micros(0));
            }
        }
    }

    fn acquisition(&mut self, of: &mut Acquisition) {
        self.count(of.uid, &mut of.transitions);
        self.id(&mut of.uid);
        self.id(&mut of.holder);
        if let Some(nonce) = &mut of.nonce {
            self.id(nonce);
        }
    }

    fn id(&mut self, id: &mut Id) {
        let place = |number: u32| self.places.get(number as usize).map(|place| *place as u32);
        *id = match id.0 {
            FIRST_FRESH => *id,
            fresh if fresh > FIRST_FRESH => {
                let index = self.ids.iter().position(|known| known == id);
                let index = index.unwrap_or_else(|| {
                    self.ids.push(*id);
                    self.ids.len() - 1
                });
                Id(FIRST_FRESH + 1 + index as u32)
            }
            admin if admin >= FIRST_ADMIN => {
                let place = place(admin - FIRST_ADMIN);
                Id(place.map_or(admin, |place| FIRST_ADMIN + place))
            }
            user => Id(place(user).unwrap_or(user)),
        };
    }

    fn version(&mut self, version: &mut Version) {
        version.0 = self.rank(version.0);
    }

    fn until(&mut self, at: &mut BootInstant) {
        if at.since(self.boot) > HOLD {
            *at = FAR;
        } else {
            let passed = BootInstant::from_micros(-1);
            *at = BootInstant::from_micros(at.since(self.boot).as_micros()).max(passed);
        }
    }

    fn since(&mut self, at: &mut BootInstant, length: Span) {
        if length > HOLD || length == Span::ZERO {
            *at = BootInstant::from_micros(0);
            return;
        }
        let oldest = -length.as_micros() - 1;
        *at = BootInstant::from_micros(at.since(self.boot).as_micros().max(oldest));
    }
}
