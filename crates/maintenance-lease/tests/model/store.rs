//! The API server, as far as one Lease goes: a compare-and-swap on its version, and a watch.

use maintenance_lease::protocol::{Caller, Holder, Id, Lease, Version, Write};

/// Ids from here to [`FIRST_FRESH`] are administrators' holds; below are leases' holders.
pub(crate) const FIRST_ADMIN: u32 = 10;

/// Uids and nonces are counted from here.
pub(crate) const FIRST_FRESH: u32 = 100;

/// An id that is nobody's.
pub(crate) const NO_ID: Id = Id(FIRST_FRESH);

/// A holder as a reader sees it; on the wire its kind shows in how it begins.
pub(crate) fn holder(id: Id) -> Holder {
    Holder {
        id,
        admin: (FIRST_ADMIN..FIRST_FRESH).contains(&id.0),
    }
}

/// The client of this number, under its two names.
pub(crate) fn caller(number: u32) -> Caller {
    Caller {
        identity: Id(number),
        hold_identity: Id(FIRST_ADMIN + number),
    }
}

/// What a watch shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// The Lease, as it was made or changed.
    Shown(Lease),
    /// The Lease went; this is how it was last, at the version of its deletion.
    Gone(Lease),
}

/// What the server stores, and the names and versions that it and its clients gave out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) lease: Option<Lease>,
    pub(crate) last_version: u64,
    pub(crate) last_id: u32,
    /// What a watch showed last, and before that. Both may come late and again.
    pub(crate) events: [Option<Event>; 2],
    /// A policy of the cluster stores no longer lease than this, whatever is asked for.
    pub(crate) longest: Option<u32>,
}

impl Store {
    /// A store with this Lease in it, or none.
    pub(crate) fn with(lease: Option<Lease>) -> Self {
        Self {
            lease,
            last_version: lease.map_or(0, |lease| lease.version.0),
            last_id: FIRST_FRESH,
            events: [lease.map(Event::Shown), None],
            longest: None,
        }
    }

    /// An id that nobody has seen: a uid, or the nonce of a client.
    pub(crate) fn fresh_id(&mut self) -> Id {
        self.last_id += 1;
        Id(self.last_id)
    }

    /// Whether a write that was decided on this could land now.
    pub(crate) fn is_at(&self, on: Option<&Lease>) -> bool {
        let identity = |lease: &Lease| (lease.uid, lease.version);
        on.map(identity) == self.lease.as_ref().map(identity)
    }

    /// Carries `write` out, if what it was decided on (`None`: that there is no Lease) still
    /// stands. Says whether it did.
    pub(crate) fn land(&mut self, write: &Write, on: Option<&Lease>) -> bool {
        if !self.is_at(on) {
            return false;
        }
        let uid = self
            .lease
            .map_or_else(|| self.fresh_id(), |lease| lease.uid);
        let version = self.lease.map_or(Version(0), |lease| lease.version);
        let mut after = applied(write, self.lease.as_ref(), uid, version);
        if let (Some(longest), false) = (self.longest, matches!(write, Write::Release { .. })) {
            after.duration = after.duration.min(longest);
        }
        // What changes nothing is answered with the version that was there.
        if self.lease != Some(after) {
            after.version = self.fresh_version();
            self.lease = Some(after);
            self.show(Event::Shown(after));
        }
        true
    }

    /// Another tool changes a label: the version moves on and nothing else does.
    pub(crate) fn touch(&mut self) {
        let version = self.fresh_version();
        if let Some(lease) = &mut self.lease {
            lease.version = version;
            let lease = *lease;
            self.show(Event::Shown(lease));
        }
    }

    /// The Lease goes.
    pub(crate) fn delete(&mut self) {
        let version = self.fresh_version();
        if let Some(last) = self.lease.take() {
            self.show(Event::Gone(Lease { version, ..last }));
        }
    }

    /// Another Lease that says the same as `lease` takes this one's place.
    pub(crate) fn copy(&mut self, lease: Option<Lease>) {
        self.delete();
        let (uid, version) = (self.fresh_id(), self.fresh_version());
        self.lease = lease.map(|lease| Lease {
            uid,
            version,
            ..lease
        });
        if let Some(lease) = self.lease {
            self.show(Event::Shown(lease));
        }
    }

    fn show(&mut self, event: Event) {
        self.events = [Some(event), self.events[0]];
    }

    fn fresh_version(&mut self) -> Version {
        self.last_version += 1;
        Version(self.last_version)
    }
}

/// The Lease after `write`, field by field as the merge patch has it, or as it is created.
pub(crate) fn applied(write: &Write, on: Option<&Lease>, uid: Id, version: Version) -> Lease {
    let before = on.copied().unwrap_or(Lease {
        uid,
        version,
        holder: None,
        acquired: None,
        renewed: None,
        duration: 0,
        transitions: 0,
        nonce: None,
        ended: None,
        elected: false,
        deleting: false,
        foreign: false,
    });
    // The mark of whom this ends, who may not know yet that it was theirs.
    let ended = before.nonce.filter(|_| before.holder.is_some());
    let kept = Lease { version, ..before };
    match *write {
        Write::Acquire {
            holder: id,
            at,
            duration,
            transitions,
            nonce,
        } => Lease {
            holder: Some(holder(id)),
            acquired: Some(at),
            renewed: Some(at),
            duration,
            transitions,
            nonce: Some(nonce),
            ended: ended.or(before.ended),
            ..kept
        },
        Write::Renew { at, duration, .. } => Lease {
            renewed: Some(at),
            duration,
            ..kept
        },
        Write::Release { renewed, .. } => Lease {
            holder: None,
            renewed: Some(renewed),
            duration: 1,
            nonce: None,
            ended: ended.or(before.ended),
            ..kept
        },
    }
}
