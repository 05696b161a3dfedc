//! What is wrong with a command line, and what to type instead. The argument parser's own advice often
//! misleads: it suggests flags and commands that only look alike.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::duration::{extension, length};
use super::nodes::node_name;
use crate::error::{InvalidValue, Verb};
use crate::exit::Code;
use crate::object::Kind;
use crate::text::{for_shell, shown};
use crate::words::hint_command::Program;
use crate::words::input::hold_instead;
use crate::words::suggestions::near_misses;
use crate::words::time::longest_lock;
use crate::words::usage;
use crate::words::with::command_line;

/// Message and hint.
type Lines = (String, String);

/// A command line, to explain what is wrong with it.
#[derive(Clone, Copy)]
pub(crate) struct CommandLine<'a> {
    pub(crate) words: &'a [OsString],
    /// Defines all commands.
    pub(crate) commands: fn() -> Command,
}

impl<'a> CommandLine<'a> {
    /// The exit code for a command line that can't be parsed. For `with` it must differ from the codes of its
    /// command.
    pub(crate) fn code(self) -> Code {
        match self.as_far_as_valid() {
            Some(matches) if matches.subcommand_name() == Some("with") => Code::WRAPPER,
            _ => Code::USAGE,
        }
    }

    /// What the line says, without what can't be parsed.
    fn as_far_as_valid(self) -> Option<ArgMatches> {
        let command = (self.commands)().ignore_errors(true);
        command.try_get_matches_from(self.words).ok()
    }

    /// What to report if the line can't be parsed; `None` if the parser's message is good enough.
    pub(crate) fn of_command(self, error: &clap::Error) -> Option<Lines> {
        let word = |kind| match error.get(kind) {
            Some(ContextValue::String(word)) => Some(word.as_str()),
            _ => None,
        };
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(lines) = self.of_detached_value()
        {
            return Some(lines);
        }
        let (message, hint) = match error.kind() {
            ErrorKind::InvalidSubcommand => {
                let typed = word(ContextKind::InvalidSubcommand)?;
                (
                    usage::unknown_command(typed),
                    self.instead_of_command(typed),
                )
            }
            ErrorKind::TooManyValues if word(ContextKind::InvalidArg)?.starts_with('-') => {
                let flag = flag_name(word(ContextKind::InvalidArg)?);
                let typed = word(ContextKind::InvalidValue).unwrap_or_default();
                (
                    usage::takes_no_value(flag),
                    match flag {
                        "--wait" if length(typed).is_ok() => usage::limit_wait(typed),
                        _ => usage::without_value(flag, typed),
                    },
                )
            }
            ErrorKind::NoEquals => {
                let flag = flag_name(word(ContextKind::InvalidArg)?);
                let hint = match self.word_after(flag) {
                    Some(value) => usage::use_flag(&format!("{flag}={}", for_shell(value))),
                    None => self.see_help_of(),
                };
                (usage::takes_value_after_equals(flag), hint)
            }
            ErrorKind::InvalidValue => {
                let (argument, typed) = (
                    word(ContextKind::InvalidArg)?,
                    word(ContextKind::InvalidValue)?,
                );
                let flag = flag_name(argument);
                if typed.is_empty() && flag.starts_with('-') {
                    let hint = match flag {
                        "--powered-off" => usage::say_how_powered_off(),
                        _ => self.see_help_of(),
                    };
                    return Some((usage::needs_value(flag), hint));
                }
                let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else {
                    return None;
                };
                (
                    usage::unknown_value(argument, typed, valid),
                    self.hint_for(error),
                )
            }
            ErrorKind::ValueValidation => {
                let (argument, typed) = (
                    word(ContextKind::InvalidArg)?,
                    word(ContextKind::InvalidValue)?,
                );
                let source = error.source()?;
                if source.is::<ParseIntError>() {
                    let problem = usage::MUST_BE_A_NUMBER;
                    let message = usage::invalid_argument(argument, typed, problem);
                    return Some((message, self.hint_for(error)));
                }
                let problem = source.downcast_ref::<InvalidValue>()?;
                let is_long = |typed: &str| extension(typed) == Err(InvalidValue::LongLock);
                // A value that is valid, to read the rest of the line.
                let (problem, valid) = match problem {
                    InvalidValue::LongLock => (problem, longest_lock()),
                    InvalidValue::NotATime { typed } if is_long(typed) => {
                        (&InvalidValue::LongLock, A_TIME.to_owned())
                    }
                    InvalidValue::NotATime { typed: duration } => {
                        let flag = format!("--duration {duration}");
                        let problem = problem.to_string();
                        let message = usage::invalid_argument(argument, typed, &problem);
                        return Some((message, usage::use_flag(&flag)));
                    }
                    _ => return None,
                };
                let program = self.program(|word| match word.strip_suffix(typed) {
                    Some(flag) if flag.is_empty() || flag.ends_with('=') => {
                        format!("{flag}{valid}")
                    }
                    _ => word,
                });
                (
                    usage::invalid_argument(argument, typed, &problem.to_string()),
                    hold_instead(&program, typed.trim_start_matches('+')),
                )
            }
            ErrorKind::UnknownArgument => {
                let typed = word(ContextKind::InvalidArg)?;
                match self.command() {
                    Some(command) if typed.starts_with('-') => (
                        usage::unknown_flag(typed),
                        self.instead_of_flag(&command, typed),
                    ),
                    Some(command) => (
                        usage::unexpected_argument(typed),
                        if self.is_hook(&command, typed) {
                            usage::put_dashes_before_hook(&for_shell(typed))
                        } else if self.follows_kind(typed) {
                            usage::did_you_mean(&format!("node/{typed}"))
                        } else {
                            usage::see_help(Some(command.get_name()))
                        },
                    ),
                    None => (usage::unknown_flag(typed), usage::put_after_command()),
                }
            }
            ErrorKind::ArgumentConflict => {
                let other = match error.get(ContextKind::PriorArg)? {
                    ContextValue::String(other) => other,
                    ContextValue::Strings(others) => others.first()?,
                    _ => return None,
                };
                let flags = [flag_name(word(ContextKind::InvalidArg)?), flag_name(other)];
                if flags[0] == flags[1] {
                    return None;
                }
                (
                    usage::cannot_be_combined(&flags),
                    usage::ONLY_ONE.to_owned(),
                )
            }
            ErrorKind::MissingRequiredArgument => {
                let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
                else {
                    return None;
                };
                let missing = missing.iter().map(|argument| match flag_name(argument) {
                    "COMMAND" => "`-- COMMAND`",
                    name => name,
                });
                let missing: Vec<&str> = missing.collect();
                let (command, last) = (self.command()?, missing.last()?);
                let hint = usage::add_missing(command.get_name(), last);
                (
                    usage::missing(&missing.join(" and ")),
                    hint.unwrap_or_else(|| self.see_help_of()),
                )
            }
            _ => return None,
        };
        Some((message, hint))
    }

    /// The first paragraph of the parser's message, and where to read more.
    pub(crate) fn of_parser(self, error: &clap::Error) -> Lines {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let message = text.split("\n\n").next().unwrap_or_default();
        (message.trim_end().to_owned(), self.hint_for(error))
    }

    /// The variable with the invalid value if that is not on the line, else the help to read.
    fn hint_for(self, error: &clap::Error) -> String {
        match self.variable_of(error) {
            Some(variable) => usage::is_value_of(&variable),
            None => self.see_help_of(),
        }
    }

    /// The word after `flag`, if it may be its value.
    fn word_after(self, flag: &str) -> Option<&'a str> {
        let mut words = self.words.iter().filter_map(|word| word.to_str());
        words.find(|word| *word == flag)?;
        words.next().filter(|word| !word.starts_with('-'))
    }

    /// What to report if words follow `--` on the line, although its command runs none and would take them for nodes.
    /// A line without other nodes may use `--` to protect their names.
    pub(crate) fn of_trailing_command(self, matches: &ArgMatches) -> Option<Lines> {
        let dashes = self.words.iter().position(|word| word == "--")?;
        let trailing = &self.words[dashes + 1..];
        let (verb, typed) = matches.subcommand()?;
        let nodes = typed.try_get_many::<String>("nodes").ok().flatten()?;
        let command = self.command()?;
        let runs_one = command.get_arguments().any(clap::Arg::is_last_set);
        let is_typed = |id| typed.value_source(id) == Some(ValueSource::CommandLine);
        let selects = |id| typed.try_contains_id(id).is_ok() && is_typed(id);
        let named = nodes.len().checked_sub(trailing.len())?;
        let is_selected = ["selector", "all", "nodes_from", "mine"]
            .into_iter()
            .any(selects);
        if runs_one || trailing.is_empty() || (named == 0 && !is_selected) {
            return None;
        }
        let hint = match verb {
            "acquire" | "hold" | "wait" => usage::run_with(),
            _ => usage::remove_command(&command_line(trailing)),
        };
        Some((usage::runs_no_command(verb), hint))
    }

    /// The variable with the invalid value, if its flag is not on the line.
    fn variable_of(self, error: &clap::Error) -> Option<String> {
        let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        let flag = flag_name(argument);
        let mut words = self.words.iter().map(|word| word.to_string_lossy());
        if words.any(|word| word.starts_with(flag)) {
            return None;
        }
        let (all, command) = ((self.commands)(), self.command());
        let of_command = command.iter().flat_map(Command::get_arguments);
        let mut arguments = of_command.chain(all.get_arguments());
        let argument = arguments.find(|it| it.get_long() == flag.strip_prefix("--"))?;
        Some(argument.get_env()?.to_string_lossy().into_owned())
    }

    /// What to report if a word on the line was probably meant as the value of the flag before it. That
    /// flag takes its value after `=`, or takes none, so the word would become the name of a node.
    pub(crate) fn of_detached_value(self) -> Option<Lines> {
        let words = self.words.iter().map_while(|word| word.to_str());
        let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
        words.windows(2).find_map(|pair| match *pair {
            ["--dry-run", mode @ ("none" | "client" | "server")] => Some((
                usage::takes_value_after_equals("--dry-run"),
                usage::use_dry_run(mode),
            )),
            ["--abandoned", limit] if length(limit).is_ok() => Some((
                usage::takes_value_after_equals("--abandoned"),
                usage::use_flag(&format!("--abandoned={limit}")),
            )),
            ["--wait", limit] if length(limit).is_ok() => {
                Some((usage::takes_no_value("--wait"), usage::limit_wait(limit)))
            }
            _ => None,
        })
    }

    /// What to run instead of `typed`, which is no command of ours.
    fn instead_of_command(self, typed: &str) -> String {
        usage::instead_of_kubectl(typed).unwrap_or_else(|| {
            let all = (self.commands)();
            let known = all
                .get_subcommands()
                .filter(|command| !command.is_hide_set());
            let names = known.flat_map(|command| {
                std::iter::once(command.get_name()).chain(command.get_visible_aliases())
            });
            match near_misses(typed, names).first() {
                Some(near) => usage::did_you_mean_command(near),
                None => usage::see_commands(),
            }
        })
    }

    /// Whether `name` is a node's name that follows its kind. Some commands take one name only.
    fn follows_kind(self, name: &str) -> bool {
        let before = self.words.windows(2).find(|words| words[1] == name);
        let is_kind = before.and_then(|words| Kind::of(words[0].to_str()?)) == Some(Kind::Node);
        is_kind && node_name(name).is_ok()
    }

    /// What to type instead of the flag `typed` on the line, which `command` does not have.
    fn instead_of_flag(self, command: &Command, typed: &str) -> String {
        let by = |verb: Verb, flag: &str| {
            let program = self.program(|word| match word == typed {
                true => String::new(),
                false => word,
            });
            program.of_verb(verb.name(), None).same_command(flag)
        };
        let name = command.get_name();
        match (name, typed) {
            ("with", _) if !self.words.iter().any(|word| word == "--") => {
                return usage::put_dashes(typed);
            }
            ("acquire" | "with" | "renew", "--force") | ("release", "--take-over") => {
                return usage::to_end_another(&by(Verb::Release, "--force"));
            }
            ("acquire" | "with" | "renew", "--take-over") | ("hold", "--force") => {
                return usage::to_take_over(&by(Verb::Hold, "--take-over"));
            }
            _ => {}
        }
        usage::instead_of_flag(name, typed).unwrap_or_else(|| {
            let known = command
                .get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .filter_map(|arg| arg.get_long());
            match near_misses(typed.trim_start_matches("--"), known).first() {
                Some(own) => usage::did_you_mean(&format!("--{own}")),
                None => usage::see_help(Some(name)),
            }
        })
    }

    /// Where to read more about the command of the line.
    fn see_help_of(self) -> String {
        usage::see_help(self.command().as_ref().map(Command::get_name))
    }

    /// The command of a line that can't be parsed, with all its flags.
    fn command(self) -> Option<Command> {
        let matches = self.as_far_as_valid()?;
        let mut all = (self.commands)();
        all.build();
        all.find_subcommand(matches.subcommand_name()?).cloned()
    }

    /// The program as run with the line, if each word of it were `mended`. An empty word is left out.
    fn program(self, mended: impl Fn(String) -> String) -> Program {
        let words = self
            .words
            .iter()
            .map(|word| mended(word.to_string_lossy().into_owned()))
            .filter(|word| !word.is_empty());
        let words: Vec<String> = words.collect();
        let read = |command: Command| command.try_get_matches_from(&words);
        // Flags that can't be combined do not matter for the next command.
        let matches =
            read((self.commands)()).or_else(|_| read((self.commands)().ignore_errors(true)));
        matches.map_or_else(|_| Program::default(), |matches| Program::new(&matches))
    }

    /// Whether `command` takes a hook and `typed` may be its beginning: it is no name of a node.
    fn is_hook(self, command: &Command, typed: &str) -> bool {
        let takes_hook = command.get_arguments().any(|arg| arg.get_id() == "hook");
        takes_hook && node_name(typed).is_err() && !self.words.iter().any(|word| word == "--")
    }
}

/// A valid time.
const A_TIME: &str = "00:00Z";

/// An argument without its value and brackets, which the parser shows with both.
fn flag_name(argument: &str) -> &str {
    let name = argument.trim_start_matches(['[', '<']);
    name.split([' ', '=', '[', ']', '>']).next().unwrap_or(name)
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

/// Escapes user input in the parser's error, see [`shown`]. Removes the advice to put `--` before an
/// unknown flag, because no node's name looks like a flag.
pub(crate) fn escape_context(mut error: clap::Error) -> clap::Error {
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
