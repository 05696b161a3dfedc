//! Judges a history by what the library promises.
//!
//! It knows what the server stored, what clients believed and when, and what they were told; it
//! knows nothing of how the library works.

mod belief;
mod digest;
mod progress;
#[cfg(test)]
mod tests;
mod writes;

use std::fmt;

use self::digest::Digest;
use crate::history::Entry;
use crate::time::Time;

/// What the library promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No two clients believe at once that they hold a node, but where the lock of the first was
    /// broken before.
    OneBeliever,
    /// Belief rests on a write of the believer's that was committed, for no longer than from before
    /// it was sent until its duration later.
    Founded,
    /// What is acknowledged was committed, once, between the call and its end.
    Acknowledged,
    /// What was refused does not stand, now or later.
    Refused,
    /// Every acquisition counts one up, and nothing else counts.
    Transitions,
    /// Fencing numbers rise from acquisition to acquisition.
    Fencing,
    /// A lease is taken from its holder only after its end, and a hold never.
    TakenInTime,
    /// A lock is broken only where that very acquisition was confirmed; releases and renewals touch
    /// the caller's own, and where one is demanded that one.
    Meant,
    /// Once a release is asked for, nothing is renewed any more.
    Released,
    /// What is said to be lost is lost.
    Lost,
    /// Who waits gets in, within a bound once faults are over.
    Progress,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Time,
    /// Which.
    pub rule: Rule,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {:?}: {}", self.at, self.rule, self.what)
    }
}

/// Every promise that `history` breaks, the earliest first.
#[must_use]
pub fn check(history: &[Entry]) -> Vec<Violation> {
    let digest = Digest::of(history);
    let mut violations = Vec::new();
    belief::founded(&digest, &mut violations);
    belief::one_believer(&digest, &mut violations);
    writes::check(&digest, &mut violations);
    progress::check(&digest, &mut violations);
    violations.sort_by_key(|violation| violation.at);
    violations
}
