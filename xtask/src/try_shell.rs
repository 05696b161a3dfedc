//! `cargo xtask try --shell`: a shell with a prompt that names the cluster, and with completion.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{env, fs};

use anyhow::{Context, Result};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::output::print;
use crate::sandbox_cluster::{SandboxCluster, export_line, path_with};

/// The first lines of the shell.
const GREETING: &str = "
`kubectl maint` is ready, on a cluster of 4 nodes in memory. Tab completes it.
Start with: kubectl maint status
To leave, and to remove the cluster: exit
For a second terminal on this cluster, paste this line there:
";

/// Runs the user's shell until it ends. `tools` contains the directories of the plugin and kubectl.
pub(crate) async fn run(cluster: &SandboxCluster, mut tools: Vec<PathBuf>) -> Result<()> {
    let shell = env::var_os("SHELL").unwrap_or_else(|| "sh".into());
    let directory = cluster.directory().join("shell");
    let links = directory.join("bin");
    fs::create_dir_all(&links).context("failed to make a directory for the shell")?;
    // kubectl runs a program of this name to complete the arguments of the plugin.
    symlink(
        tools[0].join("kubectl-maint"),
        links.join("kubectl_complete-maint"),
    )?;
    tools.push(links);
    print(format_args!(
        "{GREETING}{}",
        export_line(&cluster.kubeconfig(), &tools)
    ));
    let mut command = shell_command(&shell, &directory)?;
    command
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("PATH", path_with(&tools)?)
        .env("MAINT_TRY_PATH", path_with(&tools)?)
        .kill_on_drop(true);
    // Ctrl-C is for the shell. The end of this process ends the shell and removes the cluster's files.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut child = command
        .spawn()
        .with_context(|| format!("failed to run {}", Path::new(&shell).display()))?;
    loop {
        tokio::select! {
            status = child.wait() => {
                print(format_args!("the cluster is removed ({})", status?));
                return Ok(());
            }
            _ = interrupt.recv() => {}
            _ = terminate.recv() => return Ok(()),
            _ = hang_up.recv() => return Ok(()),
        }
    }
}

/// Set after the user's own settings, which may change PATH.
const ENVIRONMENT: &str = "export PATH=\"$MAINT_TRY_PATH\"\n";

const BASHRC: &str = r#"[ ! -r ~/.bashrc ] || . ~/.bashrc
ENVIRONMENT
for file in /usr/share/bash-completion/bash_completion /etc/bash_completion; do
    [ ! -r "$file" ] || { . "$file"; break; }
done
# kubectl's script needs this function of the package bash-completion.
declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ $COMP_LINE != *' ' ]] || words+=('')
    cword=$((${#words[@]} - 1)) cur=${words[cword]} prev=${words[cword - 1]}
}
. <(kubectl completion bash)
. <(kubectl-maint completion bash)
PS1="(sandbox) $PS1"
"#;

const ZSHRC: &str = r#"[[ ! -r ~/.zshrc ]] || . ~/.zshrc
ENVIRONMENT
autoload -Uz compinit && compinit -u -d "$ZDOTDIR/zcompdump"
. <(kubectl completion zsh)
. <(kubectl-maint completion zsh)
PROMPT="(sandbox) $PROMPT"
"#;

/// POSIX shells read the file that the variable ENV names.
const SHRC: &str = "ENVIRONMENT\nPS1='(sandbox) $ '\n";

/// The command that starts the shell with the settings in `directory`.
fn shell_command(shell: &OsStr, directory: &Path) -> Result<Command> {
    let name = Path::new(shell).file_name().unwrap_or_default();
    let (file, settings) = match name.to_str() {
        Some("bash") => ("bashrc", BASHRC),
        Some("zsh") => (".zshrc", ZSHRC),
        _ => ("shrc", SHRC),
    };
    let path = directory.join(file);
    fs::write(&path, settings.replace("ENVIRONMENT\n", ENVIRONMENT))
        .context("failed to write the shell's settings")?;
    let mut command = Command::new(shell);
    match file {
        "bashrc" => command.arg("--rcfile").arg(path).arg("-i"),
        ".zshrc" => command.env("ZDOTDIR", directory).arg("-i"),
        _ => command.env("ENV", path),
    };
    command.stdin(Stdio::inherit());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Output;

    use super::*;

    #[test]
    fn the_greeting_fits_a_terminal() {
        for line in GREETING.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    /// Runs `script` in a shell, with programs that print a completion script each.
    fn session(shell: &str, script: &str) -> Output {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        let settings = home.path().join("settings");
        fs::create_dir(&bin).unwrap();
        fs::create_dir(&settings).unwrap();
        for program in ["kubectl", "kubectl-maint"] {
            let path = bin.join(program);
            let name = program.replace('-', "_");
            fs::write(
                &path,
                format!("#!/bin/sh\necho \"{name}_in_$2() {{ :; }}\"\n"),
            )
            .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // The user's own settings may replace PATH.
        for file in [".bashrc", ".zshrc"] {
            fs::write(home.path().join(file), "PATH=/nowhere\nown=kept\n").unwrap();
        }
        let path = path_with(&[bin]).unwrap();
        let mut command = shell_command(OsStr::new(shell), &settings).unwrap();
        let mut command = std::mem::replace(command.as_std_mut(), std::process::Command::new(""));
        let mut child = command
            .env("HOME", home.path())
            .env("PATH", &path)
            .env("MAINT_TRY_PATH", &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(script.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    #[test]
    fn bash_names_the_cluster_and_completes() {
        let script =
            "echo \"$own|$PS1\"; declare -F kubectl_in_bash kubectl_maint_in_bash\nexit 0\n";
        let output = session("bash", script);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.starts_with("kept|(sandbox) "), "{stdout}");
        assert!(
            stdout.ends_with("\nkubectl_in_bash\nkubectl_maint_in_bash\n"),
            "{stdout}"
        );
        let shown = String::from_utf8(output.stderr).unwrap();
        assert!(shown.contains("(sandbox) "), "{shown}");
    }

    #[test]
    fn zsh_names_the_cluster_and_completes() {
        if !crate::test_requirements::is_on_path("zsh") {
            return;
        }
        let script =
            "echo \"$own|$PROMPT\"; whence -f kubectl_in_zsh kubectl_maint_in_zsh\nexit 0\n";
        let output = session("zsh", script);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains("kept|(sandbox) "), "{stdout}");
        for function in ["kubectl_in_zsh ()", "kubectl_maint_in_zsh ()"] {
            assert!(stdout.contains(function), "{stdout}");
        }
    }
}
