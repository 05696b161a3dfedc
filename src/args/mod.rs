//! Arguments as typed, and what they mean.

pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod default_holder;
pub(crate) mod deprecated;
pub(crate) mod duration;
pub(crate) mod fencing;
pub(crate) mod hook;
pub(crate) mod lock_id;
pub(crate) mod nodes;
pub(crate) mod output;
pub(crate) mod protect;
pub(crate) mod risks;
pub(crate) mod status;
pub(crate) mod take_expired;
pub(crate) mod token;
pub(crate) mod until;
pub(crate) mod wait;
pub(crate) mod write;

/// Whether it may be the name of a pod, a claim or a namespace. It becomes part of a URL path and of lines to
/// paste.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    !name.is_empty() && name.len() <= 253 && name.bytes().all(allowed)
}
