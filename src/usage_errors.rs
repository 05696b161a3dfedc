//! What is wrong with a command line, and what to type instead. The argument parser's own advice often
//! misleads: it suggests flags and commands that only look alike.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};

use crate::app::Cli;
use crate::args::duration::length;
use crate::args::nodes::node_name;
use crate::error::{InvalidValue, Verb};
use crate::text::shown;
use crate::words::hint_command::{NAME, NODE_KINDS, Program};
use crate::words::input::hold_instead;
use crate::words::suggestions::near_misses;

/// Message and hint.
type Lines = (String, String);

/// What to report if `line`, one of `with`, can't be parsed; `None` if the parser's message is good
/// enough.
pub(crate) fn of_with(error: &clap::Error, line: &[OsString]) -> Option<Lines> {
    let has_dashes = line.iter().any(|word| word == "--");
    let run = format!("run `{NAME} with NODE... -- COMMAND`");
    let invalid = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => std::slice::from_ref(argument),
        Some(ContextValue::Strings(arguments)) => arguments,
        _ => return None,
    };
    let is_missing = |what: &str| invalid.iter().any(|argument| argument.contains(what));
    let (message, hint) = match (error.kind(), invalid) {
        (ErrorKind::UnknownArgument, [flag]) => match flag.as_str() {
            "--duration" | "--until" if has_dashes => (
                format!("with has no flag {flag}: the lock lasts as long as COMMAND"),
                "remove it; --lease-duration is the time until the lock expires after a crash"
                    .to_owned(),
            ),
            _ if has_dashes => return None,
            flag => (
                format!("with has no flag {flag}"),
                format!("if {flag} belongs to COMMAND, put `--` before COMMAND: {run}"),
            ),
        },
        (ErrorKind::MissingRequiredArgument, _) if is_missing("NODE") => {
            ("missing NODE".to_owned(), run)
        }
        (ErrorKind::MissingRequiredArgument, _) if is_missing("COMMAND") && has_dashes => {
            ("missing COMMAND after `--`".to_owned(), run)
        }
        (ErrorKind::MissingRequiredArgument, _) if is_missing("COMMAND") => {
            ("missing `-- COMMAND`".to_owned(), run)
        }
        _ => return None,
    };
    Some((message, hint))
}

/// The same for a line of any other command.
pub(crate) fn of_another(error: &clap::Error, line: &[OsString]) -> Option<Lines> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(lines) = of_detached_value(line)
    {
        return Some(lines);
    }
    let (message, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = word(ContextKind::InvalidSubcommand)?;
            (
                format!("unknown command \"{typed}\""),
                instead_of_command(typed),
            )
        }
        ErrorKind::TooManyValues if word(ContextKind::InvalidArg)? == "--wait" => (
            "--wait takes no value".to_owned(),
            match word(ContextKind::InvalidValue) {
                Some(limit) if length(limit).is_ok() => limit_wait(limit),
                _ => "remove the value; --timeout limits the wait".to_owned(),
            },
        ),
        ErrorKind::InvalidValue if word(ContextKind::InvalidValue)?.is_empty() => {
            let flag = bare(word(ContextKind::InvalidArg)?);
            if !flag.starts_with('-') {
                return None;
            }
            (format!("{flag} needs a value"), value_of(flag, line))
        }
        ErrorKind::ValueValidation => {
            let typed = word(ContextKind::InvalidValue)?;
            let problem = error.source()?.downcast_ref::<InvalidValue>()?;
            if *problem != InvalidValue::LongLock {
                return None;
            }
            let end = typed.trim_start_matches('+');
            let program = program(line, |word| word.replace(typed, "1h"));
            (
                format!(
                    "{} {typed}: {problem}",
                    bare(word(ContextKind::InvalidArg)?)
                ),
                hold_instead(&program, end),
            )
        }
        ErrorKind::UnknownArgument => {
            let typed = word(ContextKind::InvalidArg)?;
            match command(line) {
                Some(command) if typed.starts_with('-') => (
                    format!("{} has no flag {typed}", command.get_name()),
                    instead_of_flag(&command, typed, line),
                ),
                Some(command) => (
                    format!("unexpected argument \"{typed}\""),
                    match follows_kind(typed, line) {
                        true => format!("did you mean node/{typed}?"),
                        false => see_help(command.get_name()),
                    },
                ),
                None => (
                    format!("unknown flag: {typed}"),
                    match command_with(line, typed) {
                        Some(command) => {
                            format!("put {typed} after the command: `{NAME} {command} … {typed} …`")
                        }
                        None => format!("see `{NAME} --help` and `{NAME} options`"),
                    },
                ),
            }
        }
        ErrorKind::ArgumentConflict => {
            let one = bare(word(ContextKind::InvalidArg)?);
            let other = match error.get(ContextKind::PriorArg)? {
                ContextValue::String(other) => bare(other),
                ContextValue::Strings(others) => bare(others.first()?),
                _ => return None,
            };
            if one == other {
                return None;
            }
            (
                format!("{one} cannot be used with {other}"),
                see_help(command(line)?.get_name()),
            )
        }
        ErrorKind::MissingRequiredArgument => {
            let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
                return None;
            };
            let help = see_help(command(line)?.get_name());
            match &missing[..] {
                [missing] if missing == "--wait" => ("--timeout requires --wait".to_owned(), help),
                [missing] if missing == "--pods" => (
                    "--all-namespaces requires --pods".to_owned(),
                    "nodes have no namespace: remove it, or add --pods to show stuck pods"
                        .to_owned(),
                ),
                [missing] if bare(missing) == "--message" => {
                    ("missing --message".to_owned(), "add -m \"WHY\"".to_owned())
                }
                missing => {
                    let missing: Vec<&str> = missing.iter().map(|it| bare(it)).collect();
                    (format!("missing {}", missing.join(" and ")), help)
                }
            }
        }
        _ => return None,
    };
    Some((message, hint))
}

/// The first paragraph of the parser's message, and where to read more; `None` if it is help.
pub(crate) fn of_parser(error: &clap::Error, line: &[OsString]) -> Option<Lines> {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let text = error.render().to_string();
    let message = text.strip_prefix("error: ")?.split("\n\n").next()?;
    let hint = match error.get(ContextKind::SuggestedValue) {
        Some(ContextValue::String(near)) => format!("did you mean {near}?"),
        _ => see_help_of(line),
    };
    Some((message.trim_end().to_owned(), hint))
}

/// What to type for the missing value of `flag`.
fn value_of(flag: &str, line: &[OsString]) -> String {
    match (flag, node_of(line)) {
        ("--powered-off", Some(node)) => {
            format!("run `{NAME} fence {node} --powered-off=\"HOW YOU KNOW\"`")
        }
        _ => see_help_of(line),
    }
}

/// The node on a line of `fence`.
fn node_of(line: &[OsString]) -> Option<&str> {
    let words = line.iter().filter_map(|word| word.to_str());
    let mut after = words.skip_while(|word| *word != "fence").skip(1);
    after.find(|word| !word.starts_with('-') && node_name(word).is_ok())
}

/// What to report if a word on `line` was probably meant as the value of the flag before it. That
/// flag takes its value after `=`, or takes none, so the word would become the name of a node.
pub(crate) fn of_detached_value(line: &[OsString]) -> Option<Lines> {
    let words = line.iter().map_while(|word| word.to_str());
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    words.windows(2).find_map(|pair| match *pair {
        ["--dry-run", mode @ ("none" | "client" | "server")] => Some((
            "--dry-run takes its value after =".to_owned(),
            format!("use --dry-run={mode}; if {mode} is a node, put it before --dry-run"),
        )),
        ["--abandoned", limit] if length(limit).is_ok() => Some((
            "--abandoned takes its value after =".to_owned(),
            format!("use --abandoned={limit}"),
        )),
        ["--wait", limit] if length(limit).is_ok() => {
            Some(("--wait takes no value".to_owned(), limit_wait(limit)))
        }
        _ => None,
    })
}

fn limit_wait(limit: &str) -> String {
    format!("to wait at most {limit}, use --wait --timeout {limit}")
}

/// What to run instead of `typed`, which is no command of ours.
fn instead_of_command(typed: &str) -> String {
    match typed {
        "get" | "list" | "ls" => format!("run `{NAME} status`"),
        "drain" | "cordon" => {
            format!("lock the node with `{NAME} acquire NODE`, then run `kubectl {typed} NODE`")
        }
        _ => {
            let all = Cli::command();
            let known = all
                .get_subcommands()
                .filter(|command| !command.is_hide_set());
            let names = known.flat_map(|command| {
                std::iter::once(command.get_name()).chain(command.get_visible_aliases())
            });
            match near_misses(typed, names).first() {
                Some(near) => format!("did you mean `{NAME} {near}`?"),
                None => format!("see `{NAME} --help` for the list of commands"),
            }
        }
    }
}

/// Whether `name` is a node's name that follows its kind. Some commands take one name only.
fn follows_kind(name: &str, line: &[OsString]) -> bool {
    let before = line.windows(2).find(|words| words[1] == name);
    let is_kind = before.is_some_and(|words| NODE_KINDS.iter().any(|kind| words[0] == *kind));
    is_kind && node_name(name).is_ok()
}

/// What to type instead of the flag `typed` on `line`, which `command` does not have.
fn instead_of_flag(command: &Command, typed: &str, line: &[OsString]) -> String {
    let by = |verb: Verb, flag: &str| {
        let program = program(line, |word| match word == typed {
            true => String::new(),
            false => word,
        });
        program.of_verb(verb.name(), None).same_command(flag)
    };
    match (command.get_name(), typed) {
        ("acquire" | "with" | "renew", "--force") | ("release", "--take-over") => format!(
            "to end somebody else's lock, run `{}`",
            by(Verb::Release, "--force")
        ),
        ("acquire" | "with" | "renew", "--take-over") | ("hold", "--force") => format!(
            "to take over somebody else's lock, run `{}`",
            by(Verb::Hold, "--take-over")
        ),
        ("describe", "-o" | "--output") => {
            format!("print data with `{NAME} status NODE -o json`")
        }
        ("with", "-l" | "--selector" | "--all") => "name the nodes before --".to_owned(),
        ("status", "-A" | "--all-namespaces") => "nodes have no namespace; remove it".to_owned(),
        ("force-delete", "-y" | "--yes" | "--force") => {
            "accept the risks by name: --accept-risk=ID -m \"WHY\"".to_owned()
        }
        ("hold", "--duration") => {
            "a hold does not expire; --expect-until shows others when you expect to end it"
                .to_owned()
        }
        ("unhold", "--force") => {
            "remove it: unhold asks you to confirm if the hold is not yours".to_owned()
        }
        ("unhold", "-m" | "--message" | "--reason") => {
            "remove it: an Event of the node records who ended the hold".to_owned()
        }
        (verb, _) => {
            let known = command
                .get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .filter_map(|arg| arg.get_long());
            match near_misses(typed.trim_start_matches("--"), known).first() {
                Some(own) => format!("did you mean --{own}?"),
                None => see_help(verb),
            }
        }
    }
}

/// An argument without its value and brackets, which the parser shows with both.
fn bare(argument: &str) -> &str {
    let name = argument.trim_start_matches(['[', '<']);
    name.split([' ', '=', '[', ']', '>']).next().unwrap_or(name)
}

fn see_help(command: &str) -> String {
    format!("see `{NAME} {command} --help`")
}

/// The same for the command of `line`, if it has one.
fn see_help_of(line: &[OsString]) -> String {
    match command(line) {
        Some(command) => see_help(command.get_name()),
        None => format!("see `{NAME} --help`"),
    }
}

/// Whether help on `help` was requested. The parser takes that for the name of a command.
pub(crate) fn asks_for_help(error: &clap::Error) -> bool {
    let command = match error.kind() {
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        _ => None,
    };
    matches!(command, Some(ContextValue::String(command)) if is_for_help(command.as_ref()))
}

/// Whether `word` asks for help.
pub(crate) fn is_for_help(word: &OsStr) -> bool {
    word == "--help" || word == "-h"
}

/// The command of a line that can't be parsed, with all its flags.
fn command(line: &[OsString]) -> Option<Command> {
    let mut all = Cli::command();
    let matches = all.clone().ignore_errors(true).try_get_matches_from(line);
    let matches = matches.ok()?;
    all.build();
    all.find_subcommand(matches.subcommand_name()?).cloned()
}

/// The program as run with `line`, if each word of it were `mended`. An empty word is left out.
fn program(line: &[OsString], mended: impl Fn(String) -> String) -> Program {
    let words = line
        .iter()
        .map(|word| mended(word.to_string_lossy().into_owned()))
        .filter(|word| !word.is_empty());
    let matches = Cli::command().try_get_matches_from(words);
    matches.map_or_else(|_| Program::default(), |matches| Program::new(&matches))
}

/// The first command on the line, if it has `flag`, which was put before it.
fn command_with(line: &[OsString], flag: &str) -> Option<String> {
    let mut all = Cli::command();
    all.build();
    let words = line.iter().filter_map(|word| word.to_str());
    let command = words.skip(1).find_map(|word| all.find_subcommand(word))?;
    let has = |arg: &clap::Arg| {
        let long = arg.get_long().map(|long| format!("--{long}"));
        let short = arg.get_short().map(|short| format!("-{short}"));
        long.as_deref() == Some(flag) || short.as_deref() == Some(flag)
    };
    let has = command.get_arguments().any(has);
    has.then(|| command.get_name().to_owned())
}

/// Escapes user input in the parser's error, see [`shown`]. Removes the advice to put `--` before an
/// unknown flag, because no node's name looks like a flag.
pub(crate) fn tame(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass '"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
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
            // Suggestions are preformatted text that repeats the input unescaped.
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
    }
    error
}
