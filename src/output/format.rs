//! The formats that an outcome can be printed in.

use clap::ValueEnum;

use kubectl_templates::Template;

/// The form of what goes to stdout.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
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
    LockId,
    /// kubectl's templates: jsonpath= and custom-columns=, and whether the columns have headers
    #[value(skip)]
    Template(&'static Template, bool),
}

impl Format {
    /// Whether it is text or a table, and not data for scripts.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }

    /// The same with or without the headers of custom columns.
    pub(crate) fn with_headers(self, headers: bool) -> Self {
        match self {
            Self::Template(template, _) => Self::Template(template, headers),
            format => format,
        }
    }
}

impl PartialEq for Format {
    /// Templates are compared by address.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Template(one, _), Self::Template(other, _)) => std::ptr::eq(*one, *other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}
