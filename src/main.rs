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
use crate::args::deprecated;
use crate::args::usage_errors::{self, CommandLine};
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
    let line = CommandLine {
        words: &arguments,
        commands: Cli::command,
    };
    let code = match parse(&arguments) {
        Ok((cli, matches)) => {
            let lines = line.of_detached_value();
            if let Some(lines) = lines.or_else(|| line.of_trailing_command(&matches)) {
                return ExitCode::from(report_usage(lines, line).number());
            }
            let terminal = Terminal::new(cli.quiet);
            for name in deprecated::names(&matches, &cli.connection.token, &environment) {
                terminal.warn(words::deprecated::warning(name));
            }
            let program = Program::new(&matches).under(environment.get(variables::HOLDER));
            app::run(
                &cli,
                &Start {
                    terminal: &terminal,
                    connection: &cli.connection,
                    holder: &cli.holder,
                    environment: &environment,
                    program: &program,
                },
            )
        }
        Err(error) => say_usage(&usage_errors::escape_context(error), line),
    };
    ExitCode::from(code.number())
}

fn parse(line: &[OsString]) -> Result<(Cli, ArgMatches), clap::Error> {
    let read = |line: Vec<&OsString>| Cli::command().try_get_matches_from(line);
    // Error messages suggest similar commands, so they need the definitions of all commands.
    let matches = match Cli::command_for(line).try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(_) => match read(line.iter().collect()) {
            Err(error) if usage_errors::asks_for_help(&error) => {
                let rest = line.iter().filter(|word| !usage_errors::is_for_help(word));
                read(rest.collect())
            }
            read => read,
        }?,
    };
    Ok((Cli::from_arg_matches(&matches)?, matches))
}

/// Prints help to stdout, and problems with the arguments to stderr.
fn say_usage(error: &clap::Error, line: CommandLine<'_>) -> Code {
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
    let lines = line.of_command(error);
    let lines = lines.unwrap_or_else(|| line.of_parser(error));
    report_usage(lines, line)
}

fn report_usage((message, hint): (String, String), line: CommandLine<'_>) -> Code {
    let terminal = Terminal::default();
    terminal.error(&message);
    terminal.hint(hint);
    line.code()
}
