//! Who waits gets in.

use super::digest::Index;
use super::rule::{Rule, Violation};

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    for (client, (due, got_in)) in &digest.waits {
        if got_in.is_none_or(|at| at > *due) {
            violations.push(Violation {
                at: *due,
                rule: Rule::Progress,
                what: match got_in {
                    Some(at) => format!("{client} got in only at {at}"),
                    None => format!("{client} never got in"),
                },
            });
        }
    }
}
