//! What to do about a missing right: ask for it by its name.

use std::fmt;

/// Where administrators find it.
pub(crate) const ROLES: &str = "deploy/rbac.yaml has the roles";

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
