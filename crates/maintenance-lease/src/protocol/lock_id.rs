//! The lock id: one opaque, shell-safe word for one acquisition.

use std::fmt;
use std::str::FromStr;

/// Identifies one acquisition of one Lease, for scripts that must act on this acquisition or not at all.
///
/// Printed, it is `UID.TRANSITIONS.NONCE`: letters, digits, `-` and `.` only. The nonce is what
/// makes it unique: an etcd restored from a backup repeats uid and transitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockId {
    uid: String,
    transitions: u32,
    nonce: String,
}

/// A word that is not a lock id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a lock id")]
pub struct InvalidLockId(String);

impl LockId {
    /// The lock id of the acquisition that `nonce` marks; `None` if a part has characters that a
    /// lock id can't carry, which no Lease of ours has.
    #[must_use]
    pub fn new(uid: &str, transitions: u32, nonce: &str) -> Option<Self> {
        let safe = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        (safe(uid) && safe(nonce)).then(|| Self {
            uid: uid.to_owned(),
            transitions,
            nonce: nonce.to_owned(),
        })
    }

    /// The Lease's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The Lease's count of transitions at this acquisition.
    #[must_use]
    pub fn transitions(&self) -> u32 {
        self.transitions
    }

    /// The acquisition's nonce.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.uid, self.transitions, self.nonce)
    }
}

impl FromStr for LockId {
    type Err = InvalidLockId;

    fn from_str(word: &str) -> Result<Self, InvalidLockId> {
        let mut parts = word.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(uid), Some(transitions), Some(nonce), None) => transitions
                .parse()
                .ok()
                .and_then(|transitions| Self::new(uid, transitions, nonce))
                // Each lock id has exactly one spelling, so `+7` is not accepted for 7.
                .filter(|lock_id| lock_id.to_string() == word),
            _ => None,
        }
        .ok_or_else(|| InvalidLockId(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_id_survives_printing() {
        let lock_id = LockId::new("8d1c-4f", 7, "k3v9").expect("safe parts");
        assert_eq!(lock_id.to_string(), "8d1c-4f.7.k3v9");
        assert_eq!(lock_id.to_string().parse(), Ok(lock_id));
    }

    #[test]
    fn other_words_are_no_lock_ids() {
        for word in [
            "", "a", "a.b.c", "a.1.", "a.1.c.d", "a.-1.c", "a.+1.c", "a.1.$(x)",
        ] {
            assert_eq!(
                word.parse::<LockId>(),
                Err(InvalidLockId(word.to_owned())),
                "{word:?}"
            );
        }
    }
}
