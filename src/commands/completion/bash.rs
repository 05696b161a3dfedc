//! Our own script for bash. clap's script passes `--flag=VALUE` on as three arguments, because bash splits
//! it into three words.

use crate::text::for_shell;

const SCRIPT: &str = include_str!("script.bash");

/// The script that completes `command`, and names the shell in `variable`.
pub(crate) fn script(command: &str, variable: &str) -> String {
    SCRIPT
        .replace("FUNCTION", &command.replace(['-', '.'], "_"))
        .replace("VARIABLE", variable)
        .replace("PROGRAM", &for_shell(command))
}
