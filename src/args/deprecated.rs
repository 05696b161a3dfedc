//! Names of earlier releases that still work.

use clap::ArgMatches;
use clap::parser::ValueSource;
use connect::Environment;

use super::lock_id::{DEPRECATED, VARIABLE};
use super::risks::EARLIER_UNREAD;
use super::token::{TAKING, TokenArgs};
use crate::error::Deprecated;

/// The deprecated names on a command line.
pub(crate) fn names(
    matches: &ArgMatches,
    token: &TokenArgs,
    environment: &Environment,
) -> Vec<Deprecated> {
    let mut names = Vec::new();
    let Some((command, matches)) = matches.subcommand() else {
        return names;
    };
    if token.lock_id().is_some() {
        names.push(Deprecated::LockIdAsToken);
    }
    let format = matches.try_get_raw("format").ok().flatten();
    if format.is_some_and(|mut typed| typed.any(|format| format == "token")) {
        names.push(Deprecated::TokenFormat);
    }
    for (id, name) in [
        ("overridden", Deprecated::Override),
        ("confirm", Deprecated::Confirm),
        ("hold_until", Deprecated::UntilOfHold),
    ] {
        let is_flag = matches.try_contains_id(id).is_ok();
        if is_flag && matches.value_source(id) == Some(ValueSource::CommandLine) {
            names.push(name);
        }
    }
    for old in EARLIER_UNREAD {
        let typed = ["accept_risk", "overridden"].map(|id| matches.try_get_raw(id).ok().flatten());
        if command == "fence" && { typed.into_iter().flatten().flatten() }.any(|id| id == old) {
            names.push(Deprecated::UnreadRisk(old));
        }
    }
    if matches.try_get_one("locked").ok().flatten() == Some(&true) {
        names.push(Deprecated::Locked);
    }
    let is_set = |name| environment.set_os(name).is_some();
    if TAKING.contains(&command) && is_set(DEPRECATED) && !is_set(VARIABLE) {
        let (old, new) = (DEPRECATED, VARIABLE);
        names.push(Deprecated::Variable { old, new });
    }
    names
}
