//! Judges a history by what the library promises.
//!
//! It knows what the server stored, what clients believed and when, and what they were answered. It does
//! not know how the library works.

mod belief;
mod digest;
mod earlier_locks;
mod outcomes;
mod owners;
mod pauses;
mod progress;
mod rule;
mod sets;
#[cfg(test)]
mod tests;
mod time;
mod writes;

use self::digest::Index;
pub use self::rule::{Rule, Violation};
use crate::history::Entry;

/// Every promise that `history` breaks, the earliest first.
#[must_use]
pub fn check(history: &[Entry]) -> Vec<Violation> {
    let digest = Index::of(history);
    let panics = digest.panics.iter().map(|&(at, client)| Violation {
        at,
        rule: Rule::NoPanic,
        what: format!("{client} panicked"),
    });
    let mut violations: Vec<Violation> = panics.collect();
    belief::founded(&digest, &mut violations);
    belief::one_believer(&digest, &mut violations);
    writes::check(&digest, &mut violations);
    owners::check(&digest, &mut violations);
    progress::check(&digest, &mut violations);
    time::interval(&digest, &mut violations);
    time::covered(&digest, &mut violations);
    time::time_left(&digest, &mut violations);
    pauses::check(&digest, &mut violations);
    outcomes::check(&digest, &mut violations);
    earlier_locks::check(&digest, &mut violations);
    sets::check(&digest, &mut violations);
    violations.sort_by_key(|violation| violation.at);
    violations
}
