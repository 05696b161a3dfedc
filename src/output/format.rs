//! The formats that an outcome can be printed in.

use clap::ValueEnum;

/// The form of what goes to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line or a row for people
    #[default]
    #[value(skip)]
    Text,
    /// Table with more columns
    Wide,
    /// Names as node/NAME
    Name,
    /// Versioned JSON (see docs/json.md)
    Json,
    /// The same as YAML
    Yaml,
    /// The lock id, for scripts; with the node name if there are several nodes
    #[value(alias = "token")]
    LockId,
}
