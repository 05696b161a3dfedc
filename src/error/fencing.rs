//! What can go wrong in a fencing.

use std::time::Duration;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, Span};
use pod_safety::fencing::{Attempt, steps, unfencing};
use supervisor::Exit;

/// What is too dangerous for `node`.
#[derive(Clone, Debug)]
pub(crate) enum FencingRefusal {
    /// To fence it.
    Fence { node: String, why: steps::Refusal },
    /// The same, because nothing shows that the suspect has stopped reporting since it was proven to be off.
    StillReports { node: String, waited: Duration },
    /// To return it to service.
    Unfence {
        node: String,
        why: unfencing::Refusal,
    },
    /// The same, because it was fenced again meanwhile.
    FencedAgain { node: String },
    /// To run a hook, because the lock may end earlier.
    ShortLock {
        node: String,
        /// What is left of the lock.
        left: Span,
        /// How long the hook and its processes may take.
        needed: Duration,
    },
    /// To end this lock before the node is unfenced.
    EndLock { lock: Box<NodeLease>, now: Now },
}

/// Why a hook was not started, or what happened to it.
#[derive(Clone, Debug)]
pub(crate) enum HookError {
    /// Another one may still be running.
    Running {
        node: String,
        other: Attempt,
        now: Instant,
    },
    /// The suspect must be cordoned first, and could not be. That was reported.
    NotCordoned { node: String },
    /// It failed.
    Failed {
        node: String,
        end: HookEnd,
        has_output: bool,
    },
    /// It was interrupted.
    Interrupted { node: String, has_output: bool },
    /// It succeeded, but the node stayed unreachable.
    StillUnreachable { node: String, waited: Duration },
    /// It succeeded, but the Node was deleted.
    NodeGone { node: String },
}

/// How a hook failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookEnd {
    /// It was ended after this long.
    TimedOut(Duration),
    /// It ended by itself, or by a signal.
    Exited(Exit),
    /// It is unknown.
    Unknown,
}

/// A write of a fencing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FencingWrite {
    /// The hold.
    Hold,
    /// The end of the hold.
    EndHold,
    /// The annotation that a hook may be running.
    Hook,
    /// The record, by which the node is fenced. A hook stays recorded under this id until then.
    Record { hook: Option<String> },
    /// The return to service.
    Return,
}
