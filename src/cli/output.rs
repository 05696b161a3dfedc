//! How results are printed.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, Args, ValueEnum};

use crate::failure::Failure;

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
    /// NODE and the token of its lock, for scripts
    Token,
}

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
    /// Refuses tokens of a verb that leaves no acquisition to have one.
    ///
    /// # Errors
    /// Where they are asked for.
    pub(crate) fn without_tokens(self) -> Result<(), Failure> {
        match self.format() {
            Format::Token => Err(Failure::usage(
                "nothing is held afterwards, so that there is no token for -o token",
                "-o name prints the nodes; status -o token prints the tokens of what is held",
            )),
            _ => Ok(()),
        }
    }

    /// The form asked for, else words for people.
    pub(crate) fn format(self) -> Format {
        self.format.unwrap_or_default()
    }
}

/// The `-o` of a verb that leaves no acquisition to have a token: it offers none. One that is asked for all
/// the same is still read, for the verb to say what helps.
pub(crate) fn offers_no_token(format: Arg) -> Arg {
    let values = Format::value_variants().iter().filter_map(|format| {
        let is_hidden = *format == Format::Token;
        Some(format.to_possible_value()?.hide(is_hidden))
    });
    let parser = PossibleValuesParser::new(values);
    format.value_parser(parser.try_map(|name| Format::from_str(&name, false)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn tokens_are_offered_by_the_verbs_alone_that_may_print_some() {
        let command = Cli::command();
        let is_offered = |verb: &&clap::Command| {
            let format = verb.get_arguments().find(|arg| arg.get_id() == "format");
            let values = format.map(Arg::get_possible_values).unwrap_or_default();
            let mut offered = values.iter().filter(|value| !value.is_hide_set());
            offered.any(|value| value.get_name() == "token")
        };
        let verbs: Vec<&str> = command
            .get_subcommands()
            .filter(is_offered)
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(verbs, ["acquire", "renew", "hold", "status", "wait"]);
    }
}
