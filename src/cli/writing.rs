//! Flags of the verbs that change something.

use clap::{Args, ValueEnum};

/// Whether something is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRunMode {
    /// Do it
    #[default]
    None,
    /// Decide and say it; send nothing that writes
    Client,
    /// Let the server check it and store nothing
    Server,
}

/// Flags of every verb that changes something.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArgs {
    /// Only show what would happen; MODE is client (default) or server
    ///
    /// client sends no write requests. server sends them for the API server to check, but nothing is
    /// stored. --dry-run alone means client.
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value = "none",
        default_missing_value = "client",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) dry_run: DryRunMode,

    /// Name that is recorded as the manager of the written fields
    #[arg(
        long,
        value_name = "NAME",
        default_value = "kubectl-maint",
        hide_short_help = true
    )]
    pub(crate) field_manager: String,
}

impl DryRunMode {
    /// What stands behind a message that is not quite true.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

impl From<DryRunMode> for maintenance_lease::DryRun {
    fn from(mode: DryRunMode) -> Self {
        match mode {
            DryRunMode::None => Self::None,
            DryRunMode::Client => Self::Client,
            DryRunMode::Server => Self::Server,
        }
    }
}

/// What stands for the reason in a command to be typed next, where none was given.
pub(crate) const NO_REASON: &str = "WHY";

/// Reads a reason: at most a kibibyte, since every client of the Lease carries it around. Whoever pastes a
/// command has to give one of their own.
pub(crate) fn reason(typed: &str) -> Result<String, String> {
    if typed.trim() == NO_REASON {
        return Err(format!(
            "{NO_REASON} stands for your reason: give it instead"
        ));
    }
    maintenance_lease::check_reason(typed)
        .map(|()| typed.to_owned())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_reason_is_none() {
        assert_eq!(reason("unplugged"), Ok("unplugged".to_owned()));
        assert_eq!(reason("WHY not"), Ok("WHY not".to_owned()));
        for placeholder in ["WHY", " WHY"] {
            let error = reason(placeholder).expect_err(placeholder);
            assert!(error.contains("stands for your reason"), "{error}");
        }
    }
}
