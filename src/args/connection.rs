//! How to reach the API server, as typed.
//!
//! kubectl hands none of its own flags to a plugin, so each of them has to be here, usable anywhere after `maint`.

use clap::{Arg, Args};
use connect::Flags;

use crate::words::hint_command::HEADING;

/// What the API server's logs call this program.
pub(crate) const USER_AGENT: &str = concat!("kubectl-maint/", env!("CARGO_PKG_VERSION"));

/// The connection flags that every command accepts.
#[derive(Args, Clone, Debug, Default)]
#[command(
    next_help_heading = HEADING,
    mut_arg("namespace", |namespace| {
        namespace.help("Namespace of the object (why), pods (force-delete) or Leases (leases); otherwise ignored")
    }),
    mut_args(|arg| arg.hide_long_help(true))
)]
pub(crate) struct ConnectionArgs {
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// The `-n` of a command whose help shows it. It is the one that all commands accept.
pub(crate) fn namespace(help: &'static str) -> Arg {
    Arg::new("namespace")
        .short('n')
        .long("namespace")
        .value_name("NAMESPACE")
        .help(help)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::app::Cli;

    #[test]
    fn the_namespace_counts_on_either_side_of_the_verb() {
        for line in [
            "kubectl-maint -n shop force-delete pod/a",
            "kubectl-maint force-delete pod/a -n shop",
            "kubectl-maint force-delete --namespace=shop pod/a",
        ] {
            let flags = Cli::parse_from(line.split(' ')).connection.flags;
            assert_eq!(flags.namespace.as_deref(), Some("shop"), "{line}");
        }
    }
}
