//! The order of the rows of `status`.

use clap::ValueEnum;

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
