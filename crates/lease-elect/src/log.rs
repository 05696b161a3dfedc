//! Prints one line per transition on stderr. Process supervisors and containers add the time.

// Only this file writes to the standard streams. If they are closed, errors can't be reported.
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

use connect::names_its_source;

use crate::failure::Failure;

/// Prints a transition.
pub(crate) fn line(text: impl Display) {
    write(&format!("lease-elect: {}\n", escape(&text.to_string())));
}

/// Prints a request, for `-v`.
pub(crate) fn trace(text: &str) {
    write(&format!("{text}\n"));
}

/// Prints the error that ends the program.
pub(crate) fn failure(failure: &Failure) {
    let message = failure.to_string();
    let prefix = match names_its_source(&message) {
        true => "",
        false => "error: ",
    };
    let mut text = format!("{prefix}{}\n", escape(&message));
    if let Some(hint) = failure.hint() {
        let _ = writeln!(text, "hint: {}", escape(&hint));
    }
    write(&text);
}

/// Prints what is wrong with the arguments.
pub(crate) fn usage(error: &clap::Error) {
    let _ = error.print();
}

/// Prints the requested text on stdout.
pub(crate) fn data(bytes: &[u8]) {
    let _ = io::stdout().write_all(bytes);
}

fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Escapes control characters, so that a line stays one line even if a Lease contains line breaks.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            escaped.extend(c.escape_debug());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(escape("a\nb\x1b[31m \"é\""), "a\\nb\\u{1b}[31m \"é\"");
    }
}
