//! What a fencing costs, before it is done.

use pod_safety::fencing::Cost;

use super::remains::{count, list};
use super::retry::accepting;
use crate::error::Failure;
use crate::words::program::Program;

/// What the fencing of `node` costs, a line each.
pub(crate) fn cost(node: &str, cost: &Cost) -> Vec<String> {
    let lines = [
        (&cost.no_owner, "deleted, and nothing recreates"),
        (&cost.scratch, "emptyDir data lost in"),
        (
            &cost.staying,
            "static or tolerating the taint, so not deleted:",
        ),
    ];
    let lines = lines.iter().filter(|(pods, _)| !pods.is_empty());
    let lines = lines.map(|(pods, what)| {
        format!(
            "node/{node}: {what} {} ({})",
            count(pods.len(), "pod"),
            list(pods)
        )
    });
    lines.collect()
}

/// `node` is not fenced, because nothing recreates some of its pods.
pub(crate) fn no_owner(node: &str, cost: &Cost, program: &Program) -> Failure {
    let pods = &cost.no_owner;
    Failure::Unsafe {
        message: format!(
            "cannot fence node/{node}: nothing recreates {} ({})",
            count(pods.len(), "pod"),
            list(pods)
        ),
        hint: format!("to fence it anyway, {}", accepting(program, "no-owner")),
    }
}
