//! The identity of a caller, as a Lease stores it.

use std::borrow::Cow;

/// Holder identities that begin with this are administrators' holds (KEP-1411).
pub const ADMIN_PREFIX: &str = "kubeadm";

/// The prefix that [`hold_identity`] adds to an identity.
const HOLD_PREFIX: &str = "kubeadm:";

/// Whether `holder` is an administrator's hold.
#[must_use]
pub fn is_admin(holder: &str) -> bool {
    holder.starts_with(ADMIN_PREFIX)
}

/// The holder that an administrator's hold by `identity` is written as.
#[must_use]
pub fn hold_identity(identity: &str) -> String {
    format!("{HOLD_PREFIX}{identity}")
}

/// The identity behind a holder: the administrator's own if it is a hold that was made with this tool,
/// otherwise the holder as it is.
#[must_use]
pub fn person(holder: &str) -> &str {
    match holder.strip_prefix(HOLD_PREFIX) {
        None | Some("") => holder,
        Some(person) => person,
    }
}

/// Whether the person behind `holder` seems to be the user of `identity` on another host: both are `user@host` with the same
/// user.
#[must_use]
pub fn is_same_user(holder: &str, identity: &str) -> bool {
    let user = |identity: &str| identity.split_once('@').map(|(user, _)| user.to_owned());
    let holder = person(holder);
    holder != identity
        && user(holder).is_some()
        && user(holder) == user(identity)
        && validate(holder).is_ok()
}

/// A name as people read it: in quotes if it is only white space or has white space at an end, which
/// other tools may write. Without quotes, readers would see no holder, or another holder.
#[must_use]
pub fn visible(name: &str) -> Cow<'_, str> {
    if name.trim() == name {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("\"{name}\""))
    }
}

/// The identity `user@host`.
#[must_use]
pub fn of_user_at(user: &str, host: &str) -> String {
    never_admin(format!("{user}@{host}"))
}

/// API users that many people and programs share. A lock of theirs would not tell whose it is.
pub const SHARED_USERS: [&str; 9] = [
    "admin",
    "cluster-admin",
    "kube:admin",
    "kubernetes-admin",
    "kubernetes-super-admin",
    "masterclient",
    "system:admin",
    "system:anonymous",
    "system:unsecured",
];

/// The longest name of an API user that is used as an identity, in bytes. Programs may add to it.
const LONGEST_USER: usize = 200;

/// The identity of an API user; `None` if the name can't be one.
#[must_use]
pub fn of_api_user(name: &str) -> Option<String> {
    let identity = never_admin(name.to_owned());
    let is_valid = name.len() <= LONGEST_USER && validate(&identity).is_ok();
    is_valid.then_some(identity)
}

/// An identity with the prefix `user:` if it would begin with `kubeadm`, to prevent permanent holds by accident.
fn never_admin(identity: String) -> String {
    match is_admin(&identity) {
        true => format!("user:{identity}"),
        false => identity,
    }
}

/// Why an identity can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIdentity {
    /// It is empty, which would mean that the lock is free.
    #[error("a holder identity must not be empty")]
    Empty,
    /// It begins with `kubeadm`, which would make the lease a hold that never expires.
    #[error(
        "a holder identity must not begin with {ADMIN_PREFIX:?}: such a lock would never expire"
    )]
    Admin,
    /// It has white space at an end or control characters, which nobody could type.
    #[error("a holder identity must not have control characters, nor white space at its ends")]
    Untypable,
    /// It is longer than 253 bytes.
    #[error("a holder identity must not be longer than {LONGEST_IDENTITY} bytes")]
    TooLong,
}

/// The longest identity that is accepted, in bytes: that of a Kubernetes name.
pub const LONGEST_IDENTITY: usize = 253;

/// Checks an identity for locking nodes.
///
/// # Errors
/// Describes what is wrong with it.
pub fn validate(identity: &str) -> Result<(), InvalidIdentity> {
    if is_admin(identity) {
        Err(InvalidIdentity::Admin)
    } else {
        validate_holder(identity)
    }
}

/// Checks an identity for any Lease: outside the namespace of the node maintenance Leases, the prefix
/// `kubeadm` has no meaning.
///
/// # Errors
/// Describes what is wrong with it.
pub fn validate_holder(identity: &str) -> Result<(), InvalidIdentity> {
    if identity.is_empty() {
        Err(InvalidIdentity::Empty)
    } else if identity.len() > LONGEST_IDENTITY {
        Err(InvalidIdentity::TooLong)
    } else if identity.trim() != identity || identity.contains(char::is_control) {
        Err(InvalidIdentity::Untypable)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_a_hold_by_accident() {
        assert_eq!(of_user_at("alice", "bastion"), "alice@bastion");
        assert_eq!(of_user_at("kubeadmin", "bastion"), "user:kubeadmin@bastion");
        assert!(!is_admin(&of_user_at("kubeadm", "host")));
        let of = |name| of_api_user(name);
        assert_eq!(of("kubeadmin").as_deref(), Some("user:kubeadmin"));
        assert_eq!(of("kubeadm:alice").as_deref(), Some("user:kubeadm:alice"));
    }

    #[test]
    fn an_api_user_is_an_identity_if_its_name_can_be_one() {
        for name in [
            "alice",
            "alice@example.com",
            "system:serviceaccount:a:b",
            "https://i#a",
        ] {
            assert_eq!(of_api_user(name).as_deref(), Some(name));
        }
        for name in ["", " alice", "al\x1bice", &"a".repeat(201)] {
            assert_eq!(of_api_user(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_hold_names_the_person_behind_it() {
        let hold = hold_identity("alice@bastion");
        assert_eq!(hold, "kubeadm:alice@bastion");
        assert!(is_admin(&hold));
        assert_eq!(person(&hold), "alice@bastion");
        assert_eq!(person("kubeadm-by-hand"), "kubeadm-by-hand");
        assert_eq!(person("kubeadm:"), "kubeadm:", "nobody is behind it");
    }

    #[test]
    fn the_same_user_on_another_host_is_recognized() {
        assert!(is_same_user("alice@laptop", "alice@bastion"));
        assert!(is_same_user("kubeadm:alice@laptop", "alice@bastion"));
        assert!(!is_same_user("alice@bastion", "alice@bastion"));
        assert!(!is_same_user("bob@bastion", "alice@bastion"));
        assert!(!is_same_user("alice", "alice@bastion"));
        assert!(!is_same_user("alice@bastion ", "alice@bastion"));
    }

    #[test]
    fn white_space_is_seen() {
        assert_eq!(visible("alice@bastion"), "alice@bastion");
        assert_eq!(visible("alice of bastion"), "alice of bastion");
        assert_eq!(visible("  "), "\"  \"");
        assert_eq!(visible("alice "), "\"alice \"");
        assert_eq!(visible("\u{a0}"), "\"\u{a0}\"");
    }

    #[test]
    fn unusable_identities_are_refused() {
        assert_eq!(validate("alice@bastion"), Ok(()));
        assert_eq!(validate(""), Err(InvalidIdentity::Empty));
        assert_eq!(validate("kubeadm:alice"), Err(InvalidIdentity::Admin));
        assert_eq!(validate_holder("kubeadm-0_alice"), Ok(()));
        assert_eq!(validate(" alice"), Err(InvalidIdentity::Untypable));
        assert_eq!(validate("al\x1bice"), Err(InvalidIdentity::Untypable));
        assert_eq!(validate(&"a".repeat(254)), Err(InvalidIdentity::TooLong));
    }
}
