//! What is waited for, and what blocks it.

use std::time::Duration;

use crate::options::{Acquire, Hold};
use crate::outcome::{Error, Refused};
use crate::protocol::Instant;

/// What blocks a waiter.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The refusal that an acquisition would get now: the holder, since when and why.
    pub refused: Refused,
    /// The earliest time that it can expire, by the server's time, unless it is released before; `None`
    /// if it does not expire.
    pub earliest: Option<Instant>,
}

/// What a waiter reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The lock is blocked by a new holder, or the Lease changed: a renewal moves [`Blocked::earliest`].
    Blocked(&'a Blocked),
    /// The Lease can't be watched: see [`Followed::Unwatched`](crate::Followed::Unwatched).
    Unwatched(&'a Error),
    /// The Lease can be watched again.
    Watched,
}

impl Blocked {
    /// Whether `earlier` reported the same obstacle: the same acquisition with the same reason. It may
    /// have been renewed since.
    #[must_use]
    pub fn is_still(&self, earlier: &Self) -> bool {
        let (now, then) = (&self.refused, &earlier.refused);
        now.refusal == then.refusal && acquisition(now) == acquisition(then)
    }
}

/// What is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Goal<'a> {
    Acquire(&'a Acquire),
    Hold(&'a Hold),
    /// To lead, with a lease of this duration.
    Elect(Duration),
}

/// What distinguishes one obstacle from the next.
fn acquisition(refused: &Refused) -> Option<(&str, u32, Option<&str>, Option<&str>)> {
    refused.lease.as_ref().map(|lease| {
        (
            lease.uid.as_str(),
            lease.transitions,
            lease.holder(),
            lease.reason(),
        )
    })
}
