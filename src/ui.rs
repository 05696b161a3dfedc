//! The only owner of stdin, stdout and stderr.
//!
//! Data goes to stdout, everything else to stderr. If the reader of stdout goes away (`| head`), printing
//! stops, and the work goes on.

#![allow(clippy::disallowed_methods)]

mod live;

use std::cell::Cell;
use std::fmt;
use std::io::{BufWriter, ErrorKind, IsTerminal, Read, Write};

use anstyle::{AnsiColor, Style};
use connect::names_its_source;
use dialoguer::Input;
use supervisor::termination;

use crate::layout::wrap::hanging;
use crate::platform::{TerminalModes, discard_typed, has_escape_sequences, is_dumb};
use unicode_width::UnicodeWidthStr as _;

use crate::error::{Failure, Unconfirmed};
use crate::exit::Code;
use crate::output::data::Data;
use crate::output::format::Format;
use crate::output::print;
use crate::output::status::{Line, Rows};
use crate::words::failure::{NO_TEXT, unwritten};

/// Errors, and rows of a table that must not be overlooked.
const ALARM: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// How a question ends: the default is no.
const DEFAULT_IS_NO: &str = "[y/N]";

/// What is shown around it: a space, and what dialoguer prints between a prompt and the answer.
const AROUND: &str = " : ";

/// The person or program at the other end.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    quiet: bool,
    stdout: Cell<Stdout>,
}

/// The state of stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stdout {
    #[default]
    Open,
    /// Its reader closed the pipe.
    Closed,
    /// A write failed, for example because the disk is full.
    Failed,
}

/// The lines of a table, in color where they must not be overlooked.
struct Colored<'a>(&'a Rows);

impl fmt::Display for Colored<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for Line { text, is_alarming } in &self.0.lines {
            match is_alarming {
                true => write!(f, "{between}{ALARM}{text}{ALARM:#}")?,
                false => write!(f, "{between}{text}")?,
            }
            between = "\n";
        }
        Ok(())
    }
}

impl Terminal {
    /// With `quiet`, results in words and remarks are omitted.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            stdout: Cell::default(),
        }
    }

    /// Whether stdin is a terminal, so that a question can be answered.
    pub(crate) fn is_stdin_one() -> bool {
        std::io::stdin().is_terminal()
    }

    /// Whether stderr is a terminal.
    pub(crate) fn is_stderr_one() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Whether a question can be shown and answered.
    pub(crate) fn can_ask() -> bool {
        Self::is_stdin_one() && Self::is_stderr_one()
    }

    /// Standard input, for a list that is piped in.
    pub(crate) fn stdin(&self) -> impl Read {
        std::io::stdin()
    }

    /// Prints bytes for another program. Write errors are ignored: only that program could see a message.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    /// Prints the requested data.
    pub(crate) fn data(&self, text: impl fmt::Display) {
        if !self.is_read() {
            return;
        }
        self.end_live();
        // stdout alone would write each line by itself.
        let mut stdout = BufWriter::new(anstream::stdout().lock());
        let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        match printed {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.stdout.set(Stdout::Closed),
            Err(error) => {
                self.stdout.set(Stdout::Failed);
                self.error(&unwritten(&error));
            }
        }
    }

    /// Prints `data` for programs, or the `text` of it for people.
    ///
    /// # Errors
    /// If it can't be serialized.
    pub(crate) fn show(
        &self,
        data: &impl Data,
        format: Format,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if !format.is_for_people() {
            return self.print(data, format);
        }
        self.data(text());
        Ok(())
    }

    /// Prints `data` for programs. A template that gives no text is a surprise for a person at a terminal.
    ///
    /// # Errors
    /// If it can't be serialized.
    pub(crate) fn print(&self, data: &impl Data, format: Format) -> anyhow::Result<()> {
        match print::data(data, format)? {
            Some(text) => self.data(text),
            None if matches!(format, Format::Template(..)) && self.width().is_some() => {
                self.remark(NO_TEXT);
            }
            None => {}
        }
        Ok(())
    }

    /// Prints rows of a table.
    pub(crate) fn rows(&self, rows: &Rows) {
        self.data(Colored(rows));
    }

    /// The exit code: an error instead of `code` if requested data could not be written.
    pub(crate) fn code(&self, code: Code) -> Code {
        match self.stdout.get() {
            Stdout::Failed => code.worse(Code::ERROR),
            Stdout::Open | Stdout::Closed => code,
        }
    }

    /// Whether stdout still has a reader.
    pub(crate) fn is_read(&self) -> bool {
        self.stdout.get() == Stdout::Open
    }

    /// Whether requested data could not be printed, for example because the disk is full.
    pub(crate) fn has_failed(&self) -> bool {
        self.stdout.get() == Stdout::Failed
    }

    /// Reports that requested data could not be printed.
    pub(crate) fn unprinted(&self, error: &anyhow::Error) {
        self.stdout.set(Stdout::Failed);
        self.error(&format!("{error:#}"));
    }

    /// Takes a closed pipe for an error: nobody has read the data that was printed, and it was needed.
    pub(crate) fn needs_reader(&self) {
        if self.stdout.get() == Stdout::Closed {
            self.stdout.set(Stdout::Failed);
            self.error(&unwritten(&ErrorKind::BrokenPipe.into()));
        }
    }

    /// Prints a result in words.
    pub(crate) fn result(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.data(text);
        }
    }

    /// Prints a remark for people. Scripts don't need it.
    pub(crate) fn remark(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.stderr(format_args!("{text}"));
        }
    }

    /// Passes on the output of a program that the caller named, unchanged.
    pub(crate) fn pass_on(&self, bytes: &[u8]) {
        if !self.quiet {
            self.end_live();
            let _ = std::io::stderr().lock().write_all(bytes);
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: impl fmt::Display) {
        self.stderr(format_args!("{WARNING}Warning:{WARNING:#} {text}"));
    }

    /// Prints a problem as kubectl does: after `error: `, unless the text names its source.
    pub(crate) fn error(&self, text: &str) {
        if names_its_source(text) {
            self.stderr(format_args!("{text}"));
        } else {
            self.stderr(format_args!("{ALARM}error:{ALARM:#} {text}"));
        }
    }

    /// Prints what to do about a problem.
    pub(crate) fn hint(&self, text: impl fmt::Display) {
        self.stderr(format_args!("{HINT}hint:{HINT:#} {text}"));
    }

    /// Prints text as it is, such as the help of the argument parser.
    pub(crate) fn raw_stderr(&self, text: impl fmt::Display) {
        self.stderr(format_args!("{text}"));
    }

    /// Asks for confirmation after printing `facts`, one per line; `yes` confirms in advance.
    ///
    /// # Errors
    /// If nobody can answer, if the answer is no, or if the terminal is gone.
    pub(crate) async fn confirm(
        &self,
        facts: &[String],
        question: &str,
        yes: bool,
    ) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        let answer = self.ask(facts, question, DEFAULT_IS_NO).await?;
        // `dialoguer::Confirm` would take any line in which the last y or n is a y, such as "no way".
        match ["y", "yes"].contains(&answer.to_ascii_lowercase().as_str()) {
            true => Ok(()),
            false => Err(Failure::Declined),
        }
    }

    /// Asks for a confirmation that is too important for a `y`: only the line `name` is a yes.
    ///
    /// # Errors
    /// If nobody can answer, if the answer is another, or if the terminal is gone.
    pub(crate) async fn confirm_name(
        &self,
        facts: &[String],
        question: &str,
        name: &str,
    ) -> Result<(), Failure> {
        match self.ask(facts, question, "").await? == name {
            true => Ok(()),
            false => Err(Failure::Declined),
        }
    }

    /// The line that is typed after `question`.
    ///
    /// # Errors
    /// If nobody can answer, or if the terminal is gone.
    pub(crate) async fn line(&self, question: &str) -> Result<String, Failure> {
        self.ask(&[], question, "").await
    }

    /// The answer to `question`, which is printed after `facts`, one per line, and before `choices`.
    async fn ask(
        &self,
        facts: &[String],
        question: &str,
        choices: &str,
    ) -> Result<String, Failure> {
        let room = self.stderr_width();
        for line in facts.iter().flat_map(|fact| fact.lines()) {
            let words = line.trim_start();
            let indent = &line[..line.len() - words.len()];
            self.stderr(format_args!("{}", hanging(indent, words, room)));
        }
        if !Self::can_ask() {
            return Err(Failure::Unconfirmed(Unconfirmed::NoTerminal));
        }
        // Input from before the question was shown can't be its answer.
        let stdin = std::io::stdin();
        discard_typed(&stdin);
        let modes = TerminalModes::now(&stdin);
        let answer = tokio::select! {
            biased;
            // First, to handle the SIGINT that dialoguer raises at Ctrl-C.
            () = termination() => Err(ErrorKind::Interrupted.into()),
            answer = self.answer(question, choices) => answer,
        };
        answer.map_err(|error| {
            // dialoguer, which still waits for a key, turned off the echo.
            modes.restore(&stdin);
            self.stderr(format_args!(""));
            match error.kind() {
                ErrorKind::Interrupted => Failure::Interrupted,
                ErrorKind::UnexpectedEof => Failure::Declined,
                _ => Failure::Unconfirmed(Unconfirmed::NoAnswer(error)),
            }
        })
    }

    /// The line that is typed after `question`.
    async fn answer(&self, question: &str, choices: &str) -> std::io::Result<String> {
        let mut prompt = format!("{question} {choices}").trim_end().to_owned();
        // dialoguer redraws only the last line of what it shows.
        let room = self.stderr_width().unwrap_or(usize::MAX);
        if prompt.width() + AROUND.len() > room {
            self.stderr(format_args!("{question}"));
            choices.clone_into(&mut prompt);
        }
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // On a detached thread: after an interruption, nobody may ever press a key.
        std::thread::spawn(move || {
            let input = Input::<String>::new().with_prompt(prompt).allow_empty(true);
            let _ = sender.send(input.interact());
        });
        match receiver.await {
            Ok(Ok(answer)) => Ok(answer.trim().to_owned()),
            Ok(Err(dialoguer::Error::IO(error))) => Err(error),
            Err(_) => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Whether stderr is a terminal that can update a line, and such a line is wanted.
    pub(crate) fn shows_live(&self) -> bool {
        let is_dumb = is_dumb(std::env::var_os("TERM").as_deref());
        !self.quiet && !is_dumb && Self::is_stderr_one() && has_escape_sequences()
    }

    /// Shows `line`, or as much of it as fits, in place of the last one.
    pub(crate) fn live(&self, line: &str) {
        if self.shows_live() {
            live::draw(line, 0, None);
        }
    }

    /// The same after a bar that shows how much is `done` of `all`.
    pub(crate) fn live_count(&self, done: usize, all: usize, line: &str) {
        if self.shows_live() {
            live::draw(line, done, Some(all));
        }
    }

    /// Removes the line, if one is shown, to make room for others.
    pub(crate) fn end_live(&self) {
        live::end();
    }

    /// The columns of stdout, if it is a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(width.0.into())
    }

    /// The columns of stderr, if it is a terminal.
    pub(crate) fn stderr_width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(std::io::stderr())?;
        Some(width.0.into())
    }

    fn stderr(&self, text: fmt::Arguments<'_>) {
        self.end_live();
        // In one write, so that lines of programs that share stderr are not torn. An error is ignored, because there is no
        // other place to report it.
        let _ = anstream::stderr().write_all(format!("{text}\n").as_bytes());
    }
}
