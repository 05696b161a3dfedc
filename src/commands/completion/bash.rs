//! The script for bash, one of our own: the library's takes what bash makes of `--flag=VALUE`, three words,
//! for three arguments.

use super::VARIABLE;
use crate::text::for_shell;

const SCRIPT: &str = include_str!("script.bash");

/// The script that completes `command`.
pub(crate) fn script(command: &str) -> String {
    SCRIPT
        .replace("FUNCTION", &command.replace(['-', '.'], "_"))
        .replace("VARIABLE", VARIABLE)
        .replace("PROGRAM", &for_shell(command))
}
