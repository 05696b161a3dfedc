//! `kubectl maint`: one maintenance lock per node that everybody can see and wait for.

// Only `ui.rs` may use the standard streams.
#![deny(clippy::disallowed_methods)]

mod app;
mod args;
mod commands;
mod completion;
mod error;
mod exit;
mod layout;
mod object;
mod output;
mod platform;
mod run;
mod text;
mod ui;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use connect::Environment;

use crate::app::Cli;
use crate::args::usage_errors;
use crate::completion::Question;
use crate::exit::Code;
use crate::run::session::Start;
use crate::run::variables;
use crate::ui::Terminal;
use crate::words::hint_command::Program;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // If this process is a supervisor that `with` started.
    if let Some(code) = supervisor::entry(arguments.clone()) {
        return code;
    }
    let mut environment = Environment::of_this_process();
    environment.stdin_may_ask = Terminal::is_stdin_one();
    if let Some(question) = Question::of(arguments.clone(), &environment) {
        Terminal::default().bytes(&question.answer(Cli::command));
        return ExitCode::SUCCESS;
    }
    let code = match parse(&arguments) {
        Ok((cli, matches)) => match usage_errors::of_detached_value(&arguments) {
            Some((message, hint)) => {
                let terminal = Terminal::default();
                terminal.error(&message);
                terminal.hint(hint);
                usage_code(matches.subcommand_name())
            }
            None => {
                let terminal = Terminal::new(cli.quiet);
                let program = Program::new(&matches).under(environment.get(variables::HOLDER));
                let start = Start {
                    terminal: &terminal,
                    connection: &cli.connection,
                    holder: &cli.holder,
                    environment: &environment,
                    program: &program,
                };
                app::run(&cli, &start)
            }
        },
        Err(error) => report_usage(error, &arguments),
    };
    ExitCode::from(code.number())
}

fn parse(line: &[OsString]) -> Result<(Cli, ArgMatches), clap::Error> {
    // Error messages suggest similar commands, so they need the definitions of all commands.
    let matches = match Cli::command_for(line).try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(_) => Cli::command().try_get_matches_from(line)?,
    };
    Ok((Cli::from_arg_matches(&matches)?, matches))
}

/// Prints help to stdout, and what is wrong with the arguments to stderr.
fn report_usage(error: clap::Error, line: &[OsString]) -> Code {
    let terminal = Terminal::default();
    let help = match error.kind() {
        // As kubectl does.
        ErrorKind::MissingSubcommand => Some(Cli::command().render_help()),
        _ => (!error.use_stderr()).then(|| error.render()),
    };
    if let Some(help) = help {
        terminal.data(help.ansi().to_string().trim_end());
        return terminal.code(Code::DONE);
    }
    let valid = Cli::command().ignore_errors(true);
    let valid = valid.try_get_matches_from(line).ok();
    let command = valid.as_ref().and_then(ArgMatches::subcommand_name);
    match usage_errors::of_missing_dashes(line, command) {
        Some((message, hint)) => {
            terminal.error(&message);
            terminal.hint(hint);
        }
        None => terminal.error(&usage_errors::of_parser(error)),
    }
    usage_code(command)
}

/// The exit code of a line that can't be run. For `with` it must differ from the codes of its command.
fn usage_code(command: Option<&str>) -> Code {
    match command {
        Some("with") => Code::WRAPPER,
        _ => Code::USAGE,
    }
}
