//! The man page and the completions, made from the definition of the arguments. Nobody types this:
//! `cargo xtask gen` asks for it.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::args::Args;

/// The hidden first argument.
const ARGUMENT: &str = "__reference";

/// The text, where the arguments ask for one: `man`, or the completions of a shell.
pub(crate) fn asked_for(arguments: impl IntoIterator<Item = OsString>) -> Option<Vec<u8>> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let what = arguments.next()?.into_string().ok()?;
    render(&what, Args::command())
}

fn render(what: &str, mut command: Command) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    if what == "man" {
        clap_mangen::Man::new(command).render(&mut text).ok()?;
    } else {
        let shell: Shell = what.parse().ok()?;
        generate(shell, &mut command, "lease-elect", &mut text);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_and_a_script_for_each_shell() {
        for what in ["man", "bash", "zsh", "fish", "powershell"] {
            let words = ["lease-elect", ARGUMENT, what].map(OsString::from);
            let text = asked_for(words).expect(what);
            assert!(
                String::from_utf8_lossy(&text).contains("lease-elect"),
                "{what}"
            );
        }
        assert_eq!(
            asked_for(["lease-elect", "--help"].map(OsString::from)),
            None
        );
    }
}
