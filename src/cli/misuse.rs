//! What is wrong with a command line of `with`, where the argument parser's own advice misleads: its
//! `--` is not for odd values, but stands before the command.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// Says in our words why `line`, one of `with`, can't be read; `None` where the parser says it well.
pub(crate) fn of_with(error: &clap::Error, line: &[OsString], name: &str) -> Option<Failure> {
    let has_dashes = line.iter().any(|word| word == "--");
    let usage = format!("{name} with NODE... -- COMMAND");
    let invalid = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => std::slice::from_ref(argument),
        Some(ContextValue::Strings(arguments)) => arguments,
        _ => return None,
    };
    let is_missing = |what: &str| invalid.iter().any(|argument| argument.contains(what));
    let (message, hint) = match (error.kind(), invalid) {
        (ErrorKind::UnknownArgument, [flag]) => match flag.as_str() {
            "-l" | "--selector" | "--all" | "--nodes-from" => (
                format!("with takes NODE arguments only, not {flag}"),
                format!("name the nodes: {usage}"),
            ),
            "-o" | "--output" => (
                format!("with has no {flag}: what it prints is its command's"),
                "its command learns of the lock by MAINT_TOKEN, MAINT_NODE and others".to_owned(),
            ),
            _ if has_dashes => return None,
            flag => (
                format!("with has no {flag}"),
                format!("if it is the command's, put `--` before the command: {usage}"),
            ),
        },
        (ErrorKind::MissingRequiredArgument, _) if is_missing("NODE") => (
            "no nodes given".to_owned(),
            format!("name them before the `--`: {usage}"),
        ),
        (ErrorKind::MissingRequiredArgument, _) if is_missing("COMMAND") && has_dashes => (
            "there is no command behind the `--`".to_owned(),
            format!("say what to run on this machine: {usage}"),
        ),
        (ErrorKind::MissingRequiredArgument, _) if is_missing("COMMAND") => (
            "there is no `--` with a command behind it".to_owned(),
            format!("put `--` before the command: {usage}"),
        ),
        _ => return None,
    };
    Some(Failure::usage(message, hint))
}
