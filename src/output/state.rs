//! The state of a lock as data.

use maintenance_lease::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of a lock, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum LockState {
    /// Nobody holds it.
    Free,
    /// Somebody has locked it until `until`.
    Locked,
    /// Somebody had locked it, and neither renewed nor released it. Anyone may acquire it.
    Expired,
    /// Somebody has it on hold, for as long as the node exists or until `unhold`.
    OnHold,
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
