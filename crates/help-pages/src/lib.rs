//! The help of `kubectl maint` as one page in Markdown and as man pages, made from the definitions of its arguments.
#![warn(missing_docs)]

mod man;
mod markdown;

use clap::{Arg, Command};

pub use man::write_man_pages;
pub use markdown::markdown;

/// The commands that the help lists, in their order.
pub fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

/// Whether all commands have `arg`, whose heading is then `shared`.
fn is_shared(arg: &Arg, shared: &str) -> bool {
    arg.get_help_heading() == Some(shared)
}
