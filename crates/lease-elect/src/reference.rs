//! The man page, generated from the definition of the arguments. Users never call this: `packaging/prepare` does.

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::args::Args;

/// The hidden first argument.
const ARGUMENT: &str = "__man";

/// The man page, if the arguments request it.
pub(crate) fn requested(mut arguments: impl Iterator<Item = OsString>) -> Option<Vec<u8>> {
    if arguments.nth(1)? != ARGUMENT {
        return None;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(Args::command())
        .render(&mut text)
        .ok()?;
    Some(text)
}
