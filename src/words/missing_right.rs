//! What to do about a missing right: it is named, and the group that has it.

use std::fmt;

use super::hint_command::Program;

const VIEWERS: &str = "kubectl-maint:viewers";
const USERS: &str = "kubectl-maint:users";
const HOLDERS: &str = "kubectl-maint:holders";
const FENCERS: &str = "kubectl-maint:fencers";
const OPERATORS: &str = "kubectl-maint:operators";
const ADMINISTRATORS: &str = "kubectl-maint:administrators";

/// How to get the permission to do something with a resource, for the command of `program`.
pub(crate) fn permission(right: &dyn fmt::Display, program: &Program) -> String {
    let right = right.to_string();
    let group = group(&right, program.verb());
    format!("ask an administrator for permission to {right}; the group {group} has it")
}

/// The same for a right on Leases that only the policies check.
pub(crate) fn right(right: &str) -> String {
    let group = match right {
        "hold" => HOLDERS,
        _ => ADMINISTRATORS,
    };
    format!("ask an administrator for the right \"{right}\" on leases; the group {group} has it")
}

/// The same for several permissions that were listed, to lock nodes.
pub(crate) fn permissions() -> String {
    format!("ask an administrator for these permissions; the group {USERS} has them")
}

/// All groups, the first in full.
pub(crate) fn all_groups() -> String {
    let others = [USERS, HOLDERS, FENCERS, OPERATORS];
    let short = |group: &'static str| group.trim_start_matches("kubectl-maint");
    format!(
        "{VIEWERS}, {} and {}",
        others.map(short).join(", "),
        short(ADMINISTRATORS)
    )
}

/// The group whose roles include `right`, which the command `verb` needs.
fn group(right: &str, verb: &str) -> &'static str {
    let (action, resource) = right.split_once(' ').unwrap_or((right, ""));
    let is_read = matches!(action, "get" | "list" | "watch");
    let (resource, namespace) = resource
        .split_once(" in namespace ")
        .unwrap_or((resource, ""));
    match (resource, verb) {
        ("leases.coordination.k8s.io", _) if namespace.is_empty() => ADMINISTRATORS,
        ("leases.coordination.k8s.io" | "nodes", _) if is_read => VIEWERS,
        ("leases.coordination.k8s.io", _) => USERS,
        ("namespaces", _) if !is_read => ADMINISTRATORS,
        (_, "force-delete" | "why") => OPERATORS,
        ("nodes", "fence" | "unfence") => FENCERS,
        ("nodes", _) => HOLDERS,
        _ => FENCERS,
    }
}
