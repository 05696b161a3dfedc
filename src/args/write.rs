//! Flags of the verbs that change something.

use clap::Args;
use maintenance_lease::Acquire;

use crate::error::InvalidValue;
use crate::words::hint_command::NO_REASON;

/// Flags of every verb that changes something.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArgs {
    /// Only show what would happen; no write is sent
    ///
    /// kubectl's --dry-run=client and --dry-run=server mean the same.
    #[arg(
        long,
        value_name = "MODE",
        value_parser = ["client", "server"],
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "client",
        hide_possible_values = true
    )]
    dry_run: Option<String>,
}

impl WriteArgs {
    /// Whether nothing is written.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.is_some()
    }
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
