//! What is wrong with a command line, where the argument parser's own advice misleads: for `with` its
//! `--` is not for odd values, but stands before the command.

use std::ffi::{OsStr, OsString};

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::args::duration::length;
use crate::error::Failure;
use crate::text::shown;
use crate::words::program::NAME;
use crate::words::suggestions::wait_for;

/// Verbs that people try first, and what to type instead.
const OTHER_VERBS: [(&str, &str); 11] = [
    ("take", "acquire NODE"),
    ("break", "release NODE --force -m WHY"),
    ("steal", "release NODE --force -m WHY"),
    ("extend", "renew NODE"),
    ("list", "status"),
    ("ls", "status"),
    ("get", "status"),
    ("show", "status"),
    ("describe", "status"),
    ("who", "status"),
    ("watch", "status -w"),
];

/// Says in our words why `line`, one of `with`, can't be read; `None` where the parser says it well.
pub(crate) fn of_with(error: &clap::Error, line: &[OsString]) -> Option<Failure> {
    let has_dashes = line.iter().any(|word| word == "--");
    let usage = format!("{NAME} with NODE... -- COMMAND");
    let invalid = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => std::slice::from_ref(argument),
        Some(ContextValue::Strings(arguments)) => arguments,
        _ => return None,
    };
    let is_missing = |what: &str| invalid.iter().any(|argument| argument.contains(what));
    let (message, hint) = match (error.kind(), invalid) {
        (ErrorKind::UnknownArgument, [flag]) => match flag.as_str() {
            "-l" | "--selector" | "--all" | "--nodes-from" => (
                format!("unknown flag {flag} for `with`, which takes node names only"),
                format!("use `{usage}`"),
            ),
            "-o" | "--output" => (
                format!("unknown flag {flag} for `with`, which prints only what COMMAND prints"),
                "in COMMAND, read MAINT_LOCK_ID, MAINT_NODE and the other variables".to_owned(),
            ),
            "--duration" if has_dashes => (
                format!("unknown flag {flag} for `with`, which locks until COMMAND ends"),
                "remove it; --lease-duration sets how soon the lock expires after a crash"
                    .to_owned(),
            ),
            "-y" | "--yes" if has_dashes => (
                format!("unknown flag {flag} for `with`, which has no prompts"),
                "remove it".to_owned(),
            ),
            _ if has_dashes => return None,
            flag => (
                format!("unknown flag {flag} for `with`"),
                format!("if it belongs to COMMAND, put `--` before COMMAND: `{usage}`"),
            ),
        },
        (ErrorKind::MissingRequiredArgument, _) if is_missing("NODE") => (
            "no nodes given".to_owned(),
            format!("name nodes before `--`: `{usage}`"),
        ),
        (ErrorKind::MissingRequiredArgument, _) if is_missing("COMMAND") && has_dashes => (
            "missing COMMAND after `--`".to_owned(),
            format!("use `{usage}`"),
        ),
        (ErrorKind::MissingRequiredArgument, _) if is_missing("COMMAND") => {
            ("missing `-- COMMAND`".to_owned(), format!("use `{usage}`"))
        }
        _ => return None,
    };
    Some(Failure::usage(message, hint))
}

/// The same of a line of any other verb.
pub(crate) fn of_another(error: &clap::Error, line: &[OsString]) -> Option<Failure> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let (message, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = word(ContextKind::InvalidSubcommand)?;
            let mut known = OTHER_VERBS.iter();
            let (_, line) = known.find(|(other, _)| *other == typed)?;
            (
                format!("unknown command {typed}"),
                format!("use `{NAME} {line}`"),
            )
        }
        ErrorKind::TooManyValues if word(ContextKind::InvalidArg)? == "--wait" => (
            "--wait takes no value".to_owned(),
            match word(ContextKind::InvalidValue) {
                Some(limit) if length(limit).is_ok() => wait_for(limit),
                _ => "remove it; set a limit with --timeout".to_owned(),
            },
        ),
        ErrorKind::UnknownArgument => {
            let (verb, flag) = (verb(line)?, word(ContextKind::InvalidArg)?);
            let hint = instead_of(&verb, flag)?;
            (format!("unknown flag {flag} for `{verb}`"), hint)
        }
        _ => return None,
    };
    Some(Failure::usage(message, hint))
}

/// What to do instead of giving `flag` to `verb`, which other verbs take.
fn instead_of(verb: &str, flag: &str) -> Option<String> {
    let by_force =
        format!("to release the lock of somebody else, use `{NAME} release NODE --force -m WHY`");
    let take_over = format!("to take over a node, use `{NAME} hold NODE --take-over -m WHY`");
    Some(match (verb, flag) {
        ("verify", "-o" | "--output") => {
            format!("check its exit code, or use `{NAME} status NODE -o json`")
        }
        ("verify", "--mine") => format!(
            "verify checks one lock by its --lock-id; show all your locks with `{NAME} status --mine`"
        ),
        ("acquire" | "with", "--force" | "--take-over") => format!("{by_force}; {take_over}"),
        ("hold", "--force") | ("release", "--take-over") => take_over,
        ("renew", "--force") => by_force,
        ("unhold", "--force") => {
            "remove it: unhold asks before it ends the hold of somebody else".to_owned()
        }
        ("unhold", "-m" | "--message" | "--reason") => {
            "remove it: an Event on the node records who ended the hold".to_owned()
        }
        _ => return None,
    })
}

/// Whether help on `help` was asked for, which the parser takes for the name of a verb.
pub(crate) fn asks_for_help(error: &clap::Error) -> bool {
    let verb = match error.kind() {
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        _ => None,
    };
    matches!(verb, Some(ContextValue::String(verb)) if is_for_help(verb.as_ref()))
}

/// Whether `word` asks for help.
pub(crate) fn is_for_help(word: &OsStr) -> bool {
    word == "--help" || word == "-h"
}

/// The verb of a line that can't be read.
fn verb(line: &[OsString]) -> Option<String> {
    let matches = Cli::command()
        .ignore_errors(true)
        .try_get_matches_from(line);
    Some(matches.ok()?.subcommand_name()?.to_owned())
}

/// What the argument parser repeats, [`shown`], and without its advice to put `--` before an unknown flag:
/// no flag is a node's name.
pub(crate) fn tame(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass '"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    let repeated: Vec<(ContextKind, String)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(typed) => Some((kind, typed.clone())),
            _ => None,
        })
        .collect();
    for (kind, typed) in repeated {
        let tamed = shown(&typed);
        if tamed != typed {
            error.insert(kind, ContextValue::String(tamed));
            // Suggestions are ready-made text, which repeats it as it is.
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
    }
    error
}
