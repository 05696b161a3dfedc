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
    /// Neither a time with a zone nor a duration.
    UnknownTime,
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
}

impl std::error::Error for InvalidValue {}
