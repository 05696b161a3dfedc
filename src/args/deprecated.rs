//! Names of earlier releases that still work.

use std::collections::BTreeSet;

use clap::ArgMatches;
use clap::parser::ValueSource;
use connect::Environment;

use super::lock_id::{DEPRECATED, VARIABLE};
use super::risks::current_risk;
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
    let risks = ["accept_risk", "confirm", "overridden"];
    let risks = risks.map(|id| matches.try_get_raw(id).ok().flatten());
    let risks: BTreeSet<String> = { risks.into_iter().flatten().flatten() }
        .flat_map(|ids| {
            ids.to_string_lossy()
                .split(',')
                .map(|id| id.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    names.extend(risks.into_iter().filter_map(|old| {
        let new = current_risk(&old)?;
        Some(Deprecated::Risk { old, new })
    }));
    for (old, new) in [("held", "locked"), ("hold", "on-hold")] {
        let typed = matches.try_get_raw("condition").ok().flatten();
        if typed.is_some_and(|mut typed| typed.any(|typed| typed.eq_ignore_ascii_case(old))) {
            names.push(Deprecated::WaitFor { old, new });
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
