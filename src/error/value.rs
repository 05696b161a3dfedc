//! Why a value on the command line is invalid.

use maintenance_lease::InvalidOption;

/// Why the value of a flag or variable is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InvalidValue {
    /// A number without a unit.
    NoUnit { typed: String },
    /// Not a duration.
    NotADuration,
    /// A duration that is too long for any clock.
    BeyondClocks,
    /// More than the longest duration of a lock.
    LongLock,
    /// The same for a lock that is renewed.
    LongLease,
    /// Not a number of seconds that a lock can last.
    NotALockDuration,
    /// Not a whole number in this range.
    NotANumber { least: u16, most: u16 },
    /// A duration instead of a time.
    NotATime { typed: String },
    /// Not a time with a zone nor, with `or_duration`, a duration.
    UnknownTime { or_duration: bool },
    /// Not a lock id.
    NotALockId,
    /// A value that the library does not accept.
    Option(InvalidOption),
    /// A tool without a known opt-out.
    UnknownOptOut,
    /// The placeholder of our own hints for a reason.
    Placeholder,
    /// That for how the operator knows that the node is off.
    PlaceholderOfProof,
    /// A hold without a reason.
    NoReason,
    /// `--powered-off` without a word about how the operator knows.
    NoProof,
    /// No id of a risk.
    NoRisk,
    /// The id of a blocker that can be overridden, as a risk.
    Blocker { id: String },
    /// The id of a blocker that can't be overridden, as a risk.
    FinalBlocker { id: String },
    /// The id of a finding that is no risk.
    Informational { id: String },
    /// Not the id of a risk.
    UnknownRisk { typed: String },
    /// Not the key of a label.
    NotALabelKey,
    /// A lock id as the bearer token of a command that takes no lock id.
    LockIdAsToken,
    /// More than one lock id.
    ManyLockIds,
    /// A bearer token that looks like a lock id with a typo.
    LikeALockId,
    /// An empty bearer token of a command that takes a lock id.
    EmptyToken,
}

/// A name of an earlier release that still works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deprecated {
    /// `--token` for a lock id.
    LockIdAsToken,
    /// `-o token`.
    TokenFormat,
    /// `--override`.
    Override,
    /// `--confirm`.
    Confirm,
    /// `--until` of hold.
    UntilOfHold,
    /// `--locked`.
    Locked,
    /// A state of `wait --for`.
    WaitFor {
        old: &'static str,
        new: &'static str,
    },
    /// An id of `--accept-risk`.
    Risk { old: String, new: &'static str },
    /// A variable.
    Variable {
        old: &'static str,
        new: &'static str,
    },
}

impl std::error::Error for InvalidValue {}
