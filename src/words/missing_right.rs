//! What to do about a missing right: it is named, and the file with the roles.

use std::fmt;

/// How to get the permission to do something with a resource.
pub(crate) fn permission(right: &dyn fmt::Display) -> String {
    format!("ask an administrator for permission to {right}; {ROLES}")
}

/// The same for a right on Leases that only the policies check.
pub(crate) fn right(right: &str) -> String {
    format!("ask an administrator for the right \"{right}\" on leases; {ROLES}")
}

/// The same for several permissions that were listed.
pub(crate) fn permissions() -> String {
    format!("ask an administrator for these permissions; {ROLES}")
}

const ROLES: &str = "deploy/rbac.yaml has the roles";
