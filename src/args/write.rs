//! Flags of the verbs that change something.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args};
use maintenance_lease::{Acquire, DryRun, Maintenance};

use crate::error::InvalidValue;
use crate::words::hint_command::NO_REASON;
use crate::words::usage;

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
        value_parser = dry_run(),
        num_args = 0..=1,
        require_equals = true,
        default_value = "none",
        default_missing_value = "client",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) dry_run: DryRun,

    /// Name that is recorded as the manager of the written fields
    #[arg(
        long,
        value_name = "NAME",
        default_value = "kubectl-maint",
        hide_short_help = true
    )]
    pub(crate) field_manager: String,
}

/// The flag of the verbs that lock nodes.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct NamespaceArgs {
    /// Create the namespace of the locks if it does not exist
    ///
    /// Without this flag, a missing namespace is an error. On a terminal, you are asked whether to create it, unless
    /// you add --yes.
    #[arg(long, hide_short_help = true)]
    create_namespace: bool,
}

/// A flag of a verb that asks on a terminal without it, and has no --yes.
pub(crate) fn asks_without_yes(flag: Arg) -> Arg {
    let help = flag.get_long_help().map(ToString::to_string);
    let help = help.unwrap_or_default().replace(usage::UNLESS_YES, "");
    let (with_yes, without) = usage::WITH_YES;
    flag.long_help(help.replace(with_yes, without))
}

/// That of a verb that never asks.
pub(crate) fn never_asks(flag: Arg) -> Arg {
    let help = flag.get_long_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let help = help
        .split_once(usage::ON_A_TERMINAL)
        .map_or(&*help, |(help, _)| help);
    flag.long_help(help.to_owned())
}

impl NamespaceArgs {
    /// Lets `locks` create the namespace, or not.
    pub(crate) fn apply(self, locks: &Maintenance) {
        locks.set_creates_namespace(self.create_namespace);
    }
}

/// Parses `none`, `client` or `server`.
fn dry_run() -> impl TypedValueParser<Value = DryRun> {
    PossibleValuesParser::new(["none", "client", "server"]).map(|mode| match &*mode {
        "client" => DryRun::Client,
        "server" => DryRun::Server,
        _ => DryRun::None,
    })
}

/// Parses a reason of at most one kibibyte, because every client of the Lease carries it around. The
/// placeholder in our hints is refused: the operator must give a reason of their own.
pub(crate) fn reason(typed: &str) -> Result<String, InvalidValue> {
    if typed.trim() == NO_REASON {
        return Err(InvalidValue::Placeholder);
    }
    maintenance_lease::check_reason(typed).map_err(InvalidValue::Option)?;
    Ok(typed.to_owned())
}

/// Parses a reason that must not be empty; else it is `missing`.
pub(crate) fn non_empty_reason(typed: &str, missing: InvalidValue) -> Result<String, InvalidValue> {
    match typed.trim() {
        "" => Err(missing),
        _ => reason(typed),
    }
}

/// Why a lock is acquired.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReasonArgs {
    /// Reason for the lock, shown to others
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) ticket: TicketArgs,
}

impl ReasonArgs {
    /// `options` with reason and ticket.
    pub(crate) fn acquire(&self, mut options: Acquire) -> Acquire {
        if let Some(reason) = &self.message {
            options = options.reason(reason);
        }
        if let Some(ticket) = &self.ticket.ticket {
            options = options.ticket(ticket);
        }
        options
    }
}

/// The ticket of a lock.
#[derive(Args, Clone, Debug)]
pub(crate) struct TicketArgs {
    /// URL or id of a ticket, shown with the reason
    #[arg(long, value_name = "URL|ID", value_parser = ticket)]
    pub(crate) ticket: Option<String>,
}

fn ticket(typed: &str) -> Result<String, InvalidValue> {
    maintenance_lease::check_ticket(typed).map_err(InvalidValue::Option)?;
    Ok(typed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_reasons() {
        assert_eq!(reason("unplugged"), Ok("unplugged".to_owned()));
        assert_eq!(reason("WHY not"), Ok("WHY not".to_owned()));
        for placeholder in ["WHY", " WHY"] {
            assert_eq!(reason(placeholder), Err(InvalidValue::Placeholder));
        }
    }
}
