//! `kubectl maint`: one maintenance lock per node that everybody can see, wait for and respect.

// The terminal's own file alone touches the standard streams.
#![deny(clippy::disallowed_methods)]

mod cli;
mod commands;
mod completion;
mod exit;
mod failure;
mod platform;
mod reference;
mod report;
mod session;
mod signals;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::program::{self, Program};
use crate::cli::{Cli, called, misuse, typed};
use crate::completion::Question;
use crate::exit::Code;
use crate::session::Start;
use crate::terminal::Terminal;
use connect::Environment;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Where this is a process of `with`'s own making.
    if let Some(code) = supervisor::entry(arguments.clone()) {
        return code;
    }
    let mut environment = Environment::of_this_process();
    environment.stdin_may_ask = Terminal::is_stdin_one();
    let name = program::name(arguments.first().map(OsString::as_os_str));
    if let Some(question) = Question::of(arguments.clone(), &environment) {
        Terminal::default().bytes(&question.answer());
        return ExitCode::SUCCESS;
    }
    let code = match parse(&arguments, &name) {
        Ok((cli, program)) => commands::run(
            &cli,
            &Start {
                terminal: &Terminal::new(cli.verb.quiet()),
                connection: &cli.connection,
                holder: &cli.holder,
                environment: &environment,
                program: &program.under(environment.get(commands::with::HOLDER)),
            },
        ),
        Err(error) => say_usage(&typed::tame(error), &arguments, &name),
    };
    ExitCode::from(code.number())
}

fn parse(line: &[OsString], name: &str) -> Result<(Cli, Program), clap::Error> {
    let read = |line: Vec<&OsString>| called::definition(name).try_get_matches_from(line);
    let mut matches = match read(line.iter().collect()) {
        Err(error) if misuse::asks_for_help(&error) => {
            let rest = line.iter().filter(|word| !misuse::is_for_help(word));
            read(rest.collect())
        }
        read => read,
    }?;
    let program = Program::new(name, &matches);
    Ok((Cli::from_arg_matches_mut(&mut matches)?, program))
}

/// Prints help to stdout and what is wrong with the arguments to stderr.
fn say_usage(error: &clap::Error, line: &[OsString], name: &str) -> Code {
    let terminal = Terminal::default();
    let text = error.render().ansi().to_string();
    if error.use_stderr() {
        let code = Code::of_usage(Cli::command(), line);
        let failure = match code == Code::WRAPPER {
            true => misuse::of_with(error, line, name),
            false => None,
        };
        match failure.or_else(|| misuse::of_another(error, line, name)) {
            Some(failure) => commands::tell(&terminal, &failure, None),
            None => terminal.raw_stderr(text.trim_end()),
        }
        code
    } else {
        terminal.data(text.trim_end());
        terminal.code(Code::DONE)
    }
}
