//! Invalid values on the command line: what is wrong, and what to type instead. The argument parser prints
//! the flag first.

use std::fmt;

use pod_safety::checks::RISKS;
use pod_safety::consent::NONE;

use super::hint_command::{NO_PROOF, NO_REASON};
use super::keys::known_tools;
use super::time::longest_lock;
use crate::error::InvalidValue;
use crate::text::shown;

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit { typed } => return write!(f, "add a unit, e.g. {typed}s or {typed}m"),
            Self::NotADuration => "not a duration, e.g. 90s, 30m or 1h",
            Self::BeyondClocks => "must not be longer than 3650d",
            Self::LongLock => {
                let longest = longest_lock();
                return write!(
                    f,
                    "must not be longer than {longest}; if the work takes longer, use hold"
                );
            }
            Self::LongLease => {
                let longest = longest_lock();
                return write!(
                    f,
                    "must not be longer than {longest}; the lock is renewed until the command ends"
                );
            }
            Self::NotALockDuration => {
                let longest = longest_lock();
                return write!(f, "must be a whole number of seconds from 1s to {longest}");
            }
            Self::UnknownTime => {
                "not a time with a time zone, e.g. 2026-11-22T18:00Z, or a duration, e.g. 2d or 90m"
            }
            Self::NotALockId => "not a lock id (see acquire -o lock-id)",
            Self::Option(error) => return error.fmt(f),
            Self::UnknownOptOut => return write!(f, "use {}", known_tools()),
            Self::Placeholder => return write!(f, "replace {NO_REASON} with your reason"),
            Self::PlaceholderOfProof => {
                return write!(f, "replace {NO_PROOF} with how you know it");
            }
            Self::NoReason => "a hold needs a reason, because it may last long",
            Self::NoProof => "say how you know that the node is off",
            Self::NoRisk => {
                return write!(
                    f,
                    "no ID given: --accept-risk alone accepts all risks, --accept-risk={NONE} accepts none"
                );
            }
            Self::Blocker { id } => {
                return write!(f, "`{id}` is a blocker: use --override={id}");
            }
            Self::FinalBlocker { id } => return write!(f, "`{id}` cannot be accepted"),
            Self::Informational { id } => {
                return write!(f, "`{id}` is informational and needs no confirmation");
            }
            Self::UnknownRisk { typed } => {
                let (typed, valid) = (shown(typed), RISKS.join(", "));
                return write!(f, "unknown ID {typed:?}; valid IDs are {valid}");
            }
            Self::NotALabelKey => "not the key of a label, e.g. topology.kubernetes.io/zone",
        })
    }
}
