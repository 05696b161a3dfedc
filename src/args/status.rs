//! What `status` shows, and in which order.

use clap::ValueEnum;
use maintenance_lease::protocol::State;

/// A state to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFilter {
    /// Nobody holds the lock
    Free,
    /// Somebody holds the lock
    Locked,
    /// The lock ended without a release
    Expired,
    /// Somebody has the node on hold
    #[value(alias = "onhold")]
    OnHold,
}

impl StateFilter {
    /// All but free.
    pub(crate) const TAKEN: [Self; 3] = [Self::Locked, Self::Expired, Self::OnHold];

    pub(crate) fn of(state: State) -> Self {
        match state {
            State::Free => Self::Free,
            State::Held { .. } => Self::Locked,
            State::Expired { .. } => Self::Expired,
            State::AdminHold => Self::OnHold,
        }
    }
}

/// What rows are sorted by. Rows without the value come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortKey {
    /// Name of the node
    #[value(aliases = ["name", ".node", "{.node}", ".metadata.name", "{.metadata.name}"])]
    Node,
    /// Expired first, then overdue, on hold, locked and free
    #[value(aliases = [".state", "{.state}"])]
    State,
    /// Holder of the lock
    #[value(aliases = [".holder", "{.holder}"])]
    Holder,
    /// Oldest lock first
    #[value(aliases = [".age", "{.age}", ".acquiredAt", "{.acquiredAt}"])]
    Age,
    /// First to expire first
    #[value(aliases = [".left", "{.left}", ".until", "{.until}"])]
    Left,
}
