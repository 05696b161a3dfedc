//! The state of a lock: in filters, in output, and as what a command waits for.

use clap::ValueEnum;
use maintenance_lease::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of a lock, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, ValueEnum)]
pub(crate) enum LockState {
    /// Nobody holds it.
    #[value(help = "Nobody has the lock")]
    Free,
    /// Somebody has locked it until `until`.
    #[value(help = "Locked, but not on hold")]
    Locked,
    /// Somebody had locked it, and neither renewed nor released it. Anyone may acquire it.
    #[value(help = "The lock ended without a release")]
    Expired,
    /// Somebody has it on hold, for as long as the node exists or until `unhold`.
    #[value(alias = "onhold", help = "Somebody has the node on hold")]
    OnHold,
}

/// What `wait` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Awaited {
    /// No lock, or an expired one
    Free,
    /// Locked, but not on hold
    Locked,
}

impl From<State> for LockState {
    fn from(state: State) -> Self {
        match state {
            State::Free => Self::Free,
            State::Held { .. } => Self::Locked,
            State::Expired { .. } => Self::Expired,
            State::AdminHold => Self::OnHold,
        }
    }
}
