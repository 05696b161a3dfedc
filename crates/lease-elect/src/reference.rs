//! The man page and the completions, generated from the definition of the arguments. Users never call this:
//! `cargo xtask gen` and `packaging/prepare` do.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::args::Args;

const NAME: &str = "lease-elect";

/// The hidden first argument.
const ARGUMENT: &str = "__reference";

/// The generated text, if the arguments request one: `man`, or the completions of a shell.
pub(crate) fn requested(arguments: impl IntoIterator<Item = OsString>) -> Option<Vec<u8>> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let what = arguments.next()?.into_string().ok()?;
    render(&what, Args::command())
}

fn render(what: &str, command: Command) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    if what == "man" {
        clap_mangen::Man::new(command).render(&mut text).ok()?;
    } else {
        let shell: Shell = what.parse().ok()?;
        generate(shell, &mut shown(&command), NAME, &mut text);
    }
    Some(text)
}

/// `command` without the arguments that its help hides. Completion scripts would offer them otherwise.
fn shown(command: &Command) -> Command {
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(args.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_and_a_script_for_each_shell() {
        for what in ["man", "bash", "zsh", "fish", "powershell"] {
            let words = ["lease-elect", ARGUMENT, what].map(OsString::from);
            let text = requested(words).expect(what);
            assert!(
                String::from_utf8_lossy(&text).contains("lease-elect"),
                "{what}"
            );
        }
        assert_eq!(
            requested(["lease-elect", "--help"].map(OsString::from)),
            None
        );
    }

    fn script(shell: &str) -> String {
        let text = render(shell, Args::command()).expect(shell);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn scripts_offer_what_help_shows_and_no_more() {
        for shell in ["bash", "zsh", "fish", "powershell"] {
            let script = script(shell);
            let words: Vec<&str> = script
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .collect();
            for arg in Args::command().get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                let flag = format!("--{long}");
                let is_offered = match shell {
                    "fish" => script.contains(&format!(" -l {long} ")),
                    _ => words.contains(&flag.as_str()),
                };
                assert_eq!(is_offered, !arg.is_hide_set(), "{flag} in {shell}");
            }
        }
    }

    #[test]
    fn zsh_completes_the_daemon_as_a_command() {
        let script = script("zsh");
        assert!(script.contains(":_cmdambivalent'"), "{script}");
    }
}
