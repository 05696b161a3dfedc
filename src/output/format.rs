//! The forms that an outcome can be printed in.

use clap::ValueEnum;

/// The form of what goes to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line or a row for people
    #[default]
    #[value(skip)]
    Text,
    /// Rows with more columns
    Wide,
    /// node/NAME
    Name,
    /// Documented, versioned JSON
    Json,
    /// The same as YAML
    Yaml,
    /// The lock id, for shells; behind the NODE if several were given
    #[value(alias = "token")]
    LockId,
}
