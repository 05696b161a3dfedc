//! How to lock a set of nodes, and the outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::reads::NodeAndLease;
use crate::maintenance::Maintenance;
use crate::maintenance::verbs::Plan;
use crate::options::{Acquire, DEFAULT_DURATION, Hold, InvalidOption};
use crate::outcome::{Change, Error, Refused};
use crate::waiting::{Goal, Progress};

/// How many requests of a set are under way at once.
pub(super) const PARALLEL: usize = 32;

/// How to lock several nodes.
#[derive(Clone, Debug)]
#[must_use]
pub struct SetOptions {
    verb: Verb,
    pub(super) manner: OnConflict,
    pub(super) limit: Option<Duration>,
    pub(super) parallel: usize,
}

#[derive(Clone, Debug)]
enum Verb {
    Acquire(Acquire),
    Hold(Hold),
}

/// What to do about locks that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnConflict {
    /// Keep the locks that succeed.
    Partial,
    /// All or none, without waiting for holders.
    AtOnce,
    /// All or none. Wait for holders.
    Waiting,
}

impl SetOptions {
    /// Acquires all of them or none, without waiting for holders.
    pub fn acquire(options: Acquire) -> Self {
        Self::new(Verb::Acquire(options))
    }

    /// Puts all of them on hold or none, without waiting for holders.
    pub fn hold(options: Hold) -> Self {
        Self::new(Verb::Hold(options))
    }

    fn new(verb: Verb) -> Self {
        Self {
            verb,
            manner: OnConflict::AtOnce,
            limit: None,
            parallel: PARALLEL,
        }
    }

    /// Keeps the locks that succeed.
    pub fn partial(mut self) -> Self {
        self.manner = OnConflict::Partial;
        self
    }

    /// Waits for holders, at most for `limit`; `None`: as long as it takes. A dry run does not wait.
    pub fn wait(mut self, limit: Option<Duration>) -> Self {
        self.manner = OnConflict::Waiting;
        self.limit = limit;
        self
    }

    /// How many nodes are locked in parallel; 32 by default.
    pub fn parallel(mut self, requests: usize) -> Self {
        self.parallel = requests.max(1);
        self
    }

    pub(super) fn goal(&self) -> Goal<'_> {
        match &self.verb {
            Verb::Acquire(options) => Goal::Acquire(options),
            Verb::Hold(options) => Goal::Hold(options),
        }
    }

    /// What happens to a node, as a participle.
    pub(super) fn intent(&self) -> &'static str {
        match &self.verb {
            Verb::Acquire(_) => "acquired",
            Verb::Hold(_) => "put on hold",
        }
    }

    /// Whether it would be refused on what was seen.
    pub(super) fn check(&self, locks: &Maintenance, seen: &NodeAndLease) -> Result<(), Error> {
        match &self.verb {
            Verb::Acquire(options) => locks.check_acquire(seen, options),
            Verb::Hold(options) => locks.check_hold(seen, options),
        }
    }

    /// What is done to this node.
    pub(super) fn plan(&self, locks: &Maintenance, node: &str) -> Result<Plan, InvalidOption> {
        match &self.verb {
            Verb::Acquire(options) => locks.plan_acquire(options),
            Verb::Hold(options) => locks.plan_hold(options, node),
        }
    }

    /// For how long each is locked, or checked if it is put on hold.
    pub(super) fn duration(&self) -> Duration {
        match &self.verb {
            Verb::Acquire(options) => options.duration,
            Verb::Hold(_) => DEFAULT_DURATION,
        }
    }
}

/// The progress of a set.
#[derive(Debug)]
#[non_exhaustive]
pub struct SetProgress<'a> {
    /// How many locks are held.
    pub held: usize,
    /// How many were refused or failed.
    pub refused: usize,
    /// The size of the set.
    pub all: usize,
    /// News from the wait for one lock.
    pub waiting: Option<Progress<'a>>,
}

/// The outcome of a set, by node.
#[derive(Debug)]
pub struct SetOutcome {
    /// The locks that are held now. If all or none was asked for and failed, or it was interrupted, it is
    /// empty, except for holds that replaced another lock.
    pub held: BTreeMap<String, Change>,
    /// Why others are not held. A node that was released, or not tried, is in neither map.
    pub failed: BTreeMap<String, SetError>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Acquisitions that replaced an expired lock and were released again. The work of its holder may be unfinished, and
    /// nothing but the history shows that any more.
    pub replaced: BTreeMap<String, Change>,
}

/// Why a node of a set is not locked.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The error of this lock; [`Error::Lost`] if it was acquired and lost again.
    #[error(transparent)]
    Lock(#[from] Error),
    /// The time limit passed. The refusal says who holds the lock, if that is known.
    #[error("timed out{}", .0.as_ref().map(|refused| format!(": {refused}")).unwrap_or_default())]
    TimedOut(Option<Box<Refused>>),
    /// It was interrupted.
    #[error("interrupted{}", if *.may_land { "; the write may still take effect" } else { "" })]
    Interrupted {
        /// Whether a write was under way, which may still take effect.
        may_land: bool,
    },
    /// It was acquired and could not be released.
    #[error("acquired, but not released: {cause}")]
    NotReleased {
        /// The acquisition.
        change: Box<Change>,
        /// Why not.
        cause: Box<Error>,
    },
}
