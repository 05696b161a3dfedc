//! Leases and instants for tests of the rules.

use super::decision::Caller;
use super::lease::{Holder, Lease, Version};
use super::names::Id;
use super::time::{Instant, Span};

pub(crate) const ALICE: Holder = holder(1, false);
pub(crate) const BOB: Holder = holder(2, false);
/// Alice as an administrator.
pub(crate) const ADMIN: Holder = holder(11, true);
/// Bob as an administrator.
pub(crate) const OTHER_ADMIN: Holder = holder(12, true);

const fn holder(id: u32, admin: bool) -> Holder {
    Holder { id: Id(id), admin }
}

pub(crate) const fn alice() -> Caller {
    Caller {
        identity: ALICE.id,
        hold_identity: ADMIN.id,
    }
}

pub(crate) fn secs(seconds: u32) -> Instant {
    Instant::from_micros(0) + Span::seconds(seconds)
}

/// A Lease acquired at `at` seconds for `duration` seconds, as the first acquisition.
pub(crate) fn held(holder: Holder, at: u32, duration: u32) -> Lease {
    Lease {
        uid: Id(50),
        version: Version(1),
        holder: Some(holder),
        acquired: Some(secs(at)),
        renewed: Some(secs(at)),
        duration,
        transitions: 1,
        nonce: Some(Id(60)),
        ended: None,
        elected: false,
        deleting: false,
        foreign: false,
    }
}
