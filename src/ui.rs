//! The only owner of stdin, stdout and stderr.
//!
//! Data goes to stdout, everything else to stderr. A reader that goes away (`| head`) ends the
//! printing quietly, and never the work.

#![allow(clippy::disallowed_methods)]

mod live;

use std::cell::Cell;
use std::fmt;
use std::io::{ErrorKind, IsTerminal, Read, Write};

use anstyle::{AnsiColor, Style};
use connect::speaks_for_itself;

use crate::error::Failure;
use crate::exit::Code;
use crate::platform::discard_typed;
use crate::signals::asked_to_end;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// The person or program at the other end.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    quiet: bool,
    stdout: Cell<Stdout>,
}

/// What became of stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stdout {
    #[default]
    Open,
    /// Its reader went away, having seen enough.
    Closed,
    /// Something could not be written: the disk is full, say.
    Failed,
}

impl Terminal {
    /// With `quiet`, results in words and remarks are left out.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            stdout: Cell::default(),
        }
    }

    /// Whether stdin is one, so that somebody could be asked.
    pub(crate) fn is_stdin_one() -> bool {
        std::io::stdin().is_terminal()
    }

    /// Whether stderr is one.
    pub(crate) fn is_stderr_one() -> bool {
        std::io::stderr().is_terminal()
    }

    /// What is piped in.
    pub(crate) fn stdin(&self) -> impl Read {
        std::io::stdin()
    }

    /// Prints bytes that another program asked for. Where it does not read them, there is nobody to
    /// tell.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    /// Prints data that was asked for.
    pub(crate) fn data(&self, text: impl fmt::Display) {
        if !self.is_read() {
            return;
        }
        self.end_live();
        let mut stdout = anstream::stdout().lock();
        let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        match printed {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.stdout.set(Stdout::Closed),
            Err(error) => {
                self.stdout.set(Stdout::Failed);
                self.error(&format!("the result could not be written: {error}"));
            }
        }
    }

    /// With what to end instead of `code`: an error, where something that was asked for could not be
    /// written.
    pub(crate) fn code(&self, code: Code) -> Code {
        match self.stdout.get() {
            Stdout::Failed => code.worse(Code::ERROR),
            Stdout::Open | Stdout::Closed => code,
        }
    }

    /// Whether anybody still reads stdout.
    pub(crate) fn is_read(&self) -> bool {
        self.stdout.get() == Stdout::Open
    }

    /// Prints a result in words.
    pub(crate) fn result(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.data(text);
        }
    }

    /// Prints a remark that helps people and that no script needs.
    pub(crate) fn remark(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.stderr(format_args!("{text}"));
        }
    }

    /// Passes on what a program of the caller's prints, as it is.
    pub(crate) fn pass_on(&self, bytes: &[u8]) {
        if !self.quiet {
            self.end_live();
            let _ = std::io::stderr().lock().write_all(bytes);
        }
    }

    /// Prints what may be a problem.
    pub(crate) fn warn(&self, text: impl fmt::Display) {
        self.stderr(format_args!("{WARNING}Warning:{WARNING:#} {text}"));
    }

    /// Prints a problem as kubectl does: after `error: `, unless it says by itself where it is from.
    pub(crate) fn error(&self, text: &str) {
        if speaks_for_itself(text) {
            self.stderr(format_args!("{text}"));
        } else {
            self.stderr(format_args!("{ERROR}error:{ERROR:#} {text}"));
        }
    }

    /// Prints what to do about a problem.
    pub(crate) fn hint(&self, text: impl fmt::Display) {
        self.stderr(format_args!("{HINT}hint:{HINT:#} {text}"));
    }

    /// Prints text that was made elsewhere, such as the help of an argument parser.
    pub(crate) fn raw_stderr(&self, text: impl fmt::Display) {
        self.stderr(format_args!("{text}"));
    }

    /// Asks for a yes after showing `facts`, a line each; `yes` answers it beforehand.
    ///
    /// # Errors
    /// Where nobody can be asked, or the answer is no; the end of input, as by Ctrl-D, is one.
    pub(crate) async fn confirm(
        &self,
        facts: &[String],
        question: &str,
        yes: bool,
    ) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        for fact in facts {
            self.stderr(format_args!("{fact}"));
        }
        if !(Self::is_stdin_one() && Self::is_stderr_one()) {
            return Err(Failure::Unconfirmed(
                "not confirmed: there is no terminal for a prompt".to_owned(),
            ));
        }
        // What was typed before the question was seen answers something else.
        discard_typed(&std::io::stdin());
        // Where nobody reads stderr, nobody answers either.
        let _ = write!(anstream::stderr().lock(), "{question} [y/N] ");
        let answer = tokio::select! {
            biased;
            answer = next_line() => answer,
            () = asked_to_end() => {
                self.stderr(format_args!(""));
                return Err(Failure::Interrupted);
            }
        };
        match answer {
            Ok(Some(answer)) if is_yes(&answer) => Ok(()),
            Ok(Some(_)) => Err(Failure::Declined),
            Ok(None) => {
                self.stderr(format_args!(""));
                Err(Failure::Declined)
            }
            Err(error) => Err(Failure::Unconfirmed(format!(
                "could not ask for confirmation: {error}"
            ))),
        }
    }

    /// How many columns stdout has, where it is a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(width.0.into())
    }

    /// The same of stderr.
    pub(crate) fn stderr_width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(std::io::stderr())?;
        Some(width.0.into())
    }

    fn stderr(&self, text: fmt::Arguments<'_>) {
        self.end_live();
        // Where nobody reads stderr, there is nobody to tell.
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// The line that is typed next; `None` where input ends before it does.
async fn next_line() -> std::io::Result<Option<String>> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // On a thread that nobody waits for: who is interrupted types no line.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let _ = sender.send(read.map(|_| line.ends_with('\n').then_some(line)));
    });
    receiver.await.unwrap_or(Ok(None))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
