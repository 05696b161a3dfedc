//! How results are printed.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, Args, ValueEnum};

use crate::error::Failure;
use crate::output::format::Format;

/// Output flags, the same for every verb.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<Format>,

    /// Print only warnings, errors and what -o asks for
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl OutputArgs {
    /// Refuses to print lock ids for a verb that leaves no lock behind.
    ///
    /// # Errors
    /// If lock ids are requested.
    pub(crate) fn without_lock_ids(self) -> Result<(), Failure> {
        match self.format() {
            Format::LockId => Err(Failure::usage(
                "-o lock-id is not available: no lock is left afterwards",
                "use -o name to print the nodes",
            )),
            _ => Ok(()),
        }
    }

    /// The requested format, else words for people.
    pub(crate) fn format(self) -> Format {
        self.format.unwrap_or_default()
    }
}

/// The `-o` of a verb that leaves no lock behind: it does not offer lock ids. They are parsed all the same,
/// to let the verb reply with a hint.
pub(crate) fn offers_no_lock_id(format: Arg) -> Arg {
    let values = Format::value_variants().iter().filter_map(|format| {
        let is_hidden = *format == Format::LockId;
        Some(format.to_possible_value()?.hide(is_hidden))
    });
    let parser = PossibleValuesParser::new(values);
    format.value_parser(parser.try_map(|name| Format::from_str(&name, false)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    #[test]
    fn lock_ids_are_offered_by_the_verbs_alone_that_may_print_some() {
        let command = Cli::command();
        let is_offered = |verb: &&clap::Command| {
            let format = verb.get_arguments().find(|arg| arg.get_id() == "format");
            let values = format.map(Arg::get_possible_values).unwrap_or_default();
            let mut offered = values.iter().filter(|value| !value.is_hide_set());
            offered.any(|value| value.get_name() == "lock-id")
        };
        let verbs: Vec<&str> = command
            .get_subcommands()
            .filter(is_offered)
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(verbs, ["acquire", "renew", "hold", "status", "wait"]);
    }
}
