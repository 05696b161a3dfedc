//! What to do about a missing right: it is named, and the group that has it.

use std::fmt;

use maintenance_lease::NAMESPACE;

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

/// The namespaces whose Leases viewers and users may read.
const OWN_NAMESPACES: [&str; 2] = [NAMESPACE, "kube-node-lease"];

/// The commands of users. With a viewer's rights, their first reads would succeed, and then their writes fail.
const OF_USERS: [&str; 7] = [
    "acquire", "renew", "release", "hold", "unhold", "with", "verify",
];

/// The group whose roles include `right` and what else the command `verb` needs.
fn group(right: &str, verb: &str) -> &'static str {
    let (action, resource) = right.split_once(' ').unwrap_or((right, ""));
    let is_read = matches!(action, "get" | "list" | "watch");
    let (resource, namespace) = resource
        .split_once(" in namespace ")
        .unwrap_or((resource, ""));
    match resource {
        "leases.coordination.k8s.io" if !OWN_NAMESPACES.contains(&namespace) => ADMINISTRATORS,
        "leases.coordination.k8s.io" if !is_read || OF_USERS.contains(&verb) => USERS,
        "leases.coordination.k8s.io" => VIEWERS,
        "namespaces" if !is_read => ADMINISTRATORS,
        _ if matches!(verb, "force-delete" | "why") => OPERATORS,
        _ if matches!(verb, "fence" | "unfence") => FENCERS,
        "nodes" if !is_read => HOLDERS,
        "nodes" if OF_USERS.contains(&verb) => USERS,
        "nodes" => VIEWERS,
        _ => FENCERS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_has_all_that_the_command_needs() {
        let leases = "list leases.coordination.k8s.io";
        let of_locks = format!("get leases.coordination.k8s.io in namespace {NAMESPACE}");
        for (right, verb, wanted) in [
            (&*of_locks, "status", VIEWERS),
            (&*of_locks, "acquire", USERS),
            ("list nodes", "with", USERS),
            ("list nodes", "status", VIEWERS),
            ("list nodes", "fence", FENCERS),
            ("patch nodes", "hold", HOLDERS),
            ("patch nodes", "fence", FENCERS),
            ("list pods", "status", FENCERS),
            ("delete pods in namespace shop", "force-delete", OPERATORS),
            (
                &*format!("{leases} in namespace default"),
                "leases",
                ADMINISTRATORS,
            ),
            (leases, "leases", ADMINISTRATORS),
        ] {
            assert_eq!(group(right, verb), wanted, "{right} for {verb}");
        }
    }
}
