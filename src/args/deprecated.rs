//! Names of earlier releases that still work, and the warning for each.

use clap::ArgMatches;
use clap::parser::ValueSource;
use connect::Environment;

use super::lock_id::{DEPRECATED, TAKING, TokenArgs, VARIABLE};

/// The warnings for deprecated names on a command line.
pub(crate) fn warnings(
    matches: &ArgMatches,
    token: &TokenArgs,
    environment: &Environment,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some((command, matches)) = matches.subcommand() else {
        return warnings;
    };
    if token.is_deprecated() {
        warnings.push("--token for a lock id is deprecated: use --lock-id".to_owned());
    }
    let format = matches.try_get_raw("format").ok().flatten();
    if format.is_some_and(|mut typed| typed.any(|format| format == "token")) {
        warnings.push("-o token is deprecated: use -o lock-id".to_owned());
    }
    for (id, old, new) in [
        ("overridden", "--override", "--accept-risk"),
        ("confirm", "--confirm", "--accept-risk"),
        ("hold_until", "--until of hold", "--expect-until"),
    ] {
        let is_flag = matches.try_contains_id(id).is_ok();
        if is_flag && matches.value_source(id) == Some(ValueSource::CommandLine) {
            warnings.push(format!("{old} is deprecated: use {new}"));
        }
    }
    if matches.try_get_one("locked").ok().flatten() == Some(&true) {
        warnings.push("--locked is deprecated: use --state=locked,expired,on-hold".to_owned());
    }
    let is_set = |name| environment.set_os(name).is_some();
    if TAKING.contains(&command) && is_set(DEPRECATED) && !is_set(VARIABLE) {
        warnings.push(format!("{DEPRECATED} is deprecated: use {VARIABLE}"));
    }
    warnings
}
