//! `completion`: the script that lets a shell complete.

mod bash;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use clap_complete::env::{EnvCompleter, Fish, Powershell, Zsh};

use crate::error::Failure;
use crate::exit::Code;
use crate::run::session::Start;
use crate::words::hint_command::FILE;

/// Names the calling shell, in the environment of a run that completes.
pub(crate) const VARIABLE: &str = "KUBECTL_MAINT_COMPLETE";

/// Print the shell completion script
///
/// The script completes `kubectl-maint`, written as one word: commands, flags,
/// values, and node names of the cluster that the flags on the line select. Load it
/// in every new shell, as in the examples, because it belongs to this version.
///
/// kubectl 1.26 or newer completes `kubectl maint` without the script. It runs the
/// program kubectl_complete-maint, so link this program under that name into a
/// directory of your PATH:
///
///   ln -s "$(command -v kubectl-maint)" ~/.local/bin/kubectl_complete-maint
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  source <(kubectl maint completion bash)
  source <(kubectl maint completion zsh)
  kubectl maint completion fish | source
  kubectl maint completion powershell | Out-String | Invoke-Expression"
)]
pub(crate) struct CompletionArgs {
    /// Shell to complete in
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// The shells that there is a script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

pub(crate) fn run(args: &CompletionArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let command = FILE;
    let script = match args.shell {
        Shell::Bash => bash::script(command, VARIABLE),
        Shell::Zsh => registration(&Zsh, command)?,
        Shell::Fish => registration(&Fish, command)?,
        Shell::Powershell => registration(&Powershell, command)?,
    };
    start.terminal.data(script.trim());
    Ok(Code::DONE)
}

/// clap's script that completes `command`.
fn registration(shell: &dyn EnvCompleter, command: &str) -> Result<String, Failure> {
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, command, command, command, &mut script)
        .context("no script could be made")?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}
