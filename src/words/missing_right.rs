//! Hints for a missing right: which one to ask for.

use std::fmt;

/// Where the roles with these rights come from.
pub(crate) const ROLES: &str = "`kubectl maint install` creates the roles (deploy/rbac.yaml)";

/// How to get the permission to do something with a resource.
pub(crate) fn permission(right: impl fmt::Display) -> String {
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
